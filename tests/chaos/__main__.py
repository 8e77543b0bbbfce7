import argparse
import asyncio
import random
import sys
from pathlib import Path

from tests import chaos
from tests.chaos import harness, patience

_EVERY = 10  # kills


def _told(count: int) -> None:
    if count % _EVERY == 0:
        _say(f"{count} kills")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=chaos.__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--workers", type=int, default=1, help="of each service; then mostly one of them is killed")
    parser.add_argument("--agents", action="store_true", help="people let agents work; the workspace is killed, too")
    parser.add_argument("--scaled", action="store_true", help="several of each service, HAProxy and PgBouncer")
    parser.add_argument("--keep", type=Path, help="a directory for the data and the logs, to be looked at afterwards")
    given = parser.parse_args()
    patience.SECONDS = 900.0  # a busy machine takes long to start again what was killed
    _say(f"seed {given.seed}")
    if given.keep:
        given.keep.mkdir(parents=True)
        given.keep.chmod(0o711)
    options = {"workers": given.workers, "agents": given.agents, "scaled": given.scaled, "directory": given.keep}
    _say(asyncio.run(harness.run(given.kills, given.seed, **options, told=_told)))
