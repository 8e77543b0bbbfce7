"""Runs stand-ins under the supervisor: each argument is `name:port:code`, port 0 for one that ends by itself."""

import os
import sys
from pathlib import Path

from cli import terminal
from cli.errors import CliError
from cli.keeper import Keeper
from cli.signals import Signals
from cli.supervisor import Service, StopWanted, Supervisor


def main(logs: str, *services: str) -> int:
    with Keeper() as keeper, Signals() as signals:
        supervisor = Supervisor(Path(logs), signals, keeper, cwd=Path(logs), verbose="VERBOSE" in os.environ)
        try:
            for text in services:
                name, port, code = text.split(":", 2)
                command = [sys.executable, "-c", code, port]
                supervisor.start(Service(name, command, os.environ, int(port) or None))
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
