"""Several processes behind one port, by a service so small that nothing else can go wrong in it."""

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from cli.processes.children import die_with_parent
from tests.conftest import ROOT

pytestmark = pytest.mark.long

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.service.workers.small_service", *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def address_of(service: subprocess.Popen[str]) -> str:
    assert service.stdout is not None
    return service.stdout.readline().strip()


def ask(url: str) -> int | None:
    """Who answers, None when nobody listens; a request that a killed process had in its hands is sent again."""
    while True:
        try:
            return int(httpx2.get(url, timeout=5, trust_env=False, verify=False).text)
        except httpx2.ConnectError:
            return None
        except (httpx2.RemoteProtocolError, httpx2.ReadError):
            continue


def answering(url: str, *, count: int, without: int | None = None) -> set[int]:
    """The processes that answer, as soon as there are so many."""
    deadline = time.monotonic() + 20
    while True:
        found = {ask(url) for _ in range(30)} - {None}
        if len(found) == count and without not in found:
            return {pid for pid in found if pid is not None}
        assert time.monotonic() < deadline, found


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_all_answer_on_one_port_and_end_together(start: Start, number: signal.Signals) -> None:
    service = start()
    url = address_of(service)
    pids = answering(url, count=3)
    assert service.pid not in pids
    service.send_signal(number)
    assert service.wait(10) == 0
    assert not any(map(is_alive, pids))
    assert ask(url) is None
    printed, logged = service.communicate()
    assert printed == ""
    served = re.findall(r"^worker (\d+) serves as small/(\d)$", logged, re.MULTILINE)
    assert {int(pid) for pid, _ in served} == pids
    assert sorted(slot for _, slot in served) == ["0", "1", "2"]


def test_one_that_is_killed_is_replaced_and_one_that_ends_too(start: Start) -> None:
    service = start()
    url = address_of(service)
    for number in (signal.SIGKILL, signal.SIGTERM):
        lost = min(answering(url, count=3))
        os.kill(lost, number)
        pids = answering(url, count=3, without=lost)
        assert lost not in pids
    service.terminate()
    _, logged = service.communicate(timeout=10)
    assert service.returncode == 0
    assert len(re.findall(r"^worker \d+ serves as", logged, re.MULTILINE)) == 3 + 2


def test_who_replaces_one_that_died_has_its_name_and_looks_after_what_it_left(start: Start) -> None:
    service = start()
    url = address_of(service)
    lost = min(answering(url, count=3))
    os.kill(lost, signal.SIGKILL)
    answering(url, count=3, without=lost)
    service.terminate()
    _, logged = service.communicate(timeout=10)
    name = re.findall(rf"^worker {lost} serves as (\S+)$", logged, re.MULTILINE)[0]
    begun = Counter(re.findall(r"^(\S+) begins$", logged, re.MULTILINE))
    assert begun == {"small/0": 1, "small/1": 1, "small/2": 1} | {name: 2}


def test_one_whose_workers_die_again_and_again_ends_the_service(start: Start) -> None:
    service = start("dies soon")
    address_of(service)
    _, said = service.communicate(timeout=30)
    assert service.returncode == 1
    assert "died 5 times in short order: the service ends" in said


def test_workers_that_are_killed_before_they_are_ready_are_replaced_too(start: Start) -> None:
    service = start()
    url = address_of(service)
    service_workers = Path(f"/proc/{service.pid}/task/{service.pid}/children")
    for _ in range(5):
        for pid in service_workers.read_text().split():
            os.kill(int(pid), signal.SIGKILL)
    assert len(answering(url, count=3)) == 3


def test_no_connection_is_refused_while_all_are_replaced(start: Start) -> None:
    service = start()
    url = address_of(service)
    lost = answering(url, count=3)
    for pid in lost:
        os.kill(pid, signal.SIGKILL)
    assert ask(url) not in {None, *lost}


def test_workers_end_with_their_supervisor(start: Start) -> None:
    service = start()
    pids = answering(address_of(service), count=3)
    service.kill()
    deadline = time.monotonic() + 10
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_worker_that_cannot_start_ends_the_service_with_its_sentence(start: Start) -> None:
    service = start("gives up")
    _, said = service.communicate(timeout=20)
    assert (service.returncode, said) == (1, "The moon is not full: wait.\n")


def test_a_worker_that_is_killed_before_any_was_ready_ends_the_service(start: Start) -> None:
    service = start("is killed")
    _, said = service.communicate(timeout=20)
    assert service.returncode == 1
    assert re.fullmatch(r"worker \d+ was killed by SIGKILL\n", said)


def test_a_worker_that_does_not_end_is_killed_after_the_grace_time(start: Start) -> None:
    service = start("is deaf")
    address_of(service)
    service.terminate()
    _, said = service.communicate(timeout=10)
    assert service.returncode == 0
    assert "did not end in 1 seconds" in said


def test_a_worker_that_is_asked_to_end_again_ends_without_a_trace(start: Start) -> None:
    service = start()
    url = address_of(service)
    asked = ask(f"{url}/slow")
    assert asked is not None
    for _ in range(3):
        os.kill(asked, signal.SIGTERM)
        time.sleep(0.25)
    answering(url, count=3, without=asked)
    service.terminate()
    _, said = service.communicate(timeout=20)
    assert f"worker {asked} ended with exit code 0" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("moment", ["a weakref's callback", "a finalizer"])
def test_a_worker_that_is_asked_to_end_while_python_drops_what_is_raised_ends_all_the_same(
    start: Start, moment: str
) -> None:
    service = start(f"is asked in {moment}")
    _, said = service.communicate(timeout=20)
    assert re.fullmatch(r"worker \d+ ended with exit code 0\n", said)
