"""`./todo import`, on the shared stack's database."""

from pathlib import Path

import pytest

from tests.support.commands import todo, todo_at
from tests.support.fixtures import NewUser
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User


@pytest.mark.parametrize("name", ["nothing.txt", ".", "x" * 300])
def test_file_that_cannot_be_opened(tmp_path: Path, name: str) -> None:
    done = todo("import", str(tmp_path / name), "--user", "alice")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.long(seconds=18)
async def test_import(stack: Stack, user: User, new_user: NewUser, stored: Stored, tmp_path: Path) -> None:
    """Again it adds what was corrected since; an export can be imported for another user."""
    file, exported, other = tmp_path / "todo.txt", tmp_path / "export.json", new_user()

    async def imported(path: Path, name: str) -> int:
        done = await todo_at(stack, "import", str(path), "--user", name)
        assert "Traceback" not in done.stderr
        return done.returncode

    file.write_text("buy milk\n(A) call mum due:2026-11-27\nnever due:2026-02-30\n")
    assert await imported(file, user.name) == 1, "a line cannot be read"
    assert stored.titles(user.name) == ["buy milk", "call mum"]
    file.write_text(file.read_text().replace("02-30", "02-28"))
    assert await imported(file, user.name) == 0
    assert stored.titles(user.name) == ["buy milk", "call mum", "never"]
    await todo_at(stack, "export", "--user", user.name, "--output", str(exported))
    for name in (other.name, user.name):
        assert await imported(exported, name) == 0
        assert stored.titles(name) == ["buy milk", "call mum", "never"]
    (tmp_path / "other.csv").write_text("Title,Due\nmilk,2026-11-27\n")
    assert await imported(tmp_path / "other.csv", user.name) == 1
