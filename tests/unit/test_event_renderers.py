"""Streams of events as each protocol renders them, also where their events cannot be read to the end."""

import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from backend.api.chatkit.plain_messages import PlainRenderer
from backend.api.event_renderer import EventRenderer
from backend.api.frontends.chunks import AiSdkRenderer
from backend.api.interactions.events import RenderedInteraction, RunApiRenderer
from backend.conversations.records import Entry, Event, Outcome, Run, ToolCall
from backend.runs.outcomes import sentence_of_notice
from common.database import DatabaseUnavailable

NOW = datetime(2026, 11, 28, tzinfo=UTC)
RUN = Run(
    *("u", "run_1", "thr_1", 1, None, None, None, "run_1", "assistant", True, "completed", 1, False, {}, None, None),
    *(NOW, NOW, NOW, 9),
)
MESSAGE = Event("entry_completed", Entry("run_1", "msg_1", "user_message", "hello", last_seq=2), 2, run=RUN)
GROWING = Entry("run_1", "msg_2", "assistant_message", "Hello.")
APPROVED = ToolCall("run_1", "call_1", 1, "delete_task", "{}", "approved", "key", approval_text="Delete it?")


def answer(*pieces: str) -> list[Event]:
    deltas = [Event("entry_delta", GROWING, text=piece, run=RUN) for piece in pieces]
    return [*deltas, Event("entry_completed", GROWING, 5, run=RUN), Event("run_ended", number=9, run=RUN)]


class Source:
    """Events, and an error after them if there is one; `is_closed` once nobody reads them any more."""

    def __init__(self, *events: Event, error: Exception | None = None) -> None:
        self._events, self._error = events, error
        self.is_closed = False

    async def read(self) -> AsyncGenerator[Event]:
        try:
            for event in self._events:
                yield event
            if self._error is not None:
                raise self._error
        finally:
            self.is_closed = True


async def render(renderer: EventRenderer[Any], source: Source) -> list[str]:
    return [frames.decode() async for frames in renderer.encode_stream(source.read())]


def parse(frames: list[str]) -> list[Any]:
    data = [line.removeprefix("data: ") for line in "".join(frames).splitlines() if line.startswith("data: ")]
    return [one if one == "[DONE]" else json.loads(one) for one in data]


@pytest.mark.parametrize("pieces", [("Hel", "lo."), ("Hel",), ()], ids=["complete", "half", "none"])
async def test_text_is_sent_once_whatever_came_as_deltas(pieces: tuple[str, ...]) -> None:
    plain = parse(await render(PlainRenderer({}), Source(MESSAGE, *answer(*pieces))))
    assert "".join(one["content"] for one in plain if one["type"] == "message_delta") == "Hello."
    chunks = parse(await render(AiSdkRenderer("run_1"), Source(MESSAGE, *answer(*pieces))))
    assert "".join(one["delta"] for one in chunks[:-1] if one["type"] == "text-delta") == "Hello."
    assert [chunks[0]["type"], chunks[-2]["type"], chunks[-1]] == ["start", "finish", "[DONE]"]


async def test_frames_of_one_event_are_sent_together_and_the_last_has_its_number() -> None:
    decided = Event("approval_decided", APPROVED, 7, run=RUN)
    _, frames = await render(RunApiRenderer(RenderedInteraction("run_1", "thr_1")), Source(MESSAGE, decided))
    assert [line for line in frames.splitlines() if line.startswith(("id:", "event:"))] == [
        "event: approved",
        "id: 7",
        "event: tool_call",
    ]


@pytest.mark.parametrize(
    ("status", "code", "ends"),
    [("cancelled", "cancelled", ["abort"]), ("failed", "model_overloaded", ["error", "finish"])],
)
async def test_what_was_changed_comes_before_what_ends_the_message(status: Outcome, code: str, ends: list[str]) -> None:
    """The AI SDK reads no further after an error."""
    notice = Entry("run_1", "ntc_1", "notice", details={"code": code}, last_seq=8)
    facts = {"changes": [{"task_id": 7, "title": "milk", "change": "added"}]}
    ended = Event("run_ended", number=9, run=replace(RUN, status=status, changes=facts))
    chunks = parse(await render(AiSdkRenderer("run_1"), Source(MESSAGE, Event("entry_completed", notice, 8), ended)))
    assert [one["type"] for one in chunks[:-1]] == ["start", "data-changes", *ends]
    assert chunks[1]["data"] == {"text": "Added 1", **facts}


async def test_each_of_several_notices_is_sent() -> None:
    codes = ("answer_over_limit", "answer_filtered")
    notices = [Entry("run_1", f"ntc_{code}", "notice", details={"code": code}) for code in codes]
    events = [MESSAGE, *(Event("entry_completed", one, 5, run=RUN) for one in notices), *answer()]
    sentences = [sentence_of_notice(one) for one in notices]
    assert parse(await render(PlainRenderer({}), Source(*events)))[-1]["notice"] == " ".join(sentences)
    chunks = parse(await render(AiSdkRenderer("run_1"), Source(*events)))[:-1]
    shown = {one["id"]: one["data"]["text"] for one in chunks if one["type"] == "data-notice"}
    assert [*shown.values()] == sentences, "a client replaces data of the same id"
    frames = "".join(await render(RunApiRenderer(RenderedInteraction("run_1", "thr_1")), Source(*events)))
    assert [one["text"] for one in parse([frames]) if one.get("code") in codes] == sentences


@pytest.mark.parametrize("agent", [None, "coder"])
async def test_progress_reaches_readers_whose_protocol_has_a_place_for_it(agent: str | None) -> None:
    """It has no number, and is part of no message."""
    run = replace(RUN, agent=agent or RUN.agent, parent_run_id="run_0" if agent else None)
    events = MESSAGE, Event("progress", text="The model is loading…", run=run), *answer()
    frames = await render(RunApiRenderer(RenderedInteraction("run_1", "thr_1")), Source(*events))
    assert frames[1] == 'event: progress\ndata: {"text": "The model is loading…"}\n\n'
    chunks = parse(await render(AiSdkRenderer("run_1"), Source(*events)))
    assert chunks[1] == {"type": "data-progress", "data": {"text": "The model is loading…"}, "transient": True}
    plain = parse(await render(PlainRenderer({}), Source(*events)))
    assert plain == parse(await render(PlainRenderer({}), Source(MESSAGE, *answer())))


async def test_an_error_ends_the_stream_where_the_protocol_can_show_it() -> None:
    lost = Source(MESSAGE, error=DatabaseUnavailable())
    chunks = parse(await render(AiSdkRenderer("run_1"), lost))
    assert [one if one == "[DONE]" else one["type"] for one in chunks] == ["start", "error", "[DONE]"]
    [plain] = parse(await render(PlainRenderer({}), Source(MESSAGE, error=DatabaseUnavailable())))
    assert (plain["type"], bool(plain["message"])) == ("error", True)
    with pytest.raises(DatabaseUnavailable):
        await render(
            RunApiRenderer(RenderedInteraction("run_1", "thr_1")), Source(MESSAGE, error=DatabaseUnavailable())
        )


async def test_events_are_closed_when_the_reader_leaves_or_needs_no_more() -> None:
    left, over = Source(MESSAGE, *answer("Hel")), Source(MESSAGE, *answer(), MESSAGE)
    reading = RunApiRenderer(RenderedInteraction("run_1", "thr_1")).encode_stream(left.read())
    await anext(reading)
    await reading.aclose()
    assert left.is_closed
    await render(AiSdkRenderer("run_1"), over)
    assert over.is_closed
