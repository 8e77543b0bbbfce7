"""The response of a model's server: read within limits, and requested again where that helps."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from backend.model.failures.errors import ModelError
from backend.model.markup.quoting import Quotable
from backend.model.requests import bodies
from backend.model.responses.hidden_frame import FrameFilter, cut_frames
from backend.model.responses.limits import ResponseLimits
from backend.model.responses.reader import Piece, ResponseReader
from backend.model.responses.text_responses import TextResponse

_SECONDS_AFTER_FINISH = 2  # for the usage; some servers keep the stream open after the finish reason

_OBJECT = re.compile(r"""\{\s*["']""")
_MAX_SEARCHED_CHARS = 20_000  # for a call that is written as text, on both sides of the first object
_CLOSED = object()

Pieces = AsyncGenerator[Piece]
"""The pieces of a response; the last one has the finish reason and the calls."""
Respond = Callable[[bodies.Body], Pieces]


async def read_pieces(
    values: AsyncGenerator[Any], reader: ResponseReader, limits: ResponseLimits, deadline: float
) -> Pieces:
    """Yields the pieces of a response, whose first token must come before the deadline; raises `ModelError`."""
    has_begun = False
    async with aclosing(values):
        while True:
            until = _read_until(reader, limits, deadline, has_begun=has_begun)
            try:
                async with asyncio.timeout_at(until):
                    value = await anext(values, _CLOSED)
            except TimeoutError:
                if reader.finish is not None:
                    break
                if has_begun:
                    raise ModelError("model_stalled", seconds=limits.silence_seconds) from None
                raise ModelError("model_silent", seconds=limits.first_token_seconds) from None
            if value is _CLOSED:
                break
            chars = reader.chars
            for piece in reader.read_frame(value):
                yield piece
                await asyncio.sleep(0)  # others are served between two parts, and what was received at once is read
            if reader.is_repeated:
                break
            has_begun = has_begun or reader.chars > chars + 1
            if reader.chars > limits.chars:
                raise ModelError("model_answer_too_long", most=limits.chars)
    yield reader.end()


def _read_until(reader: ResponseReader, limits: ResponseLimits, deadline: float, *, has_begun: bool) -> float:
    now = asyncio.get_running_loop().time()
    if reader.finish is not None:
        return now + _SECONDS_AFTER_FINISH
    return now + limits.silence_seconds if has_begun else deadline


async def read_actions(
    response: Pieces, tools: Collection[str], body: bodies.Body, respond: Respond, *, goal: str
) -> Pieces:
    """Yields the response with the actions in its text as calls and answers; asks once more after a fault."""
    quotable = Quotable(body["messages"])
    first, usage = TextResponse(tools, goal=goal, quotable=quotable), Counter[str]()
    async with aclosing(response):
        async for piece in response:
            usage = piece.usage or usage
            shown = _with_actions(piece, first)
            if first.fault is None:
                yield shown
    if first.fault is None:
        return
    second = TextResponse(tools, goal=goal, quotable=quotable, follows_text=first.has_text)
    async with aclosing(respond(bodies.request_correction(body, cut_frames(first.raw), first.fault))) as response:
        async for piece in response:
            shown = _with_actions(piece, second)
            if second.fault is not None:
                raise ModelError("model_unusable_answer")
            yield replace(shown, usage=shown.usage + usage)


def _with_actions(piece: Piece, response: TextResponse) -> Piece:
    text = response.feed(piece.text)
    if piece.finish in (None, "repeated"):
        return replace(piece, text=text)
    rest, thought = response.finish(cut_off=piece.finish == "length")
    return replace(piece, text=text + rest, thought=piece.thought + thought, calls=piece.calls or response.calls)


async def ask_again_if_empty(
    response: Pieces, body: bodies.Body, respond: Respond, on_calls: Callable[[], None] | None = None
) -> Pieces:
    """Sends a request once more after a response without text and calls, also if it has thoughts.

    With `on_calls`, the second response is not streamed, and that is called if it has calls: some servers lose those
    that they stream.
    """
    has_output = has_thought = is_empty = False
    usage = Counter[str]()
    async with aclosing(response):
        async for piece in response:
            has_output = has_output or bool(piece.text or piece.calls)
            has_thought = has_thought or bool(piece.thought)
            usage = piece.usage
            is_empty = piece.finish == "stop" and not has_output
            if not is_empty:
                yield piece
    if not is_empty:
        return
    again = body if on_calls is None else bodies.remove_streaming(body)
    async with aclosing(respond(again)) as second:
        async for piece in second:
            if piece.calls and on_calls is not None:
                on_calls()
            thought = "" if has_thought else piece.thought  # not twice
            yield replace(piece, thought=thought, usage=piece.usage + usage)


class WrittenCalls:
    """Notices a response without calls whose text has a call of one of the tools."""

    def __init__(self, tools: Collection[str], on_written: Callable[[], None]) -> None:
        self._tools, self._on_written = tools, on_written
        self._texts: list[str] = []

    def read(self, piece: Piece) -> None:
        if piece.text:
            self._texts.append(piece.text)
        if piece.finish is not None and not piece.calls and self._has_call("".join(self._texts)):
            self._on_written()

    def _has_call(self, text: str) -> bool:
        if not self._tools or (beginning := _OBJECT.search(text)) is None:
            return False
        response = TextResponse(self._tools, goal="")
        begin = max(0, beginning.start() - _MAX_SEARCHED_CHARS)
        response.feed(text[begin : beginning.end() + _MAX_SEARCHED_CHARS])
        response.finish(cut_off=False)
        return bool(response.calls)


class FrameRemover:
    """Removes the frame of hidden notes, which some models repeat, from the pieces of a response."""

    def __init__(self) -> None:
        self._texts, self._thoughts = FrameFilter(), FrameFilter()

    def read(self, piece: Piece) -> Piece:
        thought = self._thoughts.feed(piece.thought) if piece.thought else ""
        text = self._texts.feed(piece.text) if piece.text else ""
        if piece.text or piece.finish is not None:
            thought += self._thoughts.finish()
        if piece.finish is not None:
            text += self._texts.finish()
        is_cut = text != piece.text or thought != piece.thought
        return replace(piece, text=text, thought=thought) if is_cut else piece


async def read_whole(response: Pieces, show: Callable[[Piece], None] | None = None) -> Piece:
    """Reads a response to its end, and returns it as one piece; `show` gets each piece when it comes."""
    pieces: list[Piece] = []
    async with aclosing(response):
        async for piece in response:
            pieces.append(piece)
            if show is not None:
                show(piece)
    text, thought = "".join(piece.text for piece in pieces), "".join(piece.thought for piece in pieces)
    return replace(pieces[-1], text=text, thought=thought)
