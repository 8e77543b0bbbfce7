"""A chat-completions endpoint without latency: `python -m bench.model PORT`.

The last user message is a command: `say N` streams N tokens at once, `say N at R` streams R of N tokens a second. Any
other message gets a call of `add_task`, and its result 20 tokens.
"""

import asyncio
import json
import re
import sys
from itertools import cycle, islice
from typing import Any

import uvloop

_ANSWER_TOKENS = 20
_SAY = re.compile(r"say (\d+)(?: at (\d+(?:\.\d+)?))?")
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_CALL = {"id": "call_1", "type": "function", "function": {"name": "add_task", "arguments": '{"title":"Buy milk"}'}}
_COMMON = {"id": "chatcmpl-1", "created": 0, "model": "instant"}


def _render_chunk(delta: dict[str, Any], finish_reason: str | None = None, **fields: Any) -> bytes:
    choices = [] if "usage" in fields else [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    data = json.dumps({**_COMMON, "object": "chat.completion.chunk", "choices": choices, **fields})
    return _render_frame(f"data: {data}\n\n".encode())


def _render_frame(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(body), body)


# An answer that repeats itself is ended: these are alike again after more characters than are compared.
_WORDS = [_render_chunk({"content": f" {number:04}"}) for number in range(1_000)]
_USAGE = _render_chunk({}, usage={"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120})
_END = _USAGE + _render_frame(b"data: [DONE]\n\n") + b"0\r\n\r\n"
_TEXT_END = _render_chunk({}, "stop") + _END
_TOOL_CALL = _HEAD + _render_chunk({"tool_calls": [{"index": 0, **_CALL}]}) + _render_chunk({}, "tool_calls") + _END


class _Endpoint(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:
        self._transport: asyncio.Transport = transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        if not separator or len(body) < (int(length[1]) if length else 0):
            return
        self._received = b""
        if head.startswith(b"GET"):
            self._send_json({"data": []})
        else:
            self._complete(json.loads(body))

    def _complete(self, request: dict[str, Any]) -> None:
        if not request.get("stream"):
            message = {"role": "assistant", "content": "word"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._send_json({**_COMMON, "object": "chat.completion", "choices": [choice]})
            return
        last = request["messages"][-1]
        command = _SAY.search(_get_text(last)) if last["role"] == "user" else None
        if command is None and last["role"] == "user":
            self._transport.write(_TOOL_CALL)
        elif command is not None and command[2]:
            self._transport.write(_HEAD)
            self._write_word(int(command[1]), 1 / float(command[2]), asyncio.get_running_loop().time())
        else:
            words = islice(cycle(_WORDS), int(command[1]) if command else _ANSWER_TOKENS)
            self._transport.write(_HEAD + b"".join(words) + _TEXT_END)

    def _write_word(self, words: int, seconds: float, due: float) -> None:
        """Writes a token and schedules the next one for its own time, so that delays do not add up."""
        if self._transport.is_closing():
            return
        if words == 0:
            self._transport.write(_TEXT_END)
            return
        self._transport.write(_WORDS[words % len(_WORDS)])
        asyncio.get_running_loop().call_at(due + seconds, self._write_word, words - 1, seconds, due + seconds)

    def _send_json(self, fields: dict[str, Any]) -> None:
        body = json.dumps(fields).encode()
        self._transport.write(_JSON_HEAD % len(body) + body)


def _get_text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else content[0]["text"]


async def _main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Endpoint, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_main(int(sys.argv[1])))
