import contextlib
import errno
import os
from collections.abc import Iterator

_MAKE_SPACE = "Make space on that disk, and try again."


class CliError(Exception):
    """One sentence for the user at the terminal, and the exit status of the command."""

    status = 1


class SettingsError(CliError):
    """Settings with which nothing can work."""

    status = os.EX_CONFIG


@contextlib.contextmanager
def explain_os_error(failure: str, advice: str = "") -> Iterator[None]:
    """Raises `CliError` with what failed, the reason of the operating system, and what the user may do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = f"{advice} {_MAKE_SPACE}".lstrip()
        raise CliError(f"{failure}: {error.strerror}. {advice}".rstrip()) from error


def describe_os_error(error: OSError) -> str:
    reason = error.strerror or type(error).__name__
    return f"{error.filename} cannot be used: {reason}." if error.filename else f"The operating system says: {reason}."
