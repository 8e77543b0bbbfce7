"""Installs locked packages with uv, or with pip where uv cannot. Runs before there are any: standard library only."""

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cli import pip_settings, terminal
from cli.data_dir import CHECKOUT
from cli.errors import CliError

UV_LOCK = CHECKOUT / "requirements-uv.lock"
NO_PIP = (
    f"{sys.executable} has no pip that could install packages. Install what is missing (Debian and Ubuntu: "
    "apt install python3-venv), or uv."
)
FAILED = (
    "The packages could not be installed, for the reason above. Check the network, or the proxy and the index that pip "
    "or uv is set to use, and try again."
)
DISK_FULL = "No space left on device"
NO_SPACE = (
    "The packages could not be installed: no space is left on the disk. They need 300 MB. Make space, and try again."
)
_BASE = getattr(sys, "_base_executable", None) or sys.executable
# Where an environment has lost its `pyvenv.cfg`, the link that is about to be deleted counts as the base.
BASE_PYTHON = os.path.realpath(_BASE) if Path(_BASE).is_relative_to(CHECKOUT) else _BASE
QUIET_PIP = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore", "PIP_NO_INPUT": "1"}
PIP_OPTIONS = ["--require-hashes", "--no-deps", "--no-compile", "--retries", "2", "--progress-bar", "off"]
PIP_INSTALL = ["install", *PIP_OPTIONS, "-r", "/dev/stdin"]
UV_VERSION = re.compile(r"uv (\d+)\.(\d+)\.(\d+)")
MIN_UV_VERSION = (0, 4, 23)  # older versions do not know UV_DEFAULT_INDEX, and would ask another index than pip's
PROBE_SECONDS = 20.0
PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*)==", re.MULTILINE)
CREDENTIALS = re.compile(r"(?<=//)[^\s/]+@|[^\s/]+:[^\s/]+@")
LAST_LINES = 20


class InstallerError(Exception):
    """An installer failed; the text is the end of what it printed."""


class Pip(NamedTuple):
    command: list[str]
    configuration: str  # what `pip config list` prints


@dataclass(frozen=True)
class Environment:
    directory: Path
    lock: int  # a descriptor that installers inherit
    steps: terminal.Steps

    @property
    def python(self) -> str:
        return str(self.directory / "bin" / "python")

    @property
    def uv(self) -> str:
        return str(self.directory / "bin" / "uv")

    def run(self, command: Sequence[str], stdin: str = "", **variables: str) -> None:
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as output:
            source.write(stdin.encode())
            source.seek(0)
            try:
                process = subprocess.Popen(
                    command,
                    cwd="/",
                    env=os.environ | QUIET_PIP | variables,
                    stdin=source,
                    stdout=output,
                    stderr=output,
                    pass_fds=[self.lock],
                    process_group=0,  # pip may start itself a second time: both must end
                )
            except OSError as error:
                raise InstallerError(f"{command[0]}: {error.strerror}") from error
            if self._wait(process):
                output.seek(0)
                lines = output.read().decode(errors="replace").splitlines()
                raise InstallerError(CREDENTIALS.sub("***@", "\n".join(lines[-LAST_LINES:])))

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(0.1)
                self.steps.tick()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise


def install(directory: Path, requirements: str, lock: int, *, fresh: bool) -> None:
    """Makes an environment of these packages and no others, except uv. Processes that install inherit `lock`."""
    uv = find_uv(directory)
    environment = Environment(directory, lock, terminal.Steps(2 if uv is None else 1))
    try:
        if fresh:
            environment.run([BASE_PYTHON, "-m", "venv", "--without-pip", str(directory)])
        pip = _find_pip(environment)
        try:
            _install_with_uv(environment, requirements, uv, pip)
        except InstallerError as failure:
            if DISK_FULL in str(failure) or (pip is None and not _has_ensurepip()):
                raise
            _install_with_pip(environment, requirements)
    except InstallerError as failure:
        terminal.notice(str(failure))
        raise CliError(NO_SPACE if DISK_FULL in str(failure) else FAILED) from failure


def _install_with_uv(environment: Environment, requirements: str, uv: str | None, pip: Pip | None) -> None:
    if uv is None:
        with environment.steps.begin("uv, which installs the packages"):
            pip = pip or _add_pip(environment)
            environment.run([*pip.command, *PIP_INSTALL, "--only-binary", ":all:"], UV_LOCK.read_text())
            uv = environment.uv
    if uv == environment.uv:
        requirements += UV_LOCK.read_text()
    options, variables = pip_settings.create_uv_settings(pip.configuration if pip else "", os.environ)
    with environment.steps.begin("packages"):
        command = [uv, "pip", "sync", "--require-hashes", *options, "--python", environment.python, "-"]
        environment.run(command, requirements, **variables)


def _install_with_pip(environment: Environment, requirements: str) -> None:
    with environment.steps.begin("packages, by pip, because uv cannot install them here"):
        pip = _find_pip(environment) or _add_pip(environment)
        environment.run([*pip.command, *PIP_INSTALL], requirements)
        found = environment.directory.glob("lib/python*/site-packages/*.dist-info")
        installed = {_normalize(path.name.partition("-")[0]) for path in found}
        if surplus := installed - set(map(_normalize, PINNED.findall(requirements))):  # may include pip and uv
            environment.run([*pip.command, "uninstall", "--yes", *sorted(surplus)])


def find_uv(directory: Path) -> str | None:
    """Returns the machine's uv, or else the environment's, if it can be run and is new enough."""
    for uv in (shutil.which("uv"), str(directory / "bin" / "uv")):
        version = UV_VERSION.match((uv and _read_output([uv, "--version"])) or "")
        if version and tuple(map(int, version.groups())) >= MIN_UV_VERSION:
            return uv
    return None


def _find_pip(environment: Environment) -> Pip | None:
    """Returns the machine's pip, if it is new enough for `--python`, or else the environment's."""
    machine = [BASE_PYTHON, "-m", "pip", "--python", environment.python]
    for command in (machine, [environment.python, "-m", "pip"]):
        if (configuration := _read_output([*command, "config", "list"])) is not None:
            return Pip(command, configuration)
    return None


def _add_pip(environment: Environment) -> Pip:
    if not _has_ensurepip():
        raise CliError(NO_PIP)
    environment.run([environment.python, "-m", "ensurepip"])
    return _find_pip(environment) or Pip([environment.python, "-m", "pip"], "")


def _has_ensurepip() -> bool:
    return importlib.util.find_spec("ensurepip") is not None


def _read_output(command: Sequence[str]) -> str | None:
    try:
        done = subprocess.run(
            command, cwd="/", env=os.environ | QUIET_PIP, capture_output=True, check=False, timeout=PROBE_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout.decode(errors="replace")


def _normalize(name: str) -> str:
    """Returns the name of a package as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
