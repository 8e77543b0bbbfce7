"""Logs what MCP servers write to standard error, and what the SDK logs of them, without secrets."""

import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from backend.tools.connectors.configuration import Connector
from common.commands import escape_unprintable

logger = logging.getLogger(__name__)

_READ_BYTES, _MAX_LINE_CHARS = 65_536, 2_000  # a longer line is read in pieces, and its beginning is logged
_MAX_LINES, _SECONDS = 100, 60  # as many lines in so long
_PAUSE_SECONDS = 0.005  # before more is read of a program that writes without an end, which waits for that
# What the SDK logs of answers that it cannot read may hold all of them, and of addresses all of these.
_OF_SDK = ("client", "mcp.client.stdio", "mcp.client.streamable_http", "mcp.shared.jsonrpc_dispatcher")


@contextmanager
def redacted(servers: Sequence[Connector]) -> Iterator[None]:
    """Removes texts of errors and values of variables from the SDK's log lines while the block runs."""

    def redact(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        for server in servers:
            text = server.redacted(text)
        record.msg, record.args, record.exc_info = escape_unprintable(text), (), None
        return True

    for name in _OF_SDK:
        logging.getLogger(name).addFilter(redact)
    try:
        yield
    finally:
        for name in _OF_SDK:
            logging.getLogger(name).removeFilter(redact)


@contextmanager
def logged(server: Connector) -> Iterator[TextIO]:
    """Gives the file that becomes a program's standard error; a thread logs its lines until its last writer ends."""
    reading, writing = os.pipe()
    threading.Thread(target=_log_lines, args=(server, reading), daemon=True).start()
    with open(writing, "w") as errors:
        yield errors


def _log_lines(server: Connector, reading: int) -> None:
    logged, began, rest = 0, time.monotonic(), b""
    with open(reading, "rb", buffering=0) as errors:
        while chunk := errors.read(_READ_BYTES):
            if time.monotonic() - began >= _SECONDS:
                logged, began = 0, time.monotonic()
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) >= _READ_BYTES:
                lines, rest = [*lines, rest], b""
            for line in lines[: max(0, _MAX_LINES - logged)]:
                logged += _log_line(server, line)
            if logged == _MAX_LINES:
                logger.warning("mcp.%s says more than %s lines in a minute: the rest is left out", server.name, logged)
                logged += 1
            if logged > _MAX_LINES:
                time.sleep(_PAUSE_SECONDS)
    _log_line(server, rest)


def _log_line(server: Connector, line: bytes) -> bool:
    """Logs the beginning of a line without secrets; returns whether it says anything."""
    said = server.redacted(line.decode(errors="replace")).rstrip()
    if said:
        logger.info("mcp.%s says: %s", server.name, escape_unprintable(said[:_MAX_LINE_CHARS]))
    return bool(said)
