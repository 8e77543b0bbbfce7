"""`./todo bench` measures each of its rows, in small runs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT


def measure(directory: Path, *options: str) -> dict[str, dict[str, Any]]:
    """The rows of a run by name, which are also in the table that it prints."""
    file = directory / "figures.json"
    command = [sys.executable, "-m", "cli", "bench", "--json", file, *options]
    wide = os.environ | {"COLUMNS": "120"}
    done = subprocess.run(command, cwd=ROOT, env=wide, capture_output=True, text=True, check=True)
    steps = [line.partition(" s  ")[2] for line in done.stderr.splitlines()]
    assert steps[0] == "starting PostgreSQL"
    assert any(step.startswith("0 figures so far; measuring ") for step in steps)
    rows = {row["name"]: row for row in json.loads(file.read_text())["rows"]}
    assert [line for line in done.stdout.splitlines()[1:-2] if not line.startswith(tuple(rows))] == []
    return rows


def test_file_that_cannot_be_written(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cli", "bench", "--tiny", "--json", tmp_path / "none" / "figures.json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be written" in done.stderr


@pytest.mark.long(seconds=25)
def test_each_row_is_measured(tmp_path: Path) -> None:
    rows = measure(tmp_path, "--tiny")
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
def test_twice_the_load_is_rejected_and_all_else_is_answered(tmp_path: Path) -> None:
    rows = measure(tmp_path, "--at-once", "8", "--load", "--seconds", "4")
    assert rows["half load: errors"]["figure"] == rows["double load: errors"]["figure"] == 0
    assert rows["half load: answers"]["figure"] > 0
    assert rows["double load: rejected"]["figure"] > 0


@pytest.mark.extended
def test_soak_measures_whatever_could_grow(tmp_path: Path) -> None:
    rows = measure(tmp_path, "--at-once", "8", "--soak", "0.07")
    assert rows["soak: errors"]["figure"] == 0
    for name in ("memory", "descriptors", "tasks", "connections", "tool server's memory", "tool server's descriptors"):
        assert rows[f"soak: {name} at the end"]["baseline"] is not None
