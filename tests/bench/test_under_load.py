import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from bench.drivers.arrivals import Meter, pauses
from bench.measure.capacity.under_load import Answers, Idle, Phase, pace
from bench.measure.capacity.watched import Look, Looks
from bench.rows import UNDER_LOAD
from tests.conftest import ROOT
from tests.logins import as_admin


def test_a_percentile_of_gaps_is_that_of_all_streams_together() -> None:
    meter = Meter()
    assert meter.percentile_ms(99) == 0
    for gap in (*[0.0201] * 98, 0.3, 0.3, 200.0):
        meter.gap(gap)
    assert (meter.percentile_ms(50), meter.percentile_ms(98), meter.percentile_ms(99)) == (21, 301, 301)
    assert meter.percentile_ms(100) == 60_001


def test_arrivals_are_the_same_for_the_same_seed_and_as_many_as_are_asked_for() -> None:
    first, again, other = (list(islice(pauses(50, seed, even=False), 10_000)) for seed in (1, 1, 2))
    assert first == again != other
    assert sum(first) == pytest.approx(10_000 / 50, rel=0.05)
    assert min(first) < 0.001 < 0.1 < max(first)
    assert set(islice(pauses(50, 1, even=True), 3)) == {1 / 50}


@pytest.mark.parametrize(("reading", "tokens_a_second"), [(10.0, 10.0), (0.0, 50.0)])
def test_many_streams_get_as_much_of_the_core_as_half_of_them_had(reading: float, tokens_a_second: float) -> None:
    looks = Looks([Look(at=at, cpu=0.5 * at, memory=1, reading=reading) for at in range(5)])
    half = Phase("half load", Answers(1.0), 10.0, Meter(), looks)
    assert pace(50, half, Idle(0.001, 0.001, cpu=0.0)) == pytest.approx(tokens_a_second)


def measured(database_url: str, work: Path, *options: str) -> dict[str, Any]:
    """What a run of seconds found, where eight answers at once are the most."""
    command = [sys.executable, "-m", "bench", "--work", work, "--at-once", "8", *options]
    addresses = {"DATABASE_URL": database_url, "MIGRATION_DATABASE_URL": as_admin(database_url)}
    done = subprocess.run(command, cwd=ROOT, env=os.environ | addresses, stdout=subprocess.PIPE, check=True)
    *_, last = map(json.loads, done.stdout.splitlines())
    assert last["report"]["notes"] == []
    return {row["name"]: row for row in last["report"]["rows"]}


@pytest.mark.long
@pytest.mark.alone
def test_what_is_too_much_is_refused_and_all_else_is_answered(fresh_database_url: str, tmp_path: Path) -> None:
    rows = measured(fresh_database_url, tmp_path, "--load", "3")
    assert {name for name in UNDER_LOAD if not name.startswith("soak")} <= rows.keys()
    for name in ("half load: errors", "double load: errors", "afterwards: answers that still run"):
        assert rows[name]["figure"] == 0
    assert rows["capacity: streams at once"]["figure"] >= 4
    assert rows["double load: refused"]["figure"] > 0
    assert rows["double load: longest time to a refusal"]["figure"] > 0


@pytest.mark.long
def test_a_soak_looks_at_all_that_could_grow(fresh_database_url: str, tmp_path: Path) -> None:
    rows = measured(fresh_database_url, tmp_path, "--soak", "3")
    assert {name for name in UNDER_LOAD if name.startswith("soak")} <= rows.keys()
    assert rows["soak: answers"]["figure"] > 10
    assert min(row["figure"] for name, row in rows.items() if name != "soak: errors") > 0
