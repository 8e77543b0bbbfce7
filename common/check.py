"""`python -m common.check SERVICE …`: the command `check` of several services, with the settings of this process.

One process for all, because most of the time of a check goes into imports that the services share.
"""

import contextlib
import gc
import io
import os
import runpy
import sys


def main() -> None:
    """Prints each sentence once, and exits with status 78 if there is one."""
    gc.disable()  # imports create nothing to collect
    problems: dict[str, None] = {}
    for service in sys.argv[1:]:
        problems |= dict.fromkeys(_check(service))
    if problems:
        sys.stdout.write("\n".join(problems) + "\n")
        sys.exit(os.EX_CONFIG)


def _check(service: str) -> list[str]:
    sys.argv = [service, "check"]
    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output):
            runpy.run_module(service, run_name="__main__")
    except SystemExit as end:
        if end.code == os.EX_CONFIG:
            return output.getvalue().splitlines()
        if end.code:
            raise
    return []


if __name__ == "__main__":
    main()
