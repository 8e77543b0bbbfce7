"""`python -m backend calendar`."""

from hashlib import sha256

import pytest

from backend.commands import calendar
from backend.commands import export as export_command
from tests.backend.conftest import Rows
from tests.logins import as_owner


@pytest.fixture(autouse=True)
def _environment(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIGRATION_DATABASE_URL", as_owner(database_url))
    for name in ("BACKEND_URL", "BACKEND_PORT"):
        monkeypatch.delenv(name, raising=False)


def made(capsys: pytest.CaptureFixture[str], user: str = "alice") -> str:
    calendar.run([f"--user={user}"])
    output, errors = capsys.readouterr()
    assert errors == ""
    return output


def kept(rows: Rows) -> dict[str, bytes | None]:
    return {row["user_id"]: row["calendar_hash"] for row in rows("SELECT user_id, calendar_hash FROM profiles")}


def test_it_prints_the_address_and_keeps_the_hash_of_its_secret(
    rows: Rows, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows("INSERT INTO profiles (user_id, time_zone) VALUES ('alice', 'Europe/Berlin')")
    first, second = made(capsys), made(capsys)
    made(capsys, "bob")
    assert first.startswith("http://localhost:8000/calendar/")
    secret = second.removeprefix("http://localhost:8000/calendar/").removesuffix(".ics\n")
    assert kept(rows)["alice"] == sha256(secret.encode()).digest()
    assert rows("SELECT time_zone FROM profiles WHERE user_id = 'alice'") == [{"time_zone": "Europe/Berlin"}]
    monkeypatch.setenv("BACKEND_PORT", "9000")
    assert made(capsys).startswith("http://localhost:9000/calendar/")
    monkeypatch.setenv("BACKEND_URL", "https://todo.example/")
    assert made(capsys).startswith("https://todo.example/calendar/")


def test_it_revokes_once_and_of_that_person_only(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    made(capsys)
    made(capsys, "bob")
    calendar.run(["--user=alice", "--revoke"])
    assert capsys.readouterr() == ("", "The address of alice's calendar opens nothing any more.\n")
    assert kept(rows)["alice"] is None
    assert kept(rows)["bob"] is not None
    with pytest.raises(SystemExit, match=r"^alice has no address of a calendar: check the name\.$"):
        calendar.run(["--user=alice", "--revoke"])


@pytest.mark.parametrize("url", ["todo.example", "https://todo.example/?x", "ftp://todo.example"])
def test_an_address_that_is_none_is_refused(
    rows: Rows, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BACKEND_URL", url)
    with pytest.raises(SystemExit, match="BACKEND_URL must be the address people reach the page by"):
        calendar.run(["--user=alice"])
    assert kept(rows) == {}
    assert capsys.readouterr().out == ""


def test_an_export_says_that_there_is_one_and_not_its_hash(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    made(capsys)
    [stored] = kept(rows).values()
    assert stored is not None
    export_command.run(["--user", "alice"])
    exported = capsys.readouterr().out
    assert '"profiles": [\n{"time_zone": null, "calendar": true, ' in exported
    assert stored.hex() not in exported
