import os
import subprocess

import pytest

from cli.processes import ownership
from cli.processes.ownership import InUseError, LeftoverError

OWNER = "import sys, pathlib\nfrom cli.processes import ownership\nheld = ownership.take(pathlib.Path(sys.argv[1]))\n"
WAITS = OWNER + "print('taken', flush=True)\nsys.stdin.read()"


def test_an_owner_waits_for_what_is_left_of_its_own_killed_server(tmp_path):
    first = ownership.take(tmp_path)
    # A process of the server that takes a moment to notice that its first process was killed.
    with subprocess.Popen(["sleep", "0.5"], pass_fds=[first.lock]) as remnant:
        first.release()
        second = ownership.take(tmp_path)
        assert remnant.poll() is not None or remnant.wait(1) == 0
    second.release()


def test_a_directory_that_another_process_owns_is_refused_at_once(tmp_path, start):
    owner = start("-c", WAITS, str(tmp_path), stdin=subprocess.PIPE)
    assert owner.stdout.readline() == "taken\n"
    assert ownership.owner_of(tmp_path) == owner.pid
    with pytest.raises(InUseError, match=f"in use by process {owner.pid}"):
        ownership.take(tmp_path)


def test_an_owner_that_nobody_waited_for_owns_nothing(tmp_path, start):
    owner = start("-c", OWNER + "import os\nos.kill(os.getpid(), 9)", str(tmp_path))
    os.waitid(os.P_PID, owner.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie, whose process id still exists
    os.kill(owner.pid, 0)
    assert ownership.owner_of(tmp_path) is None
    ownership.take(tmp_path).release()


def test_an_id_that_is_another_process_by_now_owns_nothing(tmp_path):
    ownership.take(tmp_path).release()
    (tmp_path / "owner").write_text(str(os.getppid()))
    ownership.take(tmp_path).release()


def test_what_does_not_end_is_told_of(tmp_path):
    first = ownership.take(tmp_path)
    remnant = subprocess.Popen(["sleep", "60"], pass_fds=[first.lock])
    first.release()
    try:
        with pytest.raises(LeftoverError, match=r"Processes of an earlier run .* within 0\.1 seconds: end them"):
            ownership.take(tmp_path, seconds=0.1)
    finally:
        remnant.kill()
        remnant.wait()
