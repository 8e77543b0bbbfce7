"""A service with a name, and what one of that name that died left running."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from backend.conversation import rows as rows_of
from backend.conversation.runs import abandoned
from backend.turn.lifecycle import endings
from tests.conftest import ROOT, find_free_port
from tests.processes import ServiceProcess

Rows = Callable[..., list[dict[str, Any]]]

LARGE = {"agents", "chatkit", "fastapi", "openai", "sqlalchemy", "uvicorn"}


def begin_run(rows: Rows, number: int, *, worker: str) -> None:
    here = (f"thr_{number}", f"person {number}")
    rows('INSERT INTO conversations (id, user_id, status) VALUES (%s, %s, \'{"type": "active"}\')', *here)
    rows(
        "INSERT INTO runs (id, conversation_id, user_id, status, worker) VALUES (%s, %s, %s, 'running', %s)",
        f"run_{number}",
        *here,
        worker,
    )


def running(rows: Rows) -> set[str]:
    return {row["id"] for row in rows("SELECT id FROM runs WHERE status = 'running'")}


def test_the_runs_of_dead_workers_end_and_no_others(rows: Rows, database_url: str) -> None:
    for number, worker in enumerate(("dead/0", "dead/1", "dead/10", "dead", "alive/0")):
        begin_run(rows, number, worker=worker)
    ended = abandoned.end_runs_of(["dead/0", "dead/1"], database_url)
    assert set(ended) == {("run_0", "thr_0", "person 0"), ("run_1", "thr_1", "person 1")}
    assert running(rows) == {"run_2", "run_3", "run_4"}
    assert rows("SELECT DISTINCT outcome FROM runs WHERE status = 'ended'") == [{"outcome": "interrupted"}]
    assert abandoned.end_runs_of(["dead/0", ""], database_url) == []


def test_their_conversations_say_so_as_for_any_other_end(rows: Rows, database_url: str) -> None:
    begin_run(rows, 0, worker="dead/0")
    abandoned.end_runs_of(["dead/0"], database_url)
    [told] = rows("SELECT user_id, conversation_id, run_id, id, role, kind, item FROM messages")
    expected = rows_of.as_shown("thr_0", endings.cut("interrupted")).model_dump(mode="json", by_alias=True)
    item = rows_of.THREAD_ITEM.validate_python(told.pop("item")).model_dump(mode="json", by_alias=True)
    assert item.pop("id") == told.pop("id")
    assert {**item, "id": "", "created_at": ""} == {**expected, "id": "", "created_at": ""}
    assert told == {"user_id": "person 0", "conversation_id": "thr_0", "run_id": "run_0", "role": "app", "kind": "task"}


def test_a_run_without_its_conversation_ends_too(rows: Rows, database_url: str) -> None:
    begin_run(rows, 0, worker="dead/0")
    rows("DELETE FROM conversations")
    assert abandoned.end_runs_of(["dead/0"], database_url) == [("run_0", None, "person 0")]
    assert rows("SELECT 1 FROM messages") == []


def test_a_database_that_is_away_is_told() -> None:
    with pytest.raises(psycopg.OperationalError):
        abandoned.end_runs_of(["dead/0"], f"postgresql://nobody@127.0.0.1:{find_free_port()}/none")


def test_nothing_large_is_imported_before(database_url: str) -> None:
    code = f"import backend.named, sys; sys.exit(str(set(sys.modules) & {LARGE}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == "set()\n"


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "workers", "names"),
    [(["--name=one"], "1", ["one/0"]), (["--name=one", "--pause=600"], "2", ["one/0", "one/1"])],
)
def test_a_service_ends_what_one_of_its_name_left_before_it_waits_and_starts(
    rows: Rows, database_url: str, tmp_path: Path, arguments: list[str], workers: str, names: list[str]
) -> None:
    for number, worker in enumerate([*names, "another/0", "one/2"]):
        begin_run(rows, number, worker=worker)
    environment = {"DATABASE_URL": database_url, "BACKEND_WORKERS": workers, "LLM_PROVIDER": "offline"}
    service = ServiceProcess("backend", "BACKEND_PORT", tmp_path / "log", *arguments, **environment)
    service.start()
    assert service.process is not None
    try:
        while len(running(rows)) > 2:
            assert service.process.poll() is None, service.log_text
        assert running(rows) == {f"run_{len(names)}", f"run_{len(names) + 1}"}
        if "--pause=600" not in arguments:
            service.wait_until_ready(path="/health")
            assert '"run": "run_0"' in service.log_text
    finally:
        service.process.kill()
        service.process.wait()


@pytest.mark.parametrize("arguments", [["--name"], ["--pause=1"], ["--name=one", "--named-by-host"], ["--nam3=one"]])
def test_a_name_that_is_none_is_refused(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "backend", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage: backend" in done.stderr
