"""Parts of `./todo up` that die again and again, or that cannot report, while others run."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.processes.children import MAX_LOG_BYTES
from tests.conftest import find_free_port
from tests.waiting import WAIT_SECONDS

STEADY = ("Steady", "", False)
DIES = "os.kill(os.getpid(), signal.SIGABRT)"


@pytest.fixture
def supervise(start, tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    def run(*services: tuple[str, str, bool]) -> subprocess.Popen[str]:
        with_ports = [(*service, find_free_port()) for service in services]
        return start("-m", "tests.cli.supervised", str(tmp_path), json.dumps(with_ports))

    return run


def read_until(process: subprocess.Popen[str], pattern: str) -> str:
    """What it prints, to the line that matches."""
    lines: list[str] = []
    assert process.stdout
    for line in process.stdout:
        lines.append(line)
        if re.search(pattern, line):
            return "".join(lines)
    raise AssertionError("".join(lines))


def pid_of(directory: Path, name: str) -> int:
    parts = json.loads((directory / "up.json").read_text())["parts"]
    return next(part["pid"] for part in parts if part["name"] == name)


def test_service_that_dies_at_once(supervise, tmp_path: Path, eventually) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    code = f"if os.path.exists({str(broken)!r}):\n    print('no more memory', file=sys.stderr)\n    {DIES}"
    process = supervise(STEADY, ("Helper", code, True))
    output = read_until(process, "^started")
    assert output.count("  died      Helper") == 5
    assert "was killed by SIGABRT, for the 5th time within a short time. It is tried again every 1 s; " in output
    assert "no more memory" in output
    steady = pid_of(tmp_path, "Steady")
    eventually(lambda: pid_of(tmp_path, "Helper") is None)  # it is tried again every second

    broken.unlink()
    assert "died" not in read_until(process, "^  ready     Helper")
    os.kill(steady, signal.SIGKILL)
    assert "  died      Steady" in read_until(process, "^  ready     Steady +again")
    eventually(lambda: pid_of(tmp_path, "Steady") not in (steady, None))
    process.terminate()
    assert process.wait(WAIT_SECONDS) == 0


@pytest.mark.parametrize(
    ("code", "optional", "reason"),
    [
        (DIES, False, "was killed by SIGABRT, for the 5th time within a short time"),
        ("sys.exit(3)", False, "ended with exit code 3"),
        ("sys.exit(os.EX_CONFIG)", True, "ended with exit code 78"),
    ],
)
def test_first_start_fails(supervise, code: str, optional: bool, reason: str) -> None:
    process = supervise(STEADY, ("Service", code, optional))
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 1
    assert f"error: Service {reason}; the end of " in output


def test_status_that_cannot_be_written(supervise, tmp_path: Path, eventually) -> None:
    (tmp_path / "up.new").mkdir()
    process = supervise(STEADY, ("Other", f"if os.path.exists({str(tmp_path / 'die')!r}): {DIES}", False))
    read_until(process, "^started")
    (tmp_path / "die").touch()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for pid in children[-2:]:
        os.kill(int(pid), signal.SIGKILL)
    read_until(process, "5th time")
    assert process.poll() is None
    (tmp_path / "up.new").rmdir()
    eventually(lambda: pid_of(tmp_path, "Steady") if (tmp_path / "up.json").exists() else None)


def test_logs_have_a_bound_while_several_processes_write(supervise, tmp_path: Path, eventually) -> None:
    """Together they write 80 MB, within a second or more."""
    log, old = tmp_path / "talkative.log", tmp_path / "talkative.log.old"
    sizes = list[int]()
    code = """
os.fork()
for _ in range(40):
    for _ in range(1_000):
        os.write(2, b"x" * 999 + bytes([10]))
    time.sleep(0.05)
os.write(2, b"the end" + bytes([10]))
"""
    process = supervise(("Talkative", code, True))

    def has_ended() -> bool:
        sizes.append(sum(file.stat().st_size for file in (log, old) if file.exists()))
        return log.exists() and b"the end" in log.read_bytes()

    eventually(has_ended)
    eventually(lambda: log.stat().st_size <= MAX_LOG_BYTES <= old.stat().st_size)
    assert max(*sizes, old.stat().st_size) < 5 * MAX_LOG_BYTES
    *_, whole, last = old.read_bytes().splitlines()
    assert whole == b"x" * 999, "what is copied ends within a line that is being written, or after it"
    assert whole.startswith(last)
    assert {file.name for file in tmp_path.iterdir() if "log" in file.name} == {log.name, old.name}
    process.terminate()
    assert process.wait(WAIT_SECONDS) == 0
