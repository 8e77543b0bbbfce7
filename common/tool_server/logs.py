"""What the libraries beneath a tool server may log."""

import logging

from starlette.requests import ClientDisconnect

from common.telemetry import logs

QUIET = ("httpcore2", "httpx2", "mcp", "uvicorn")  # loggers of libraries


def configure(level: str, format: logs.Format) -> None:
    logs.configure(level, format, quiet=QUIET)
    # FastMCP brings a console of its own.
    logging.getLogger("fastmcp").handlers.clear()
    logging.getLogger("fastmcp").propagate = True
    # refusals.py logs what goes wrong in a tool; FastMCP would add tracebacks that quote what people wrote.
    logging.getLogger("fastmcp.server.server").setLevel(logging.CRITICAL)
    # Whoever leaves before a request is whole would write forty lines each time.
    logging.getLogger("mcp.server.streamable_http").addFilter(_is_no_departure)


def _is_no_departure(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], ClientDisconnect)
