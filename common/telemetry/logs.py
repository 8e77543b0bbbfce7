"""Log lines: for people on a terminal, JSON for machines."""

import json
import logging
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from common.telemetry import request_id

Format = Literal["auto", "text", "json"]


def configure(level: str, format: Format, *, quiet: Iterable[str] = ()) -> None:
    """Write to standard error, from warnings up for the loggers of `quiet`; auto is text on a terminal, else JSON."""
    human = sys.stderr.isatty() if format == "auto" else format == "text"
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextFormatter() if human else JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler])
    for name in quiet:
        logging.getLogger(name).setLevel(logging.WARNING)


def fields(**values: Any) -> Mapping[str, Any]:
    """What a line says beside its message, as `extra` of a logging call; None is left out."""
    return {"fields": {name: value for name, value in values.items() if value is not None}}


# Their errors' texts may quote prompts, tasks and keys.
_QUOTING = ("openai", "psycopg", "pydantic", "pydantic_core", "sqlalchemy")


def describe_error(error: BaseException) -> str:
    """The traceback of an error and of what caused it, without texts of libraries that quote what users wrote."""
    parts = [[*traceback.format_tb(one.__traceback__), _describe(one)] for one in chain(error)]
    return "\n".join("".join(part) for part in reversed(parts))


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error, what caused it, and so on."""
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

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging names it
        said = "".join(f" {name}={_in_one_word(value)}" for name, value in _fields(record).items())
        return super().formatMessage(record) + said


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _in_one_word(value: Any) -> str:
    text = str(value)
    return text if text.isprintable() and " " not in text else json.dumps(text)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    said = getattr(record, "fields", {})
    asked = request_id.current.get()
    return said if asked is None else {**said, "request_id": asked}
