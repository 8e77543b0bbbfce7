"""Uses a connector in a process of its own: `python -m tests.support.connector_probe FILE`, whose mcp.json it reads.

Prints a line of JSON for each server: what the backend says about it, by how many megabytes the process grew at most,
and the longest time in milliseconds for which one callback held the event loop.
"""

import asyncio
import json
import logging
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from backend.tools.connectors import configuration, offered
from backend.tools.connectors.configuration import Connector
from backend.tools.connectors.link import ConnectorLink

_WAIT_SECONDS = 0.5  # for what a server sends without a request


class _Holds:
    """The longest time that one callback of the loop has used the processor."""

    longest = 0.0

    def watch(self) -> None:
        run = asyncio.events.Handle._run

        holds = self

        def measure(self: asyncio.events.Handle) -> None:
            began = time.thread_time()
            run(self)
            holds.longest = max(holds.longest, time.thread_time() - began)

        asyncio.events.Handle._run = measure


async def _use(server: Connector) -> str:
    link = ConnectorLink(server)
    try:
        tools = await link.list_tools()
        hashes = [offered.fingerprint(tool) for tool in tools]
        if link.problem is not None:
            return link.problem
        result = await link.call("say", {}, again=False)
        await asyncio.sleep(_WAIT_SECONDS)
        return f"{len(hashes)} tools, {len(result.content)} parts"
    except Exception as error:  # noqa: BLE001 - the answer of the probe
        return f"{type(error).__name__}: {error}"
    finally:
        await link.close()


def _peak_megabytes() -> float:
    unit = 1_000_000 if sys.platform == "darwin" else 1_000
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


async def probe(file: Path) -> None:
    holds = _Holds()
    holds.watch()
    for server in configuration.read_servers(file, os.environ):
        holds.longest, before = 0.0, _peak_megabytes()
        answer: dict[str, Any] = {"name": server.name, "said": await _use(server)}
        answer |= {"grown": round(_peak_megabytes() - before), "held": round(holds.longest * 1_000, 1)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(probe(Path(sys.argv[1])))
