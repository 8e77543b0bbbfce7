"""`./todo bench`: the verdict of each row, and small runs of all measurements."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.rows import TARGETS, UNDER_LOAD, Row, Target
from cli.commands.development import report
from tests.chaos.system import reachable_directory
from tests.conftest import ROOT
from tests.logins import as_admin

ALMOST_NOTHING = ("memory", "what a follower adds")
"""Rows that are differences: they may be zero or less where the machine is busy."""


@pytest.mark.parametrize(
    ("target", "ratio", "figure", "reached"),
    [
        (Target(2), 2.0, 99.0, True),
        (Target(2), 2.01, 1.0, False),
        (Target(0.4, "≥"), 0.4, 1.0, True),
        (Target(0.4, "≥"), 0.39, 1.0, False),
        (Target(5, of="figure"), 9.0, 5.0, True),
        (Target(5, of="figure"), 1.0, 5.1, False),
    ],
)
def test_target_is_reached_up_to_its_bound(target: Target, ratio: float, figure: float, reached: bool) -> None:
    assert target.reached(figure=figure, ratio=ratio) is reached


def test_table_shows_every_row_with_its_verdict() -> None:
    (name, *_) = TARGETS
    rows = [Row(name, 50.0, "ms", 20.0, "floor", 2.5), Row("other", 1234.5, "/s")]
    reported = {"machine": {"cores": 2, "python": "3.11"}, "seconds": 1.0, "notes": ["A note."]}
    _, first, second, *_ = report.table(json.loads(json.dumps(reported | {"rows": [row.as_json() for row in rows]})))
    assert first.startswith(f"{name}  ")
    assert first.endswith("MISSED")
    assert second.split() == ["other", "1,234", "/s"]


def measure(database_url: str, work: Path, *options: str) -> list[dict[str, Any]]:
    """The lines that a run prints, the last of them with the report."""
    command = [sys.executable, "-m", "bench", "--work", work, *options]
    addresses = {"DATABASE_URL": database_url, "MIGRATION_DATABASE_URL": as_admin(database_url)}
    done = subprocess.run(command, cwd=ROOT, env=os.environ | addresses, stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def rows_of(lines: list[dict[str, Any]]) -> dict[str, Any]:
    return {row["name"]: row for row in lines[-1]["report"]["rows"]}


@pytest.mark.extended
def test_small_run_measures_every_row_with_a_target(fresh_database_url: str) -> None:
    with reachable_directory() as work:
        lines = measure(fresh_database_url, work, "--scale", "tiny")
    rows = rows_of(lines)
    shares = [line["share"] for line in lines[:-1]]
    assert shares == sorted(shares)
    assert TARGETS.keys() <= rows.keys()
    assert [name for name, row in rows.items() if row["figure"] <= 0 and not name.startswith(ALMOST_NOTHING)] == []
    assert len(list(report.table(lines[-1]["report"]))) > len(rows)


@pytest.mark.extended
def test_overload_is_refused_and_all_else_is_answered(fresh_database_url: str, tmp_path: Path) -> None:
    lines = measure(fresh_database_url, tmp_path, "--at-once", "8", "--load", "3")
    rows = rows_of(lines)
    assert lines[-1]["report"]["notes"] == []
    assert {name for name in UNDER_LOAD if not name.startswith("soak")} <= rows.keys()
    for name in ("half load: errors", "double load: errors", "afterwards: answers that still run"):
        assert rows[name]["figure"] == 0
    assert rows["double load: refused"]["figure"] > 0


@pytest.mark.extended
def test_soak_measures_all_that_could_grow(fresh_database_url: str, tmp_path: Path) -> None:
    rows = rows_of(measure(fresh_database_url, tmp_path, "--at-once", "8", "--soak", "3"))
    assert {name for name in UNDER_LOAD if name.startswith("soak")} <= rows.keys()
    assert rows["soak: answers"]["figure"] > 10
    assert rows["soak: errors"]["figure"] == 0
