import argparse
import asyncio
import random
import sys
from pathlib import Path

from tests import chaos
from tests.chaos import conversation, harness

_PROGRESS_INTERVAL = 10  # kills


def _print_progress(kills: int) -> None:
    if kills % _PROGRESS_INTERVAL == 0:
        _print(f"{kills} kills")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=chaos.__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--agents", action="store_true", help="users start agents, and the workspace is killed, too")
    parser.add_argument("--scaled", action="store_true", help="several of each service, HAProxy and PgBouncer")
    parser.add_argument("--keep", type=Path, help="a directory in which the data and the logs are kept")
    arguments = parser.parse_args()
    conversation.retry_seconds = 900.0  # a busy machine takes long to restart what was killed
    _print(f"seed {arguments.seed}")
    if arguments.keep:
        arguments.keep.mkdir(parents=True)
        arguments.keep.chmod(0o711)
    _print(
        asyncio.run(
            harness.run_kills(
                arguments.kills,
                arguments.seed,
                agents=arguments.agents,
                scaled=arguments.scaled,
                directory=arguments.keep,
                on_kill=_print_progress,
            )
        )
    )
