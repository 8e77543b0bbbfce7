"""What the model reads of calls that other branches of a conversation have made."""

from backend.context.render import render_branch_note
from backend.conversations.records import CallState, Entry, ToolCall


def make_call(number: int, state: CallState, output: str | None) -> ToolCall:
    """A call of one run; all calls of this test have the same key, as the same message was answered several times."""
    arguments = '{"title": "milk"}'
    return ToolCall(f"run_{number}", f"call_{number}", 1, "add_task", arguments, state, "same key", output=output)


def render(*calls: ToolCall) -> str | None:
    named = [{"run_id": call.run_id, "id": call.id} for call in calls]
    note = Entry("run_9", "note", "branch_note", details={"reason": "edit", "calls": named})
    return render_branch_note(note, {(call.run_id, call.id): call for call in calls})


def test_known_outcome_is_said_whichever_attempt_has_it() -> None:
    done, unknown = make_call(1, "done", "Added."), make_call(2, "unknown", None)
    for calls in ((done, unknown), (unknown, done)):
        note = render(*calls)
        assert note is not None
        assert note.count("add_task(") == 1
        assert "→ Added." in note


def test_unknown_outcome_is_said_where_no_attempt_knows_it() -> None:
    note = render(make_call(1, "unknown", None), make_call(2, "unknown", None))
    assert note is not None
    assert note.count("The outcome of this call is unknown") == 1
