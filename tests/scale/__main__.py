"""`python -m tests.scale restarts` and `python -m tests.scale cost`: docs/deployment.md says what they show."""

import argparse
import asyncio
import sys
import time

from tests.chaos.checks.stored import Stored
from tests.chaos.model import serve_model
from tests.chaos.plays import Plays
from tests.chaos.system import reachable_directory
from tests.scale import cost, rolling
from tests.scale.system import Scaled


async def restarts(rounds: int, people: int) -> None:
    """Every service so many times, one after the other."""
    with reachable_directory() as directory:
        async with serve_model() as model:
            scaled = Scaled(directory, model.url)
            try:
                began, before = time.monotonic(), scaled.proxy.statuses
                async with rolling.people_talk(scaled, people, Plays.some) as record:
                    for _ in range(rounds):
                        for name in scaled.services:
                            await rolling.restart(scaled, [name])
                took = time.monotonic() - began
                problems = list(Stored(scaled.cluster.admin_url).problems(record))
                outcomes, statuses = rolling.outcomes(scaled), scaled.proxy.statuses - before
            finally:
                scaled.stop()
    assert not problems, "\n".join(problems)
    _say(f"{rounds * len(scaled.services)} restarts in {took:.0f} s, {people} people; runs: {dict(outcomes)}")
    _say(f"answers of HAProxy by status: {dict(sorted(statuses.items()))}")


async def compare(turns: int, rounds: int, at_once: int) -> None:
    with reachable_directory() as directory:
        async with serve_model(token_seconds=0) as model:
            scaled = Scaled(directory, model.url, backends=2, mcp_servers=1, drain_seconds=0)
            try:
                one, two = await cost.compare(scaled, turns=turns, rounds=rounds, at_once=at_once)
            finally:
                scaled.stop()
    for name, found in (("one backend", one), ("two backends", two)):
        _say(
            f"{name}: {found.all:.1f} ms of processor time a turn (services {found.services:.1f}, PostgreSQL "
            f"{found.database:.1f}, HAProxy and PgBouncer {found.between:.1f}), {turns / found.seconds:.1f} turns/s"
        )
    _say(f"two against one: {two.all / one.all:.2f}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.scale", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    restarting = actions.add_parser("restarts", help="of every service while people talk")
    restarting.add_argument("--rounds", type=int, default=3)
    restarting.add_argument("--people", type=int, default=8)
    costing = actions.add_parser("cost", help="processor time of a turn with one backend and with two")
    costing.add_argument("--turns", type=int, default=200)
    costing.add_argument("--rounds", type=int, default=3)
    costing.add_argument("--at-once", type=int, default=1, metavar="TURNS")
    given = parser.parse_args()
    if given.action == "restarts":
        asyncio.run(restarts(given.rounds, given.people))
    else:
        asyncio.run(compare(given.turns, given.rounds, given.at_once))
