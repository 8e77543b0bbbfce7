"""Cards, notices and the work of sub-agents, rendered from records."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from chatkit.widgets import WidgetRoot
from pydantic import TypeAdapter

from backend.api.chatkit.render import render_card, render_entry, serialize
from backend.cards.agent_workflow import render_calls, render_workflow
from backend.cards.approvals import render_approval
from backend.cards.current_tasks import CurrentTasks, LastChange
from backend.cards.render import render_cards
from backend.cards.task import Task
from backend.conversations.records import Entry, Run, ToolCall
from common.changes import UNREAD, render_changes
from tests.support.cards import render_lines

AT = datetime(2026, 11, 25, 9, tzinfo=UTC)
MILK = {"id": 1, "title": "milk", "status": "pending", "also": []}
ADD = ToolCall(
    "run_1",
    "call_1",
    1,
    "add_task",
    '{"title": "milk"}',
    "done",
    "key",
    details=MILK,
    seq=2,
    result_seq=3,
    created_at=AT,
)
DELETE = replace(ADD, id="call_2", tool="delete_task", arguments='{"task_id": 1}', approval_text="Delete “milk”")


def changed(batch: str, *, is_undone: bool = False, **task: Any) -> CurrentTasks:
    """The task as it is, and what has changed it last."""
    last = LastChange(task_id=1, batch=batch, is_undone=is_undone)
    tasks = {1: Task.model_validate({**MILK, **task})} if task.get("status") != "gone" else {}
    return CurrentTasks(None, tasks, {1: last}, frozenset({1}))


async def test_undone_deletion() -> None:
    cards = await render_cards([DELETE], changed("run_1", is_undone=True))
    assert [render_lines({"widget": card.root}) for card in cards] == [["☐ milk · Restored"]]


def total(*changes: tuple[int, str], **more: Any) -> Entry:
    """What a run has changed, as it is stored with its outcome."""
    facts = [{"task_id": id, "title": f"task {id}", "change": change} for id, change in changes]
    return Entry("run_1", "ent_1", "changes", details={"changes": facts, **more}, last_seq=9, created_at=AT)


def last_changes(*batches: str, undone: int = 0) -> CurrentTasks:
    """What has changed each of the tasks last; the first of them are undone."""
    last = {id: LastChange(task_id=id, batch=batch, is_undone=id <= undone) for id, batch in enumerate(batches, 1)}
    return CurrentTasks(None, {}, last)


BREAD = replace(ADD, id="call_3", arguments='{"title": "bread"}', details={**MILK, "id": 2, "title": "bread"})
BOTH = [(1, "added"), (2, "added")]
OF_EACH = ["☐ milk · Added · [Undo all]", "☐ bread · Added · [Undo all]"]


@pytest.mark.parametrize(
    ("calls", "entry", "current", "lines"),
    [
        ([ADD], total((1, "added")), last_changes("run_1"), ["☐ milk · Added · [Undo]", "Added 1"]),
        ([ADD, BREAD], total(*BOTH), last_changes("run_1", "run_1"), ["Added 2 · [Undo]"]),
        ([ADD, BREAD], total(*BOTH, named=3), last_changes("run_1", "run_2"), ["Added 2 · Changed: 2 of the 3 named"]),
        ([ADD, BREAD], total(*BOTH), last_changes("run_1", "run_1", undone=1), ["Added 2 · [Undo]"]),
        ([ADD, BREAD], total(*BOTH), last_changes("run_1", "run_1", undone=2), ["Undone: Added 2"]),
        ([ADD, BREAD], total(*BOTH), CurrentTasks(), ["Added 2"]),
        ([], total(unread=True), CurrentTasks(), [UNREAD]),
        ([ADD, BREAD], total(unread=True), last_changes("run_1", "run_1"), [*OF_EACH, UNREAD]),
        ([], total(named=2), CurrentTasks(), [render_changes({"changes": [], "named": 2})]),
    ],
)
async def test_what_an_answer_changed_in_all_is_undone_in_one_place(
    calls: list[ToolCall], entry: Entry, current: CurrentTasks, lines: list[str]
) -> None:
    cards = await render_cards([*calls, entry], current)
    shown = [line for card in cards for line in render_lines({"widget": card.root})]
    assert [line for line in shown if "[Undo" in line or not line.startswith("☐")] == lines
    assert cards[-1].number == 9
    assert (cards[-1].copy_text, cards[-1].root["type"]) == (lines[-1].removesuffix(" · [Undo]"), "Basic")


@pytest.mark.parametrize(
    ("state", "reason", "badge", "why"),
    [
        ("approved", None, "Approved", None),
        ("running", None, "Approved", None),
        ("done", None, "Approved", None),
        ("failed", None, "Approved", None),
        ("unknown", "ended", "Approved", None),
        ("rejected", "user", "Rejected", None),
        ("rejected", "other_message", "Rejected", "Reason: You wrote something else instead."),
        ("rejected", "stopped", "Rejected", "Reason: You stopped this answer."),
        ("rejected", "reach_changed", "Not done", "Reason: What this may access has changed since you were asked."),
        ("not_made", "ended", "Not done", None),
    ],
)
def test_decided_approval(state: Any, reason: Any, badge: str, why: str | None) -> None:
    card = render_approval(replace(DELETE, state=state, reason=reason, approval_seq=4))
    assert card is not None
    assert "confirm" not in card.root
    assert render_lines({"widget": card.root})[0] == " · ".join(filter(None, ["Delete “milk”", badge, why]))


@pytest.mark.parametrize(
    ("kind", "details", "icon", "actions"),
    [
        ("notice", {"code": "cancelled"}, "play", ["continue"]),
        ("notice", {"code": "answer_over_limit"}, "play", ["continue"]),
        ("notice", {"code": "answer_repeated"}, "reload", ["retry"]),
        ("notice", {"code": "failed"}, "reload", ["retry"]),
        ("notice", {"code": "model_refused"}, "info", []),
        ("summary", {"messages": 2}, "info", []),
    ],
)
def test_actions_of_a_notice(kind: Any, details: Any, icon: str, actions: list[str]) -> None:
    item = render_entry("thr_1", Entry("run_1", "ent_1", kind, details=details, created_at=AT))
    assert item is not None
    shown = item.model_dump()
    assert (shown["task"]["icon"], shown["actions"]) == (icon, actions)


RUN = Run(
    user_id="user",
    id="run_2",
    conversation_id="thr_1",
    seq=5,
    previous_run_id=None,
    parent_run_id="run_1",
    parent_call_id="call_0",
    top_run_id="run_1",
    agent="coder",
    active=True,
    status="running",
    process_id=1,
    stop_requested=False,
    options={},
    usage=None,
    error_code=None,
    created_at=AT,
    running_since=AT,
    ended_at=None,
    end_seq=None,
)
START = replace(
    ADD, id="call_0", tool="do_with_coder", arguments='{"task": "write it"}', state="running", result_seq=None
)
WRITE = replace(
    ADD,
    run_id="run_2",
    tool="write_file",
    arguments='{"path": "a.txt"}',
    details={"ok": True, "path": "a.txt", "bytes": 5},
)


@pytest.mark.parametrize(
    ("call", "title", "state"),
    [
        (replace(WRITE, state="requested"), "Writing a.txt…", "none"),
        (replace(WRITE, state="awaiting_approval"), "Writing a.txt…", "none"),
        (replace(WRITE, state="running"), "Writing a.txt…", "running"),
        (WRITE, "Wrote a.txt", "done"),
        (replace(WRITE, state="failed", details={"ok": False}), "Writing a.txt failed", "failed"),
        (replace(WRITE, state="failed", details=None), "Writing a.txt failed", "failed"),
        (replace(WRITE, state="rejected", reason="user"), "Writing a.txt: refused", "failed"),
        (replace(WRITE, state="unknown"), "Writing a.txt: stopped", "failed"),
        (replace(WRITE, state="not_made"), "Writing a.txt: not made", "failed"),
    ],
)
async def test_step_of_a_sub_agent(call: ToolCall, title: str, state: str) -> None:
    workflow = render_workflow(START, RUN, [call], await render_calls([call], ""))
    assert [(step["title"], step["state"]) for step in workflow.steps] == [("Coder: write it", "none"), (title, state)]
    assert workflow.summary is None


async def test_cards_are_sent_as_chatkit_would_send_them() -> None:
    """They are not validated, which takes long for thousands of components."""
    records = [ADD, BREAD, DELETE, total(*BOTH)]
    cards = await render_cards(records, last_changes("run_1", "run_1"))
    asked = render_approval(replace(DELETE, state="awaiting_approval", approval_seq=4))
    decided = render_approval(replace(DELETE, state="approved", approval_seq=4))
    assert asked is not None
    assert decided is not None
    each = [*cards, asked, decided]
    assert len(cards) >= 2
    assert "confirm" in asked.root
    for card in each:
        item = render_card("thr_1", card)
        validated = item.model_copy(update={"widget": TypeAdapter[WidgetRoot](WidgetRoot).validate_python(card.root)})
        assert json.loads(serialize(item)) == json.loads(serialize(validated))
