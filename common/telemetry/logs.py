"""Log lines, as text or as JSON, and the limit of equal lines."""

import json
import logging
import re
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

Format = Literal["auto", "text", "json"]

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The id of the current request, the same in the logs of all services; None outside of any request."""


def configure(level: str, format: Format, *, quiet: Iterable[str] = ()) -> None:
    """Logs to standard error, only warnings of the loggers in `quiet`; `auto` is text on a terminal, else JSON."""
    is_text = sys.stderr.isatty() if format == "auto" else format == "text"
    handler = LimitedHandler(sys.stderr)
    handler.setFormatter(TextFormatter() if is_text else JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler])
    for name in quiet:
        logging.getLogger(name).setLevel(logging.WARNING)


def fields(**values: Any) -> Mapping[str, Any]:
    """Returns the `extra` of a logging call that adds these values to the line, except those that are None."""
    return {"fields": {name: value for name, value in values.items() if value is not None}}


# The messages of their errors may quote prompts, tasks and keys.
_QUOTING = ("openai", "psycopg", "pydantic", "pydantic_core", "sqlalchemy")


def describe_error(error: BaseException) -> str:
    """Returns the traceback of an error and its causes, without messages of libraries that quote what users wrote."""
    parts = [[*traceback.format_tb(each.__traceback__), _describe(each)] for each in _iter_causes(error)]
    return "\n".join("".join(part) for part in reversed(parts))


def _iter_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _describe(error: BaseException) -> str:
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    if type(error).__module__.partition(".")[0] not in _QUOTING:
        return f"{name}: {error}"
    sqlstate = getattr(getattr(error, "orig", error), "sqlstate", None)
    return f"{name}: SQLSTATE {sqlstate}" if sqlstate else name


AT_ONCE = 20  # equal lines
_EVERY_SECONDS = 60.0  # one of them, after that
_MAX_TEMPLATES = 20  # of one statement: one that writes what clients sent has as many as they like
_LEFT_OUT = "left_out"  # an attribute of records


@dataclass
class _EqualLines:
    """Of which as many were written as the limit allows until `paid_until`, and some were left out since."""

    logger: str
    level: int
    template: str
    paid_until: float = 0.0
    left_out: int = 0

    def take_turn(self, now: float) -> bool:
        """Whether a line may be written now; it then counts as written."""
        paid_until = max(self.paid_until, now) + _EVERY_SECONDS
        if paid_until - now > AT_ONCE * _EVERY_SECONDS:
            return False
        self.paid_until = paid_until
        return True


class LimitedHandler(logging.StreamHandler[TextIO]):
    """Writes `AT_ONCE` equal lines, then one a minute, which says how many were left out; so does the end.

    Lines are equal if they come from the same statement and have the same template, and the same kind of error if they
    have a traceback, whatever their arguments are. Lines with a field `owner` are not limited here: a user's own limits
    bound what is done for them.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._kinds: dict[tuple[object, ...], _EqualLines] = {}
        self._templates = defaultdict[tuple[object, ...], set[str]](set)  # by statement
        self._report_at = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        now = time.monotonic()
        if getattr(record, "fields", {}).get("owner") or self._may_write(record, now):
            super().emit(record)
        if now >= self._report_at:
            self._report_at = now + _EVERY_SECONDS
            self._report(lambda lines: lines.take_turn(now))

    def _may_write(self, record: logging.LogRecord, now: float) -> bool:
        lines = self._find_equal(record)
        if not lines.take_turn(now):
            lines.left_out += 1
            return False
        self._add_count(record, lines)
        return True

    def close(self) -> None:
        with self.lock or nullcontext():
            self._report(lambda _: True)
        super().close()

    def _find_equal(self, record: logging.LogRecord) -> _EqualLines:
        statement = (record.name, record.levelno, record.pathname, record.lineno)
        template = str(record.msg)
        if record.exc_info and record.exc_info[0]:
            template = f"{template} ({record.exc_info[0].__qualname__})"
        templates = self._templates[statement]
        if template not in templates and len(templates) == _MAX_TEMPLATES:
            return self._kinds.setdefault(statement, _EqualLines(record.name, record.levelno, template))
        templates.add(template)
        return self._kinds.setdefault((*statement, template), _EqualLines(record.name, record.levelno, template))

    def _report(self, may_write: Callable[[_EqualLines], bool]) -> None:
        """Writes a line about each kind of which some were left out."""
        token = request_id.set(None)
        for lines in self._kinds.values():
            if lines.left_out and may_write(lines):
                record = logging.LogRecord(lines.logger, lines.level, "", 0, lines.template, None, None)
                self._add_count(record, lines)
                super().emit(record)
        request_id.reset(token)

    @staticmethod
    def _add_count(record: logging.LogRecord, lines: _EqualLines) -> None:
        setattr(record, _LEFT_OUT, lines.left_out)
        lines.left_out = 0


# What terminals obey, or show in another place: control characters except newline and tab, Unicode's line ends, marks
# of text direction.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def escape(text: str) -> str:
    """Escapes what terminals obey, as JSON does; newlines and tabs stay."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class TextFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - a method of logging.Formatter
        pairs = "".join(f" {name}={_quote(value)}" for name, value in _get_fields(record).items())
        return super().formatMessage(record) + pairs + _tell_left_out(record)

    def format(self, record: logging.LogRecord) -> str:
        """Indents all lines but the first, so that no text of a client can look like a line of the log."""
        return escape(super().format(record)).replace("\n", "\n    ")


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage() + _tell_left_out(record),
            **_get_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return escape(json.dumps(line, ensure_ascii=False, default=str))


def _tell_left_out(record: logging.LogRecord) -> str:
    count: int = getattr(record, _LEFT_OUT, 0)
    return f" … and {count:,} more such line{'s' if count > 1 else ''}" if count else ""


def _quote(value: Any) -> str:
    text = str(value)
    return text if text.isprintable() and " " not in text else json.dumps(text)


def _get_fields(record: logging.LogRecord) -> dict[str, Any]:
    values = getattr(record, "fields", {})
    id_ = request_id.get()
    return values if id_ is None else {**values, "request_id": id_}
