"""`./todo import`."""

import os

import pytest

from tests.logins import as_owner


@pytest.fixture
def todo(start):
    """What `./todo` with these arguments says, and its exit status."""

    def run(*arguments: str, **settings: str) -> tuple[str, int]:
        kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        process = start("-m", "cli", *arguments, env=kept | {"NO_COLOR": "1"} | settings)
        output, _ = process.communicate(timeout=120)
        return output, process.returncode

    return run


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("nothing.txt", "No such file or directory"), (".", "Is a directory"), ("x" * 300, "File name too long")],
)
def test_a_file_that_cannot_be_opened_is_one_sentence(todo, tmp_path, name, sentence):
    file = tmp_path / name
    assert todo("import", str(file), "--user", "alice") == (f"error: {file} cannot be read: {sentence}.\n", 1)


@pytest.mark.long(seconds=18)
def test_a_file_is_imported_from_the_command_line(todo, tmp_path, database_url):
    settings = {"MIGRATION_DATABASE_URL": as_owner(database_url)}
    file = tmp_path / "todo.txt"
    file.write_text("buy milk\n(A) call mum due:2026-11-27\nnever due:2026-02-30\n")
    output, status = todo("import", str(file), "--user", "alice", **settings)
    assert output == (
        "Added 2 tasks.\n1 line could not be read; mend what is wrong and import the file again:\n"
        "line 3: 2026-02-30 is no day of the calendar: write one that exists, such as 2026-02-28.\n"
    )
    assert status == 1
    file.write_text(file.read_text().replace("02-30", "02-28"))
    again = todo("import", str(file), "--user", "alice", **settings)
    assert again == ("Added 1 task, 2 were there already.\n", 0)

    exported = tmp_path / "alice.json"
    todo("export", "--user", "alice", "--output", str(exported), **settings)
    of_bob = todo("import", str(exported), "--user", "bob", **settings)
    assert of_bob == ("Added 3 tasks.\n", 0)
    of_alice = todo("import", str(exported), "--user", "alice", **settings)
    assert of_alice == ("Added 0 tasks, 3 were there already.\n", 0)

    (tmp_path / "other.csv").write_text("Title,Due\nmilk,2026-11-27\n")
    output, status = todo("import", str(tmp_path / "other.csv"), "--user", "alice", **settings)
    assert output.startswith("error: This CSV is not Todoist's, ")
    assert (status, output.count("\n")) == (1, 1)


@pytest.mark.long(seconds=18)
def test_ten_thousand_tasks_are_imported_in_well_under_a_minute(todo, tmp_path, database_url):
    file = tmp_path / "todo.txt"
    file.write_text("".join(f"(B) task {number} +home @desk due:2026-11-27 rec:+1w\n" for number in range(10_000)))
    output, status = todo("import", str(file), "--user", "alice", MIGRATION_DATABASE_URL=as_owner(database_url))
    assert output.splitlines()[-1] == "Added 10,000 tasks."
    assert status == 0
