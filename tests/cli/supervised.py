"""A supervisor with services of a test, each of which is a name and Python code, and short pauses between restarts.

`python -m tests.cli.supervised LOGS SERVICES`, in JSON: name, code, whether it is optional, and its port.
"""

import asyncio
import contextlib
import functools
import json
import sys
from pathlib import Path

from cli import terminal
from cli.errors import CliError
from cli.processes.children import Reaper
from cli.services.parts import Restarts, Service
from cli.services.running import StatusFile
from cli.services.supervisor import StopWanted, Supervisor

SERVE = """
import http.server
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Ready).serve_forever()
"""


async def supervise(logs: Path, reaper: Reaper) -> None:
    restarts = functools.partial(Restarts, pause_seconds=0.02, slow_seconds=1.0)
    supervisor = Supervisor(logs, reaper, StatusFile(logs, {}), restarts=restarts)
    with contextlib.suppress(StopWanted):
        try:
            for name, code, optional, port in json.loads(sys.argv[2]):
                command = [sys.executable, "-c", f"import os, signal, sys, time\n{code}\n{SERVE}"]
                supervisor.start(Service(name, [*command, str(port)], {}, port, optional=optional))
            await supervisor.wait_until_ready()
            terminal.say("started")
            await supervisor.watch()
        except CliError as error:
            sys.exit(f"error: {error}")
        finally:
            await supervisor.stop()


if __name__ == "__main__":
    with Reaper() as reaper:
        asyncio.run(supervise(Path(sys.argv[1]), reaper))
