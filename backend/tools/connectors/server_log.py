"""Logs what MCP servers write to standard error, and what the SDK logs of them, without secrets."""

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from backend.tools.connectors.configuration import Connector
from common.commands import escape_unprintable

logger = logging.getLogger(__name__)

_READ_CHARS, _MAX_LINE_CHARS = 65_536, 2_000  # a longer line is read in pieces, and its beginning is logged
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
    with open(reading, errors="replace") as lines:
        while line := lines.readline(_READ_CHARS):
            if said := server.redacted(line).rstrip():
                logger.info("mcp.%s says: %s", server.name, escape_unprintable(said[:_MAX_LINE_CHARS]))
