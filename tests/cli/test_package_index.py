"""Installs with the real pip and uv from a package index on loopback, the only one that they know."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from cli import installers
from tests.conftest import ROOT
from tests.support.package_index import PackageIndex, serve
from tests.waiting import WAIT_SECONDS

pytestmark = pytest.mark.long(seconds=4)

UV = Path(sys.executable).with_name("uv")
STARTED = "Installing packages into {}/.venv. This happens only at the first start.\n"
TWO_STEPS = "  step 1 of 2: uv, which installs the packages\n  step 2 of 2: packages\n"
WITHOUT_ENSUREPIP = "import sys; sys.modules['ensurepip'] = None\n"
NAMES = ("runtime", "embedded")


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[PackageIndex]:
    (tmp_path / "wheels").mkdir()
    with serve(PackageIndex(tmp_path / "wheels")) as index:
        yield index


@pytest.fixture
def install(tmp_path: Path, index: PackageIndex, start: Callable[..., subprocess.Popen[str]]):
    """Installs the locks of a checkout whose machine has no uv."""
    checkout = tmp_path / "checkout"
    for package in ("cli", "common"):
        shutil.copytree(ROOT / package, checkout / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in NAMES:
        (checkout / f"requirements-{name}.lock").write_text(index.add(name))
    uv = {"uv-1.data/scripts/uv": f'#!/bin/sh\nexec {UV} "$@"\n'}
    (checkout / "requirements-uv.lock").write_text(index.add("uv", uv))

    def run(before: str = "", stderr: int = subprocess.STDOUT, **variables: str) -> subprocess.Popen[str]:
        environment = {
            "PATH": str(tmp_path / "bin"),
            "HOME": str(tmp_path),
            "PYTHONPATH": str(checkout),
            "XDG_CONFIG_DIRS": str(tmp_path),
            "PIP_CONFIG_FILE": str(tmp_path / "pip.conf"),
            "UV_CACHE_DIR": str(tmp_path / "uv"),
            **variables,
        }
        script = f"{before}from cli import packages; from cli.arguments import run_command\n"
        script += "raise SystemExit(run_command(lambda: packages.ensure(packages.RUN)))"
        return start("-S", "-P", "-c", script, cwd=checkout, env=environment, stderr=stderr, start_new_session=True)

    (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index.url}\n")
    return run


def list_installed(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "checkout/.venv").glob("lib/python*/site-packages/*.dist-info")}


def installed(*names: str) -> set[str]:
    return {f"{name}-1.dist-info" for name in names}


def test_uv_is_installed_by_pip_and_uses_its_index(install, index, tmp_path):
    index.login = "me:very-secret"
    (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index.url}\n")
    process = install()
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode, output) == (0, STARTED.format(tmp_path / "checkout") + TWO_STEPS)
    assert list_installed(tmp_path) == installed("uv", *NAMES)
    assert index.agents[-1] == "uv"
    index.agents.clear()
    assert install().communicate(timeout=WAIT_SECONDS)[0] == ""
    (tmp_path / "checkout/requirements-embedded.lock").write_text(index.add("more"))
    output, _ = install().communicate(timeout=WAIT_SECONDS)
    assert output == f"Updating {tmp_path}/checkout/.venv …\n  step 1 of 1: packages\n"
    assert list_installed(tmp_path) == installed("uv", "runtime", "more")
    assert set(index.agents) == {"uv"}


@pytest.mark.parametrize(
    "program",
    [
        "\x7fELF of another machine",
        "#!/bin/sh\nexit 1\n",
        "#!/bin/sh\necho another program\n",
        '#!/bin/sh\nprintf "\\377"\n',
        "#!/bin/sh\necho uv 0.4.22\n",
        "#!/bin/sh\nexec /bin/sleep 300\n",
    ],
    ids=["broken", "failing", "another", "no text", "too old", "hanging"],
)
def test_uv_of_the_machine_that_cannot_be_used(tmp_path, monkeypatch, program):
    executable(tmp_path / "bin/uv", program)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    if "sleep" in program:
        monkeypatch.setattr(installers, "PROBE_SECONDS", 0.2)
    assert installers.find_uv(tmp_path) is None


def test_uv_of_the_machine_is_used(tmp_path, monkeypatch):
    executable(tmp_path / "bin/uv", "#!/bin/sh\necho uv 0.4.23\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert installers.find_uv(tmp_path) == str(tmp_path / "bin/uv")


def test_full_disk_is_named_at_once(install, index, tmp_path):
    reason = "error: Failed to install: No space left on device (os error 28)"
    executable(tmp_path / "bin/uv", f'#!/bin/sh\n[ "$1" != pip ] || {{ echo "{reason}"; exit 2; }}; echo uv 1.0.0\n')
    process = install()
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 1
    assert output.splitlines()[-2:] == [
        reason,
        "error: The packages could not be installed: no space is left on the disk. They need 300 MB. "
        "Make space, and try again.",
    ]
    assert index.agents == []


def test_pip_installs_what_uv_cannot(install, index, tmp_path):
    index.rejected = "uv"
    process = install()
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0
    assert output.splitlines()[-1] == "  step 2 of 2: packages, by pip, because uv cannot install them here"
    assert list_installed(tmp_path) == installed(*NAMES)


def test_machine_without_pip(install, tmp_path):
    """Its `python3 -m pip` fails, as on a bare Debian; `ensurepip` is there."""
    without = "import sys\nif sys.prefix == sys.base_prefix: sys.modules['pip'] = None\n"
    (tmp_path / "checkout/sitecustomize.py").write_text(without)
    output, _ = install().communicate(timeout=WAIT_SECONDS)
    assert output.endswith(TWO_STEPS)


def test_failure_shows_the_end_of_the_output_without_passwords(install, index, tmp_path):
    index.login = "me:very-secret"
    index.rejected = ""
    (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index.url}\nextra-index-url = {index.url}/more\n")
    process = install()
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 1
    _, _, _, *reason, advice = output.splitlines()
    assert 0 < len(reason) <= 20
    assert "ERROR" in reason[-1]
    assert advice.startswith("error: The packages could not be installed, for the reason above. Check the network")
    assert "very-secret" not in output


def test_terminal_shows_the_seconds(install, tmp_path):
    reader, writer = os.openpty()
    with open(reader, "rb", closefd=True) as terminal:
        process = install(stderr=writer, TERM="xterm", COLUMNS="60")
        os.close(writer)
        assert process.wait(WAIT_SECONDS) == 0
        shown = os.read(terminal.fileno(), 100_000).decode().split("\r\n")
    last = [line.split("\r")[-1] for line in shown]
    assert last[0].startswith("Installing packages into ")
    assert re.fullmatch(r"  step 1 of 2: uv, which installs the packages  \d+ s", last[1])
    assert re.fullmatch(r"  step 2 of 2: packages  \d+ s", last[2])
    assert "\x1b" not in "".join(shown)


def kill_all(process: subprocess.Popen[str]) -> None:
    """Kills it and the installers that it has started, which have groups of their own."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(int(entry.name)) == process.pid:
                os.kill(int(entry.name), signal.SIGKILL)


