import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.rows import TARGETS, Row, Target
from cli.commands.development import report
from tests.chaos.system import reachable_directory
from tests.conftest import ROOT
from tests.logins import as_admin


def reported(*rows: Row) -> dict[str, Any]:
    machine = {"cores": 2, "python": "3.11"}
    return json.loads(
        json.dumps({"machine": machine, "seconds": 1.0, "notes": ["A note."], "rows": [row.as_json() for row in rows]})
    )


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
def test_a_target_is_reached_up_to_its_bound_and_not_beyond(
    target: Target, ratio: float, figure: float, reached: bool
) -> None:
    assert target.reached(figure=figure, ratio=ratio) is reached


def test_every_target_of_the_project_is_in_the_table() -> None:
    assert {name: str(target) for name, target in TARGETS.items()} == {
        "turn p50, 1 conversation": "ratio ≤ 1.5",
        "turns a second, 16 conversations": "ratio ≥ 0.75",
        "turn p99, 16 conversations, to its p50": "ratio ≤ 2",
        "first event": "figure ≤ 5",
        "the terminal's prompt": "figure ≤ 500",
        "a streamed token": "ratio ≤ 3",
        "what the log adds to a token, 1 stream": "ratio ≤ 2",
        "what the log adds to a token, 50 streams": "ratio ≤ 0.15",
        "a resumed reader, of a running answer": "figure ≤ 50",
        "a resumed reader, 200 events behind": "figure ≤ 50",
        "tool calls a second at 16": "ratio ≥ 0.65",
        "tool calls a second at 16, with tokens": "ratio ≥ 0.3",
        "open a long thread": "ratio ≤ 1.2",
        "turn in a long thread": "ratio ≤ 1.2",
        "memory of a streaming turn": "ratio ≤ 1.2",
        "first page of many tasks": "ratio ≤ 1.2",
        **{f"list_tasks by {name}": "figure ≤ 1" for name in ("query", "due day", "day done")},
        **{f"list_tasks by {name}": "figure ≤ 4" for name in ("label", "priority")},
        **{f"list_tasks by {name}, of many": "figure ≤ 60" for name in ("query", "due day", "day done")},
        **{f"list_tasks by {name}, of many": "figure ≤ 150" for name in ("label", "priority")},
        "first turn after /ready": "ratio ≤ 2",
        "transactions in a tool turn": "figure ≤ 6",
        "round trips in a tool turn": "figure ≤ 10",
    }


def test_the_table_shows_every_row_with_its_verdict() -> None:
    (name, *_) = TARGETS
    rows = [Row(name, 50.0, "ms", 20.0, "floor", 2.5), Row("other", 1234.5, "/s")]
    headings, first, second, _, note, machine = report.table(reported(*rows))
    assert headings.split() == ["figure", "baseline", "ratio", "target"]
    assert first.split("  ")[0] == name
    assert first.split()[-9:] == ["50.0", "ms", "20.0", "floor", "2.50", "ratio", "≤", "1.5", "MISSED"]
    assert second.split() == ["other", "1,234", "/s"]
    assert (note, machine) == ("A note.", "1 seconds on 2 cores, Python 3.11.")


@pytest.mark.long(seconds=95)
def test_a_small_run_measures_every_row_that_has_a_target(fresh_database_url: str) -> None:
    addresses = {"DATABASE_URL": fresh_database_url, "MIGRATION_DATABASE_URL": as_admin(fresh_database_url)}
    with reachable_directory() as work:
        command = [sys.executable, "-m", "bench", "--scale", "tiny", "--work", work]
        done = subprocess.run(command, cwd=ROOT, env=os.environ | addresses, stdout=subprocess.PIPE, check=True)
    *progress, last = map(json.loads, done.stdout.splitlines())
    shares = [line["share"] for line in progress]
    assert shares == sorted(shares)
    rows = {row["name"]: row for row in last["report"]["rows"]}
    assert TARGETS.keys() <= rows.keys()
    assert all(row["figure"] > 0 for name, row in rows.items() if not name.startswith(("memory", "what the log adds")))
    assert {row["reached"] for name, row in rows.items() if name not in TARGETS} == {None}
    assert len(list(report.table(last["report"]))) > len(rows)


@pytest.mark.long(seconds=65)
def test_two_checkouts_are_measured_beside_each_other(
    fresh_database_url: str, database_url: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "bench", "--scale", "tiny", "--work", tmp_path, "--against", ROOT]
    addresses = {"DATABASE_URL": fresh_database_url, "MIGRATION_DATABASE_URL": as_admin(fresh_database_url)}
    addresses |= {"AGAINST_DATABASE_URL": database_url, "AGAINST_MIGRATION_DATABASE_URL": as_admin(database_url)}
    done = subprocess.run(command, cwd=ROOT, env=os.environ | addresses, stdout=subprocess.PIPE, check=True)
    rows = {row["name"]: row for row in json.loads(done.stdout.splitlines()[-1])["report"]["rows"]}
    assert {row["against"] for row in rows.values()} == {"the other"}
    assert {"turn p50, 1 conversation, to the other", "open a long thread, to the other"} < rows.keys()
    assert "a resumed reader, 200 events behind, to the other" in rows
