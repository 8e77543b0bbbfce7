"""Disconnects readers of runs at random bytes, and checks that they miss nothing and read nothing twice.

They continue at any of three backends. Run it with `python -m tests.chaos.disconnects --cuts 1000`.
"""

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from tests.chaos.system import System, reachable_directory
from tests.processes import ServiceProcess
from tests.runs_client import Runs
from tests.scripted_model import ScriptedModel
from tests.support.resuming import read_with_disconnects

PROCESSES, READERS = 3, 6


async def main(cuts: int, seed: int) -> str:
    rng, start = random.Random(seed), time.monotonic()
    with reachable_directory() as directory:
        endpoint = ServiceProcess("tests.scripted_endpoint", "OFFLINE_PORT", directory / "model.log")
        endpoint.start()
        endpoint.wait_until_ready(path="/health")
        system = System(directory, f"{endpoint.url}/v1", approval_tools=["delete_task"])
        backends = [system.backend, *_start_more_backends(system, directory)]
        try:
            total, runs = 0, 0
            while total < cuts:
                total += await _read_run(rng, backends, endpoint, f"chat-{runs}")
                runs += 1
        finally:
            for service in (*backends[1:], endpoint):
                service.end()
            system.stop()
    return f"seed {seed}: {total} disconnects of {READERS} readers in {runs} runs, {time.monotonic() - start:.0f} s"


def _start_more_backends(system: System, directory: Path) -> Sequence[ServiceProcess]:
    backends = [
        ServiceProcess("backend", "BACKEND_PORT", directory / f"backend-{number}.log", **system.backend.environment)
        for number in range(2, PROCESSES + 1)
    ]
    for backend in backends:
        backend.start()
    for backend in backends:
        backend.wait_until_ready()
    return backends


async def _read_run(rng: random.Random, backends: Sequence[ServiceProcess], endpoint: ServiceProcess, chat: str) -> int:
    async with AsyncExitStack() as stack:
        processes = [await stack.enter_async_context(Runs(backend.url)) for backend in backends]
        model = await stack.enter_async_context(ScriptedModel(endpoint.url))
        return await read_with_disconnects(rng, processes, model, chat, READERS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.disconnects")
    parser.add_argument("--cuts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    arguments = parser.parse_args()
    sys.stdout.write(f"{asyncio.run(main(arguments.cuts, arguments.seed))}\n")
