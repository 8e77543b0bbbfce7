"""`python -m bench` measures each of its rows, in small runs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.logins import as_admin


def measure(database_url: str, work: Path, *options: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The lines that a run writes as it goes, and its rows by name."""
    command = [sys.executable, "-m", "bench", "--work", work, *options]
    addresses = {"DATABASE_URL": database_url, "MIGRATION_DATABASE_URL": as_admin(database_url)}
    done = subprocess.run(command, cwd=ROOT, env=os.environ | addresses, stdout=subprocess.PIPE, check=True)
    *progress, last = [json.loads(line) for line in done.stdout.splitlines()]
    return progress, {row["name"]: row for row in last["report"]["rows"]}


@pytest.mark.long(seconds=25)
def test_each_row_is_measured(fresh_database_url: str, tmp_path: Path) -> None:
    progress, rows = measure(fresh_database_url, tmp_path, "--scale", "tiny")
    shares = [line["share"] for line in progress]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    beside = {name: row["baseline_name"] for name, row in rows.items()}
    assert beside == {
        "memory of a streaming answer": "",
        "turn p50": "Agents SDK",
        "CPU of a turn": "Agents SDK",
        "first event": "",
        "turn p50, 16 conversations": "Agents SDK",
        "CPU of a turn, 16 conversations": "Agents SDK",
        "turns a second, 16 conversations": "Agents SDK",
        "a streamed token": "Agents SDK",
        "CPU of a streamed token": "Agents SDK",
        "tool calls a second, 16 callers": "",
        "open a long conversation": "20 items",
        "turn in a long conversation": "20 items",
        "first page of many tasks": "20 tasks",
    }
    assert all(row["figure"] > 0 for name, row in rows.items() if "turn" in name or "page" in name)
    assert all((row["ratio"] is not None) == bool(row["baseline_name"]) for row in rows.values())


@pytest.mark.extended
def test_twice_the_load_is_rejected_and_all_else_is_answered(fresh_database_url: str, tmp_path: Path) -> None:
    _, rows = measure(fresh_database_url, tmp_path, "--at-once", "8", "--load", "4")
    assert rows["half load: errors"]["figure"] == rows["double load: errors"]["figure"] == 0
    assert rows["half load: answers"]["figure"] > 0
    assert rows["double load: rejected"]["figure"] > 0


@pytest.mark.extended
def test_soak_measures_whatever_could_grow(fresh_database_url: str, tmp_path: Path) -> None:
    _, rows = measure(fresh_database_url, tmp_path, "--at-once", "8", "--soak", "4")
    assert rows["soak: errors"]["figure"] == 0
    for name in ("memory", "descriptors", "tasks", "connections", "tool server's memory", "tool server's descriptors"):
        assert rows[f"soak: {name} at the end"]["baseline"] is not None
