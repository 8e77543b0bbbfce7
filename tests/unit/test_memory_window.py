"""How much of the user's memory the model reads, and in which frame."""

from hypothesis import given
from hypothesis import strategies as st

from backend.context.memory import render_memory

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
