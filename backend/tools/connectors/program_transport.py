"""Starts a program that is an MCP server, and counts what it writes.

The SDK's own transport (2.3) joins a line without a limit. Starting and ending a program are as there.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, TextIO

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from backend.tools.connectors.configuration import Connector
from backend.tools.connectors.read_limit import ReadLimit, TooMuchSent
from backend.tools.connectors.received_messages import CheckedStream, Item

logger = logging.getLogger(__name__)

_END_SECONDS = 2  # for a program to end by itself, and then after each signal
_POLL_SECONDS = 0.01
_ENDED = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@asynccontextmanager
async def start_program(
    server: Connector, errors: TextIO, limit: ReadLimit
) -> AsyncIterator[tuple[CheckedStream, Any]]:
    """Starts the program in a process group of its own; raises `OSError` if it cannot be started."""
    process = await anyio.open_process(
        [server.command or "", *server.arguments],
        env={**get_default_environment(), **server.environment},
        stderr=errors,
        cwd=server.directory,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    received, messages = anyio.create_memory_object_stream[Item]()
    sending, to_send = anyio.create_memory_object_stream[SessionMessage]()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read_messages, server, process.stdout, received, limit)
        tasks.start_soon(_write_messages, process.stdin, to_send, received)
        try:
            yield CheckedStream(messages, limit), sending
        finally:
            messages.close()
            with anyio.CancelScope(shield=True):
                await _end(process, at_once=limit.failure.done())
            for stream in (received, sending, to_send):
                stream.close()
            tasks.cancel_scope.cancel()


async def _read_messages(
    server: Connector, output: ByteReceiveStream, received: MemoryObjectSendStream[Item], limit: ReadLimit
) -> None:
    """Reads a message in each line. Lines that are none are logged once, without what they say."""
    line, is_logged = bytearray(), False
    async with received:
        with suppress(*_ENDED, TooMuchSent):
            while True:
                chunk = await output.receive()
                limit.count(chunk)
                first, *others = chunk.split(b"\n")
                line += first
                for following in others:
                    message = _parse(bytes(line)) if line.strip() else None
                    if message is not None:
                        await received.send(message)
                    elif line.strip() and not is_logged:
                        is_logged = True
                        logger.warning("mcp.%s writes lines that are no messages", server.name)
                    line = bytearray(following)
    with suppress(*_ENDED):
        while not limit.failure.done():  # a program that cannot write does not notice that it should end
            await output.receive()


def _parse(line: bytes) -> SessionMessage | None:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


async def _write_messages(
    entry: ByteSendStream, to_send: MemoryObjectReceiveStream[SessionMessage], received: MemoryObjectSendStream[Item]
) -> None:
    async with to_send:
        try:
            async for item in to_send:
                await entry.send(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        except _ENDED:
            await received.aclose()  # else what waits for an answer would not learn that none comes


async def _end(process: Process, *, at_once: bool) -> None:
    assert process.stdin is not None
    with suppress(*_ENDED):
        await process.stdin.aclose()
    if at_once or not await _has_ended(process):
        await terminate_posix_process_tree(process, _END_SECONDS)
        await _has_ended(process)
    with anyio.move_on_after(_END_SECONDS), suppress(*_ENDED):
        await process.aclose()


async def _has_ended(process: Process) -> bool:
    """Waits for the end of the process; not for that of its output, which its children may hold open."""
    with anyio.move_on_after(_END_SECONDS):
        while process.returncode is None:
            await anyio.sleep(_POLL_SECONDS)
    return process.returncode is not None
