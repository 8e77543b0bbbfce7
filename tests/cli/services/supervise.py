"""Runs stand-ins under the supervisor: each argument is `name:port:code`, port 0 for one that ends by itself."""

import functools
import os
import sys
from pathlib import Path

from cli import terminal
from cli.errors import CliError
from cli.processes.keeper import Keeper
from cli.processes.signals import Signals
from cli.services.parts import Service
from cli.services.supervisor import StopWanted, Supervisor
from service.workers.restarts import Restarts


def main(logs: str, *services: str) -> int:
    with Keeper() as keeper, Signals() as signals:
        verbose, healthy = "VERBOSE" in os.environ, float(os.environ.get("HEALTHY_SECONDS", "60"))
        restarts = functools.partial(Restarts, pause_seconds=0.1, healthy_seconds=healthy)
        supervisor = Supervisor(Path(logs), signals, keeper, cwd=Path(logs), verbose=verbose, restarts=restarts)
        try:
            for text in services:
                name, port, code = text.split(":", 2)
                command = [sys.executable, "-c", code, port]
                service = Service(name, command, os.environ, int(port) or None, waits_itself="WAIT" in os.environ)
                supervisor.start(service)
            supervisor.wait_until_ready()
            terminal.say("all ready")
            supervisor.watch()
        except StopWanted:
            return 0
        except CliError as error:
            terminal.error(str(error))
            return 1
        finally:
            supervisor.stop()
            terminal.say("all stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