def interrupt(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)


@pytest.mark.parametrize("stop", [kill_all, subprocess.Popen.kill, interrupt])
def test_interrupted_installation_is_completed(install, index, tmp_path, eventually, stop):
    for requests in (1, 4):
        index.agents.clear()
        process = install()
        eventually(
            partial(lambda process, wanted: len(index.agents) >= wanted or process.poll() == 0, process, requests)
        )
        stop(process)
        process.wait(WAIT_SECONDS)
    process = install()
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0, output
    assert list_installed(tmp_path) == installed("uv", *NAMES)
    subprocess.run([tmp_path / "checkout/.venv/bin/python", "-c", "import runtime, embedded"], check=True)


def test_reason_of_uv_where_there_is_no_pip(install, tmp_path):
    (tmp_path / "checkout/sitecustomize.py").write_text("import sys\nsys.modules['pip'] = None\n")
    executable(tmp_path / "bin/uv", '#!/bin/sh\n[ "$1" != pip ] || { echo no route; exit 2; }; echo uv 1.0.0\n')
    output, _ = install(WITHOUT_ENSUREPIP).communicate(timeout=WAIT_SECONDS)
    *_, reason, advice = output.splitlines()
    assert (reason, advice[:44]) == ("no route", "error: The packages could not be installed, ")


def test_machine_with_neither(install, tmp_path):
    (tmp_path / "checkout/sitecustomize.py").write_text("import sys\nsys.modules['pip'] = None\n")
    output, _ = install(WITHOUT_ENSUREPIP).communicate(timeout=WAIT_SECONDS)
    assert "has no pip that could install packages. Install what is missing" in output.splitlines()[-1]
