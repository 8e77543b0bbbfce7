"""Streams that a provider did not send as such: of an answer that came whole, of calls that were written as text."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection

from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import (
    Choice,
    ChoiceDelta,
    ChoiceDeltaToolCall,
    ChoiceDeltaToolCallFunction,
)

from backend.model.repairs import Chunk, Chunks
from backend.model.text_calls import Answer, Call, Said, Unreadable


class Whole:
    """An answer that was not streamed, as the one chunk of a stream."""

    response = None

    def __init__(self, answer: ChatCompletion) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        data = self._answer.model_dump(warnings=False)
        for choice in data.get("choices") or ():
            delta = choice.pop("message", None) or {}
            calls = enumerate(delta.get("tool_calls") or ())
            choice["delta"] = {**delta, "tool_calls": [{**call, "index": index} for index, call in calls]}
        yield Chunk.build(response=None, data=data)

    async def close(self) -> None:
        """There is nothing more to come."""


class CallsInText:
    """A stream in which an answer that is nothing but calls in text has become these calls.

    One that looks like a call and cannot be read is asked for `again`, once, with the answer and the reason.
    """

    def __init__(self, stream: Chunks, tools: Collection[str], again: Callable[[str, str], Awaitable[Chunks]]) -> None:
        self.response = stream.response
        self._stream = stream
        self._tools = tools
        self._again = again

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        held = _Held(self._tools)
        used: CompletionUsage | None = None
        async for chunk in self._stream:
            used = chunk.usage or used
            held.take(chunk)
            if held.fault is None:
                yield chunk
        if held.fault is None:
            return
        await self._stream.close()
        self._stream = await self._again(held.answer.text, held.fault.reason)
        held = _Held(self._tools, is_last=True)
        async for chunk in self._stream:
            held.take(chunk)
            if chunk.usage and used:
                chunk.usage = _sum(chunk.usage, used)
            yield chunk

    async def close(self) -> None:
        await self._stream.close()


class LostCalls:
    """A stream that is asked for `whole` when it ends without a word and without a call.

    Some servers lose the calls that they stream; `lost` is called when the whole answer has some.
    """

    def __init__(self, stream: Chunks, whole: Callable[[], Awaitable[Chunks]], lost: Callable[[], None]) -> None:
        self.response = stream.response
        self._stream = stream
        self._whole: Callable[[], Awaitable[Chunks]] | None = whole
        self._lost = lost

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        has_said = has_thought = is_empty = False
        used: CompletionUsage | None = None
        async for chunk in self._stream:
            used = chunk.usage or used
            for choice in chunk.choices or ():
                has_said = has_said or _says(choice.delta)
                has_thought = has_thought or _thinks(choice.delta)
                is_empty = is_empty or (choice.finish_reason in ("stop", "tool_calls") and not has_said)
            if has_said and not is_empty:
                self._whole = None  # it holds all that was sent
            if not is_empty:
                yield chunk
        if not is_empty or self._whole is None:
            return
        await self._stream.close()
        self._stream = await self._whole()
        async for chunk in self._stream:
            if any(choice.delta.tool_calls for choice in chunk.choices or ()):
                self._lost()
            if has_thought:
                _forget_thoughts(chunk)
            if chunk.usage and used:
                chunk.usage = _sum(chunk.usage, used)
            yield chunk

    async def close(self) -> None:
        await self._stream.close()


def _says(delta: ChoiceDelta | None) -> bool:
    return delta is not None and bool(delta.content or delta.tool_calls or delta.refusal)


_THOUGHTS = ("reasoning", "reasoning_content")


def _thinks(delta: ChoiceDelta | None) -> bool:
    return any(getattr(delta, name, None) for name in _THOUGHTS)


def _forget_thoughts(chunk: Chunk) -> None:
    """They were shown as they were streamed."""
    for choice in chunk.choices:
        for name in _THOUGHTS:
            if getattr(choice.delta, name, None):
                setattr(choice.delta, name, None)


class _Held:
    """Holds an answer's text back while it may be calls, and lets it go as what it is."""

    def __init__(self, tools: Collection[str], *, is_last: bool = False) -> None:
        self.answer = Answer(tools)
        self.fault: Unreadable | None = None
        self._is_last = is_last
        self._released = False

    def take(self, chunk: ChatCompletionChunk) -> None:
        if self._released or not chunk.choices:
            return
        choice = chunk.choices[0]
        delta = choice.delta = choice.delta or ChoiceDelta()
        piece, delta.content = delta.content or "", None
        if not self.answer.may_be_calls(piece) or delta.tool_calls:
            self._released = True
            delta.content = self.answer.text
        elif choice.finish_reason:
            self._released = True
            self._end(choice)

    def _end(self, choice: Choice) -> None:
        match self.answer.whole(cut_off=choice.finish_reason == "length"):
            case Said(text):
                choice.delta.content = text
            case Unreadable() if self._is_last:
                choice.delta.content = self.answer.text
            case Unreadable() as fault:
                self.fault = fault
            case calls:
                choice.delta.tool_calls = [_delta(index, call) for index, call in enumerate(calls)]
                choice.finish_reason = "tool_calls" if choice.finish_reason == "stop" else choice.finish_reason


def _delta(index: int, call: Call) -> ChoiceDeltaToolCall:
    function = ChoiceDeltaToolCallFunction(name=call.name, arguments=call.arguments)
    return ChoiceDeltaToolCall(index=index, type="function", function=function)


def _sum(one: CompletionUsage, other: CompletionUsage) -> CompletionUsage:
    fields = ("prompt_tokens", "completion_tokens", "total_tokens")
    return one.model_copy(update={name: getattr(one, name) + getattr(other, name) for name in fields})
