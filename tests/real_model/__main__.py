"""Holds a conversation with a real small model, and prints all of it: `python -m tests.real_model MESSAGE…`.

It runs llama.cpp's server and `./todo up` with data of their own. `--context` is the model's context in tokens;
`--tools` gives the model a chat template that has tools. Settings of the environment are used, such as AGENTS=off.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import ROOT, find_free_port
from tests.real_model.server import RealServer, start_server
from todo_client.runs import Runs

_TEMPLATE = Path(__file__).parent / "tools_template.jinja"
_START_SECONDS = 120
_QUIET = ("interaction_started", "turn_start", "turn_end")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.real_model", description=__doc__)
    parser.add_argument("messages", nargs="+", metavar="MESSAGE")
    parser.add_argument("--context", type=int, default=4_096)
    parser.add_argument("--tools", action="store_true")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="todo-real-") as directory,
        start_server(context=given.context, template=_TEMPLATE if given.tools else None) as server,
        _run_assistant(server, Path(directory)) as url,
    ):
        asyncio.run(_converse(url, given.messages))


@contextmanager
def _run_assistant(server: RealServer, directory: Path) -> Iterator[str]:
    os.chmod(directory, 0o711)  # PostgreSQL may run as another account
    page, mcp = find_free_port(), find_free_port()
    command = [str(ROOT / "todo"), "up", f"--port={page}", f"--mcp-port={mcp}", f"--data-dir={directory / 'data'}"]
    with open(directory / "up.txt", "w+") as output:
        process = subprocess.Popen(command, env={**os.environ, **server.settings}, stdout=output, stderr=output)
        try:
            until = time.monotonic() + _START_SECONDS
            while "  page  " not in (text := (directory / "up.txt").read_text()):
                if process.poll() is not None or time.monotonic() > until:
                    sys.exit(f"./todo up did not start:\n{text}")
                time.sleep(0.2)
            _write(text)
            yield f"http://127.0.0.1:{page}"
        finally:
            process.terminate()
            process.wait()


async def _converse(url: str, messages: Sequence[str]) -> None:
    async with Runs(url) as runs:
        for message in messages:
            began, first = time.monotonic(), None
            _write(f"\nUSER: {message}")
            async with runs.interact("real", message) as events:
                async for event in events:
                    if event.name == "answer_delta":
                        first = first or time.monotonic() - began
                    elif event.name == "answer":
                        _write(f"ASSISTANT: {event.data['content']}")
                    elif event.name not in _QUIET:
                        _write(f"  {event.name}: {json.dumps(event.data, ensure_ascii=False)}")
            begun = f"first word after {first:.1f} s, " if first else ""
            _write(f"  {begun}end after {time.monotonic() - began:.1f} s")


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
