"""Each event of a log, as a chunk of the UI message stream."""

import json
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy.exc import OperationalError

from backend.conversation.items import Ending, Message, Said, Summarised, Thought, Widget, Work
from backend.doors.chat.door import Begun, ChatDoor
from backend.doors.chat.plain import plain
from backend.doors.chat.rendering import Rendering, frame
from backend.doors.starting import Starting
from backend.turn import log

ASKED = log.Asked("apr_1", "c", "delete_task", "{}", "Delete it")
CALLED = log.Called("c", "delete_task", '{"task_id": 1}')
STARTED = log.Started({"id": "thr_1"}, True, None)
FINISH = {"type": "finish", "finishReason": "stop"}
SHOWN: list[log.Event] = [
    log.StepDone(),
    log.PartBegun("msg_1", 0),
    log.Done(Said(text="x", body={})),
    log.Done(Widget(root={}, copy_text="")),
    log.Done(Ending(sentence="x", next="nothing")),
    log.Done(Summarised(messages=7)),
    log.Compacted(Summarised(messages=7)),
    log.Replaced(Widget(root={}, copy_text="")),
    log.Progress("x"),
    log.Begun(Work(id="wf_1")),
    log.Reset(),
]


def told(*events: log.Event, rendering: Rendering | None = None) -> list[dict[str, Any]]:
    """Without the beginning."""
    rendering = rendering or Rendering("run_1")
    chunks = [chunk for event in events for chunk in rendering.chunks(event)]
    return [chunk for chunk in chunks if chunk["type"] != "start"]


def test_the_message_begins_with_its_ids() -> None:
    metadata = {"interactionId": "run_1", "threadId": "thr_1"}
    [start] = Rendering("run_1").chunks(STARTED)
    assert start == {"type": "start", "messageId": "run_1", "messageMetadata": metadata}
    [start] = Rendering("run_1", "groceries").chunks(STARTED)
    assert start["messageMetadata"]["threadId"] == "groceries"
    [start] = Rendering("run_1").chunks(log.Progress("x"))
    assert start["messageMetadata"] == {"interactionId": "run_1"}


@pytest.mark.parametrize("event", SHOWN, ids=lambda event: type(event).__name__)
def test_what_a_page_shows_beside_it_is_left_out(event: log.Event) -> None:
    assert told(event) == []


def test_what_is_told_late_or_again_is_told_once() -> None:
    message = Message(id="msg_1", parts=["one", "two"])
    thought = Thought(id="rs_1", text="hmm")
    both = [log.Done(message), log.Done(thought)]
    chunks = told(log.Begun(thought), log.Grown("rs_1", 0, "h"), log.Grown("msg_1", 0, "o"), *both, log.Reset(), *both)
    assert [(chunk["type"], chunk["id"], chunk.get("delta")) for chunk in chunks] == [
        ("reasoning-start", "rs_1:0", None),
        ("reasoning-delta", "rs_1:0", "h"),
        ("text-start", "msg_1:0", None),
        ("text-delta", "msg_1:0", "o"),
        ("text-delta", "msg_1:0", "ne"),
        ("text-start", "msg_1:1", None),
        ("text-delta", "msg_1:1", "two"),
        ("text-end", "msg_1:0", None),
        ("text-end", "msg_1:1", None),
        ("reasoning-delta", "rs_1:0", "mm"),
        ("reasoning-end", "rs_1:0", None),
    ]
    grown = log.Grown("msg_2", 0, " ")
    assert [chunk["type"] for chunk in told(grown, log.Removed("msg_2"))] == ["text-start", "text-delta", "text-end"]


