"""`python -m tests.scale restarts` restarts services under load."""

import argparse
import asyncio
import sys
import time

from tests.chaos.checks.stored_rows import StoredRows
from tests.chaos.model import serve_model
from tests.chaos.scenarios import Scenarios
from tests.chaos.system import reachable_directory
from tests.scale import rolling
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


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.scale", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    restarts_parser = actions.add_parser("restarts", help="restart every service while users talk")
    restarts_parser.add_argument("--rounds", type=int, default=3)
    restarts_parser.add_argument("--users", type=int, default=8)
    arguments = parser.parse_args()
    asyncio.run(restart_services(arguments.rounds, arguments.users))
