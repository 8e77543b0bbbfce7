"""Tables of the commands, which fit the terminal."""

import pytest

from common.commands import format_table

ROWS = [
    ("user", "model", "input tokens"),
    ("5f2b7a52-6f0a-4f0e-9d0f-0d4b3a6c1f11", "a-model-with-a-long-name", "1,234,567"),
    ("", "", "1"),
]


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_table_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = [*format_table(ROWS, left=(0, 1))]
    assert max(map(len, lines)) <= columns
    text = "".join(lines).replace(" ", "")
    assert sorted(text) == sorted("".join(map("".join, ROWS)).replace(" ", "")), "nothing is cut"
    if columns == 80:
        assert lines[-1].endswith(" 1")
        assert len(lines) == 3


def test_numbers_are_never_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    assert any("1,234,567" in line for line in format_table(ROWS, left=(0, 1)))