@pytest.mark.parametrize(
    ("end", "last"),
    [
        ([log.Ended("completed")], [FINISH]),
        (
            [log.Cancelled(), log.Ended("cancelled")],
            [{"type": "abort", "reason": "This answer was stopped before its end."}],
        ),
        (
            [log.Failed("Broken.", True), log.Ended("failed")],
            [{"type": "error", "errorText": "Broken."}, {**FINISH, "finishReason": "error"}],
        ),
    ],
    ids=["completed", "cancelled", "failed"],
)
def test_nothing_stays_open_however_it_ends(end: list[log.Event], last: list[dict[str, Any]]) -> None:
    rendering = Rendering("run_1")
    chunks = told(log.Grown("msg_1", 0, "o"), CALLED, *end, rendering=rendering)
    assert chunks[3]["type"] == "text-end"
    assert (chunks[4]["type"], chunks[4]["toolCallId"]) == ("tool-output-error", "c")
    assert chunks[5:] == last
    assert rendering.is_over


def test_a_step_lasts_until_the_next_one_or_the_end() -> None:
    kinds = [chunk["type"] for chunk in told(*[log.StepBegun(), log.StepDone()] * 2, log.Ended("completed"))]
    assert kinds == ["start-step", "finish-step", "start-step", "finish-step", "finish"]


def test_who_has_decided_goes_on_behind_their_decisions() -> None:
    other = log.Asked("apr_2", "d", "delete_task", "{}", "Delete that")
    before = [STARTED, log.StepBegun(), log.Grown("msg_1", 0, "I ask."), ASKED, other, log.Paused()]
    decisions = [log.Decided("apr_1", True, None), log.Decided("apr_2", False, None)]
    rendering = Rendering("run_1", decided=["apr_1", "apr_2"])
    chunks = told(*before, *decisions, rendering=rendering)
    assert chunks == [{"type": "tool-output-denied", "toolCallId": "d"}]
    assert not rendering.is_over
    rest = told(CALLED, log.Answered("c", "delete_task", "{}"), log.Paused(), rendering=rendering)
    assert [chunk["type"] for chunk in rest] == ["tool-input-available", "tool-output-available", "finish"]
    assert rendering.is_over


def test_what_is_not_heard_of_any_more_is_lost_or_waits() -> None:
    rendering = Rendering("run_1")
    told(STARTED, rendering=rendering)
    assert [chunk["type"] for chunk in rendering.lose()] == ["error"]
    told(ASKED, rendering=rendering)
    assert [chunk["type"] for chunk in rendering.lose()] == ["finish"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1]}', {"a": [1]}),
        ("[1]", [1]),
        ("7", "7"),
        ("Milk.", "Milk."),
        ('{"a": NaN}', '{"a": NaN}'),
        ('{"a": [1.5, 1e999]}', '{"a": [1.5, 1e999]}'),
        ('{"__proto__": 1}', '{"__proto__": 1}'),
        ('[{"constructor": {"prototype": 1}}]', '[{"constructor": {"prototype": 1}}]'),
        ("[" * 100_000, "[" * 100_000),
    ],
    ids=lambda value: str(value)[:20],
)
def test_arguments_and_outputs_are_values_that_every_client_can_read(text: str, value: Any) -> None:
    assert plain(text) == value


def test_a_frame_is_one_line_of_json_whatever_is_in_it() -> None:
    assert frame({"delta": "é\ud800\n\n"}) == 'data: {"delta": "é\\ud800\\n\\n"}\n\n'.encode()


async def test_a_stream_that_breaks_has_an_end() -> None:
    async def events(*_: Any, **__: Any) -> AsyncGenerator[None]:
        yield None
        raise OperationalError("SELECT 1", {}, Exception("away"))

    following = SimpleNamespace(events=events, place=lambda user_id: SimpleNamespace(user_id=user_id))
    door = ChatDoor(cast(Starting, SimpleNamespace(turns=SimpleNamespace(following=following))))
    frames = [frame async for frame in door._frames(Begun("run_1", None), "mine", following.place("alice"))]  # pyright: ignore[reportPrivateUsage]
    assert frames[0] == b": ping\n\n"
    assert json.loads(frames[-2].removeprefix(b"data: "))["type"] == "error"
    assert frames[-1] == b"data: [DONE]\n\n"
