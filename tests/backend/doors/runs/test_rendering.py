"""Each event of a log, as the run API tells it."""

from typing import Any

import pytest

from backend.conversation.items import Ending, Message, Said, Summarised, Thought, Widget
from backend.doors.runs.rendering import Rendering, status_of
from backend.turn import log
from tests.runs_client import SHAPES

MESSAGE = Message(id="msg_1", parts=["one", "two"])
THOUGHT = Thought(id="rs_1", text="hm")
MINE = {"interaction_id": "run_1"}
TOLD: list[tuple[log.Event, list[tuple[str, dict[str, Any]]]]] = [
    (log.Started({}, True, None), [("interaction_started", {**MINE, "chat_id": "groceries"})]),
    (log.StepBegun(), [("turn_start", MINE)]),
    (log.StepDone(), [("turn_end", MINE)]),
    (log.Begun(MESSAGE), []),
    (log.PartBegun("msg_1", 0), []),
    (log.Grown("msg_1", 0, "o"), [("answer_delta", {"content": "o"})]),
    (log.Grown("rs_1", 0, "h"), [("thinking_delta", {"content": "h"})]),
    (log.PartDone("msg_1", 0, "one"), []),
    (log.Done(MESSAGE), [("answer", {"content": "one\ntwo"})]),
    (log.Done(THOUGHT), [("thinking", {"content": "hm"})]),
    (log.Done(Said(text="x", body={})), []),
    (log.Done(Widget(root={}, copy_text="")), []),
    (log.Done(Ending(sentence="x", next="nothing")), []),
    (log.Replaced(Widget(root={}, copy_text="")), []),
    (log.Removed("msg_1"), []),
    (log.Called("c", "t", "{}"), [("tool_call", {"id": "c", "tool_name": "t", "tool_input": "{}"})]),
    (log.Answered("c", "t", "[]"), [("tool_result", {"id": "c", "tool_name": "t", "tool_output": "[]"})]),
    (
        log.Asked("apr_1", "c", "t", "{}", "Do it", "coder"),
        [
            (
                "approval_required",
                {"approval_id": "apr_1", "tool_name": "t", "tool_input": "{}", "text": "Do it", "agent": "coder"},
            )
        ],
    ),
    (log.Decided("apr_1", True, None), [("approved", {"approval_id": "apr_1", "reason": None})]),
    (log.Decided("apr_1", False, "no"), [("rejected", {"approval_id": "apr_1", "reason": "no"})]),
    (log.Compacted(Summarised(messages=7)), [("compaction", {"messages": 7})]),
    (log.Done(Summarised(messages=7)), []),
    (log.WorkedOn("wf_1", 0, {"title": "x"}), []),
    (log.Progress("x"), []),
    (log.Notice("x"), []),
    (log.Failed("Broken.", True), [("error", {"error": "Broken.", "allow_retry": True})]),
    (log.Paused(), []),
    (log.Reset(), [("reset", MINE)]),
    (log.Ended("completed"), [("interaction_complete", {**MINE, "status": "COMPLETED"})]),
    (log.Ended("failed"), [("interaction_complete", {**MINE, "status": "FAILED"})]),
    (log.Cancelled(), [("cancelled", MINE)]),
    (log.Ended("cancelled"), [("interaction_complete", {**MINE, "status": "CANCELLED"})]),
]


@pytest.mark.parametrize(("event", "told"), TOLD, ids=lambda value: type(value).__name__)
def test_each_event_is_told_in_its_shape(event: log.Event, told: list[tuple[str, dict[str, Any]]]) -> None:
    one = Rendering("groceries", "run_1").event(event)
    rendered = [(one.name, one.data)] if one else []
    assert rendered == told
    assert all(set(data) == SHAPES[name] for name, data in rendered)


def test_no_event_of_a_log_is_forgotten() -> None:
    assert {type(event) for event, _ in TOLD} == set(log.Event.__args__)


def test_what_the_server_ended_has_failed_with_a_reason() -> None:
    complete = Rendering("groceries", "run_1").event(log.Ended("interrupted"))
    assert complete is not None
    assert complete.data["status"] == "FAILED"
    assert complete.data["reason"].startswith("The server had to end")


@pytest.mark.parametrize(
    ("status", "outcome", "told"),
    [
        ("running", None, "RUNNING"),
        ("waiting", None, "WAITING_APPROVAL"),
        ("ended", "completed", "COMPLETED"),
        ("ended", "failed", "FAILED"),
        ("ended", "interrupted", "FAILED"),
        ("ended", "cancelled", "CANCELLED"),
    ],
)
def test_a_status_has_the_word_of_the_api(status: str, outcome: Any, told: str) -> None:
    assert status_of(status, outcome) == told
