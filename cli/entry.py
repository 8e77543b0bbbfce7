"""What `./todo` runs, with any Python: installs the packages that a command needs, and runs it with them."""

import os
import sys
from pathlib import Path

from cli import __main__, packages, terminal
from cli.data_dir import CHECKOUT
from cli.errors import CliError

WITHOUT_PACKAGES = ("status", "logs", "down")


def main() -> int:
    arguments = __main__.parse()
    if arguments.command not in WITHOUT_PACKAGES and not getattr(arguments, "compose", False):
        wanted = {"test": packages.DEVELOP, "audit": packages.AUDIT}.get(arguments.command, packages.RUN)
        try:
            python = packages.ensure(wanted)
        except CliError as error:
            terminal.error(str(error))
            return error.status
        except KeyboardInterrupt:
            return 130
        if Path(sys.prefix).resolve() != wanted.directory.resolve():
            os.environ.setdefault("PYTHONPATH", str(CHECKOUT))  # ./todo sets it; an installed `todo` does not
            os.execv(python, [str(python), "-P", "-m", "cli", *sys.argv[1:]])  # noqa: S606 - no shell is wanted
    return __main__.main()


if __name__ == "__main__":
    sys.exit(main())
