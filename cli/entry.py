"""What `./todo` runs, with any Python: what needs no package is answered at once, for the rest they are installed."""

import os
import sys
from pathlib import Path

from cli import __main__, terminal
from cli.arguments import asked
from cli.errors import CliError

WITHOUT_PACKAGES = ("status", "logs", "down")


def main() -> int:
    given, _ = asked.parse()
    if given.command not in WITHOUT_PACKAGES:
        from cli import packages

        wanted = {"test": packages.DEVELOP, "audit": packages.AUDIT}.get(given.command, packages.RUN)
        try:
            python = packages.ensure(wanted)
        except CliError as error:
            terminal.error(str(error))
            return 1
        except KeyboardInterrupt:
            return 130
        if Path(sys.prefix).resolve() != wanted.directory.resolve():
            os.execv(python, [str(python), "-P", "-m", "cli", *sys.argv[1:]])  # noqa: S606 - no shell is wanted
    return __main__.main()


if __name__ == "__main__":
    sys.exit(main())
