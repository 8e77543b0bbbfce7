"""What the model reads beside the messages: how much of the memory, and notes of what other branches did."""

from hypothesis import given
from hypothesis import strategies as st

from backend.context.memory import render_memory
from backend.context.render import render_branch_note
from backend.conversations.records import CallState, Entry, ToolCall

LINES = st.lists(st.text(max_size=30), max_size=20)


@given(LINES.map("\n".join), st.integers(min_value=0, max_value=2_000))
def test_frame_and_share(text: str, tokens: int) -> None:
    found = render_memory(text, tokens=tokens)
    assert 0 <= found.lines_read <= found.lines <= text.count("\n") + 1
    assert (found.notes == "") == (found.lines_read == 0)
    if found.notes:
        before, _, rest = found.notes.partition("<PersonNotes>\n")
        notes, end, after = rest.partition("</PersonNotes>")
        assert (end, after) == ("</PersonNotes>", "\n")
        assert not set(before + notes) & set("<>") - set(before)
        assert len(notes.encode()) <= tokens // 4 * 3
        assert notes.count("\n") == found.lines_read


@given(LINES.map("\n".join))
def test_smaller_share_is_the_end_of_a_larger_one(text: str) -> None:
    little, all_of_it = render_memory(text, tokens=200), render_memory(text, tokens=200_000)
    assert all_of_it.lines_read == all_of_it.lines
    assert all_of_it.notes.endswith(little.notes.partition("<PersonNotes>\n")[2])


def make_call(number: int, state: CallState, output: str | None) -> ToolCall:
    """A call of one run; all calls of this test have the same key, as the same message was answered several times."""
    arguments = '{"title": "milk"}'
    return ToolCall(f"run_{number}", f"call_{number}", 1, "add_task", arguments, state, "same key", output=output)


def render_notes(*calls: ToolCall) -> str | None:
    named = [{"run_id": call.run_id, "id": call.id} for call in calls]
    note = Entry("run_9", "note", "branch_note", details={"reason": "edit", "calls": named})
    return render_branch_note(note, {(call.run_id, call.id): call for call in calls})


def test_known_outcome_is_said_whichever_attempt_has_it() -> None:
    done, unknown = make_call(1, "done", "Added."), make_call(2, "unknown", None)
    for calls in ((done, unknown), (unknown, done)):
        note = render_notes(*calls)
        assert note is not None
        assert note.count("add_task(") == 1
        assert "→ Added." in note


def test_unknown_outcome_is_said_where_no_attempt_knows_it() -> None:
    note = render_notes(make_call(1, "unknown", None), make_call(2, "unknown", None))
    assert note is not None
    assert note.count("The outcome of this call is unknown") == 1
