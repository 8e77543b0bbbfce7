"""`python -m tests.scale restarts` restarts services under load; `python -m tests.scale cost` measures CPU time."""

import argparse
import asyncio
import sys
import time

from tests.chaos.checks.stored_rows import StoredRows
from tests.chaos.model import serve_model
from tests.chaos.scenarios import Scenarios
from tests.chaos.system import reachable_directory
from tests.scale import cost, rolling
from tests.scale.system import ScaledSystem


async def restart_services(rounds: int, users: int) -> None:
    """Restarts every service once a round, one after the other, while users talk."""
    with reachable_directory() as directory:
        async with serve_model() as model:
            system = ScaledSystem(directory, model.url)
            try:
                start, before = time.monotonic(), system.proxy.statuses
                async with rolling.simulate_users(system, users, Scenarios.run_random) as record:
                    for _ in range(rounds):
                        for name in system.services:
                            await rolling.restart(system, [name])
                seconds = time.monotonic() - start
                problems = StoredRows(system.cluster.admin_url).find_problems(record)
                outcomes, statuses = rolling.count_outcomes(system), system.proxy.statuses - before
            finally:
                system.stop()
    assert not problems, "\n".join(problems)
    _print(f"{rounds * len(system.services)} restarts in {seconds:.0f} s, {users} users; runs: {dict(outcomes)}")
    _print(f"responses of HAProxy by status: {dict(sorted(statuses.items()))}")


async def compare_cost(runs: int, rounds: int, concurrency: int) -> None:
    with reachable_directory() as directory:
        async with serve_model(token_seconds=0) as model:
            system = ScaledSystem(directory, model.url, backends=2, mcp_servers=1, drain_seconds=0)
            try:
                one, two = await cost.compare(system, runs=runs, rounds=rounds, concurrency=concurrency)
            finally:
                system.stop()
    for name, result in (("one backend", one), ("two backends", two)):
        _print(
            f"{name}: {result.total:.1f} ms of processor time per run (services {result.services:.1f}, PostgreSQL "
            f"{result.database:.1f}, HAProxy and PgBouncer {result.proxies:.1f}), {runs / result.seconds:.1f} runs/s"
        )
    _print(f"two against one: {two.total / one.total:.2f}")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.scale", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    restarts_parser = actions.add_parser("restarts", help="restart every service while users talk")
    restarts_parser.add_argument("--rounds", type=int, default=3)
    restarts_parser.add_argument("--users", type=int, default=8)
    cost_parser = actions.add_parser("cost", help="compare the processor time of a run with one and two backends")
    cost_parser.add_argument("--runs", type=int, default=200)
    cost_parser.add_argument("--rounds", type=int, default=3)
    cost_parser.add_argument("--concurrency", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.action == "restarts":
        asyncio.run(restart_services(arguments.rounds, arguments.users))
    else:
        asyncio.run(compare_cost(arguments.runs, arguments.rounds, arguments.concurrency))
