"""What `./todo` runs, with any Python: installs the packages that a command needs, and runs it with them."""

import os
import signal
import sys

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during an import would print where that was

WITHOUT_PACKAGES = ("status", "logs", "down")


def main() -> int:
    from cli.arguments import run_command

    return run_command(_run)


def _run() -> int:
    from pathlib import Path

    from cli import packages
    from cli.__main__ import parse
    from cli.data_dir import CHECKOUT
    from cli.errors import explain_os_error

    arguments = parse()
    if arguments.command not in WITHOUT_PACKAGES and not getattr(arguments, "compose", False):
        wanted = {"test": packages.DEVELOP, "audit": packages.AUDIT}.get(arguments.command, packages.RUN)
        packages.ensure(wanted)
        if Path(sys.prefix).resolve() != wanted.directory.resolve():
            os.environ.setdefault("PYTHONPATH", str(CHECKOUT))  # ./todo sets it; an installed `todo` does not
            with explain_os_error(f"{wanted.python} cannot be run", f"Delete {wanted.directory} and try again."):
                os.execv(wanted.python, [str(wanted.python), "-P", "-m", "cli", *sys.argv[1:]])  # noqa: S606 - no shell is wanted
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
