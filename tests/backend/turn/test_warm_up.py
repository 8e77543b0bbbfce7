import pytest

from backend.turn.warm_up import warm_up
from tests.backend.conftest import Backend, Rows

LAST = "SELECT last_value + is_called::int AS number FROM messages_seq_seq"


async def test_the_turn_before_the_first_one_is_stored_to_its_end_and_undone(
    backend: Backend, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.app.warm_up", warm_up)
    [before] = rows(LAST)
    async with backend():
        pass
    for table in ("conversations", "runs", "messages"):
        assert rows(f"SELECT 1 FROM {table}") == []
    [after] = rows(LAST)
    assert after["number"] - before["number"] == 4, "a note, what was said, a step and its end took a number each"
