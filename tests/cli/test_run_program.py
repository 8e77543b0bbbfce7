"""What a program of PostgreSQL says is what the user reads, also if it ended before all was sent to it."""

import os
import subprocess
from collections.abc import Callable

import pytest

from cli.commands.stored_data import Installation, run_program
from cli.errors import CliError

FAILS = ["sh", "-c", "exec <&-; echo 'pg_restore: error: no tables' >&2; exit 1"]
INSTALLATION = Installation((), "", (), {"PATH": os.defpath})


def fail() -> None:
    raise CliError("The other program failed.")


def flush(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin
    process.stdin.flush()


@pytest.mark.parametrize("act", [lambda _: None, lambda _: fail(), flush], ids=["nothing", "an error", "a flush"])
def test_program_that_ends_before_it_reads_what_was_sent(act: Callable[[subprocess.Popen[bytes]], None]) -> None:
    with (
        pytest.raises(CliError, match="no tables"),
        run_program(FAILS, INSTALLATION, stdin=subprocess.PIPE) as process,
    ):
        process.wait()
        assert process.stdin
        process.stdin.write(b"not sent yet")
        act(process)
