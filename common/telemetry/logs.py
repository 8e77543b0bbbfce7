"""Log lines, as text or as JSON."""

import json
import logging
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal

Format = Literal["auto", "text", "json"]

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The id of the current request, the same in the logs of all services; None outside of any request."""


def configure(level: str, format: Format, *, quiet: Iterable[str] = ()) -> None:
    """Logs to standard error, only warnings of the loggers in `quiet`; `auto` is text on a terminal, else JSON."""
    is_text = sys.stderr.isatty() if format == "auto" else format == "text"
    handler = logging.StreamHandler(sys.stderr)
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


class TextFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - a method of logging.Formatter
        pairs = "".join(f" {name}={_quote(value)}" for name, value in _get_fields(record).items())
        return super().formatMessage(record) + pairs


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_get_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _quote(value: Any) -> str:
    text = str(value)
    return text if text.isprintable() and " " not in text else json.dumps(text)


def _get_fields(record: logging.LogRecord) -> dict[str, Any]:
    values = getattr(record, "fields", {})
    id_ = request_id.get()
    return values if id_ is None else {**values, "request_id": id_}
