"""A chat-completions endpoint that takes no time: a fixed tool call, then a fixed answer, a chunk for each token.

The last user message says what to do: `say N` is answered with N tokens, `wait` with an answer that stays open until
`POST /release`, `tell` with 50 tokens a second until then, `tell N at R` with N tokens, R of them a second, anything
else with a call of add_task. `POST /told` is answered with how many tokens were told, and to how many more are.
"""

import asyncio
import json
import re
import sys
from functools import cache
from typing import Any, ClassVar

import uvloop

ANSWER_TOKENS = 20
PACE_SECONDS = 0.02
OPEN = ("wait", "tell")
_SAY = re.compile(r"say (\d+)")
_TELL = re.compile(r"tell (\d+) at (\d+(?:\.\d+)?)")
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_END = b"0\r\n\r\n"
_CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "add_task", "arguments": ""}}
_COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 0,
    "model": "instant",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "word"}, "finish_reason": "stop"}],
}
_ARGUMENTS = {"index": 0, "function": {"arguments": '{"title":"Buy milk"}'}}


class Endpoint(asyncio.Protocol):
    waiting: ClassVar[set[asyncio.Transport]] = set()
    telling: ClassVar[set[asyncio.Transport]] = set()
    told: ClassVar[int] = 0

    def connection_made(self, transport: Any) -> None:
        self._transport: asyncio.Transport = transport
        self._received = b""

    def connection_lost(self, exc: Exception | None) -> None:
        self.waiting.discard(self._transport)
        self.telling.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        if separator and len(body) >= (int(length[1]) if length else 0):
            self._received = b""
            self._answer(head.split(b" ", 2)[1], body)

    def _answer(self, path: bytes, body: bytes) -> None:
        if path.endswith(b"/chat/completions"):
            self._complete(json.loads(body))
            return
        if path == b"/told":
            self._transport.write(_json({"told": Endpoint.told, "telling": len(Endpoint.telling)}))
            return
        if path == b"/release":
            self.telling.clear()
            while self.waiting:
                self.waiting.pop().write(b"".join([*_finish("stop"), _END]))
        self._transport.write(_json({}))

    def _complete(self, request: dict[str, Any]) -> None:
        if (wanted := paced(request)) is not None:
            tokens, a_second = wanted
            self._transport.write(_HEAD)
            self._go_on(tokens, 1 / a_second, asyncio.get_running_loop().time())
            return
        streamed = answer(doing(request), usage="stream_options" in request)
        if not request.get("stream"):
            self._transport.write(_json(_COMPLETION))
        elif streamed is None:
            self._transport.write(_HEAD + b"".join(_text(1)))
            self.waiting.add(self._transport)
            if doing(request) == "tell":
                self.telling.add(self._transport)
        else:
            self._transport.write(streamed)

    def _go_on(self, tokens: int, every: float, due: float) -> None:
        """Each token when it is due, however late the last one was."""
        if self._transport.is_closing():
            return
        if tokens == 0:
            self._transport.write(b"".join([*_finish("stop"), _usage(), *_DONE]))
            return
        self._transport.write(_WORD)
        asyncio.get_running_loop().call_at(due + every, self._go_on, tokens - 1, every, due + every)


def paced(request: dict[str, Any]) -> tuple[int, float] | None:
    """How many tokens are to be told, and how many a second, where the last message says so."""
    last = request["messages"][-1]
    told = _TELL.search(_text_of(last)) if last["role"] == "user" else None
    return (int(told[1]), float(told[2])) if told else None


def _text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else content[0]["text"]


def doing(request: dict[str, Any]) -> str:
    """What the request's last message asks for: `call`, `wait`, `tell` or the number of tokens to say."""
    last = request["messages"][-1]
    if last["role"] == "tool":
        return str(ANSWER_TOKENS)
    text = _text_of(last)
    said = _SAY.search(text)
    return said[1] if said else next((what for what in OPEN if what in text), "call")


@cache
def answer(what: str, *, usage: bool) -> bytes | None:
    """A whole HTTP response, None when it has no end yet."""
    if what in OPEN:
        return None
    if what == "call":
        chunks = [_chunk({"tool_calls": [_CALL]}), _chunk({"tool_calls": [_ARGUMENTS]}), *_finish("tool_calls")]
    else:
        chunks = [*_text(int(what)), *_finish("stop")]
    if usage:
        chunks.append(_usage())
    return b"".join([_HEAD, *chunks, *_DONE])


def _usage() -> bytes:
    counted = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    return _event({"choices": [], "usage": counted})


def _text(tokens: int) -> list[bytes]:
    return [_chunk({"role": "assistant", "content": ""}), *[_chunk({"content": " word"})] * tokens]


def _finish(reason: str) -> list[bytes]:
    return [_chunk({}, reason)]


def _chunk(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    return _event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})


def _event(fields: dict[str, Any]) -> bytes:
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "instant", **fields}
    return _frame(f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n".encode())


def _json(fields: dict[str, Any]) -> bytes:
    body = json.dumps(fields).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body


def _frame(body: bytes) -> bytes:
    return f"{len(body):x}\r\n".encode() + body + b"\r\n"


_WORD = _chunk({"content": " word"})
_DONE = (_frame(b"data: [DONE]\n\n"), _END)


async def tell() -> None:
    due = asyncio.get_running_loop().time()
    while True:
        due += PACE_SECONDS
        await asyncio.sleep(due - asyncio.get_running_loop().time())
        for transport in Endpoint.telling:
            transport.write(_WORD)
        Endpoint.told += len(Endpoint.telling)


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Endpoint, "127.0.0.1", port)
    await asyncio.gather(server.serve_forever(), tell())


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
