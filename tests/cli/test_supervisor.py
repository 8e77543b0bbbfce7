import os
import signal
import subprocess

import pytest

PROLOGUE = """
import http.server, os, signal, subprocess, sys, threading, time
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(STATUS)
        self.end_headers()
        self.wfile.write(b"the database is not migrated")
    def log_message(self, *_): pass
def serve():
    http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Ready).serve_forever()
STATUS = 200
"""


def stand_in(name: str, port: int, body: str = "serve()") -> str:
    return f"{name}:{port}:{PROLOGUE}{body}"


def writes_at_stop(name: str) -> str:
    return f"""
def stop(*_):
    with open("order", "a") as file:
        file.write("{name} ")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
serve()
"""


DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', os.getpid(), flush=True)\nserve()"
DIES_WHEN_TOLD = """
print("the last words", flush=True)
threading.Thread(target=serve, daemon=True).start()
while not os.path.exists("die"):
    time.sleep(0.02)
os._exit(3)
"""
HAS_A_CHILD = """
child = subprocess.Popen([sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"])
with open("child", "w") as file:
    file.write(str(child.pid))
serve()
"""


@pytest.fixture
def supervise(start, tmp_path):
    def run(*services: str, **environment: str):
        return start(
            "-m", "tests.cli.supervise", str(tmp_path), *services, env=os.environ | {"NO_COLOR": "1"} | environment
        )

    return run


def read_until(process, text: str) -> str:
    lines = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return "".join(lines)
    raise AssertionError(f"{text!r} was not written, but:\n{''.join(lines)}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_wanted_stop_ends_the_services_in_their_order_and_well(supervise, free_port, tmp_path, number):
    services = [stand_in(name, free_port(), writes_at_stop(name)) for name in ("one", "two", "three")]
    process = supervise(*services)
    read_until(process, "all ready")
    process.send_signal(number)
    assert process.wait(20) == 0
    assert (tmp_path / "order").read_text() == "one two three "


def test_each_part_is_shown_as_it_starts_and_becomes_ready(supervise, free_port):
    process = supervise(stand_in("one", free_port()), stand_in("once", 0, "print('done')"))
    lines = read_until(process, "all ready").split("\n")
    for state in ("starting", "ready"):
        for name in ("one", "once"):
            assert [state, name] in [line.split() for line in lines]


def test_a_service_that_dies_is_named_with_its_last_lines_and_takes_the_others_along(
    supervise, free_port, tmp_path, is_running
):
    dying = (
        "print('the last words', flush=True)\nimport threading\nthreading.Thread(target=serve, daemon=True).start()\n"
    )
    dying += "open('alive', 'w').close()\nwhile os.path.exists('alive'): time.sleep(0.02)\nos._exit(3)"
    port = free_port()
    process = supervise(stand_in("one", port, HAS_A_CHILD), stand_in("two", free_port(), dying))
    read_until(process, "all ready")
    (tmp_path / "alive").unlink()
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "two ended with exit code 3; the end of" in output
    assert "the last words" in output
    assert not is_running(int((tmp_path / "child").read_text()))


def test_a_service_killed_while_it_starts_ends_the_start(supervise):
    process = supervise(stand_in("one", 0, "os.kill(os.getpid(), signal.SIGKILL)"))
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "one was killed by SIGKILL" in output


def test_a_one_time_step_that_fails_ends_the_start(supervise, free_port):
    process = supervise(stand_in("one", free_port()), stand_in("once", 0, "sys.exit('no such revision')"))
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "once ended with exit code 1" in output
    assert "no such revision" in output
    assert "all ready" not in output


def test_a_service_that_answers_not_yet_is_not_ready(supervise, free_port):
    process = supervise(stand_in("one", free_port(), "STATUS = 503\nserve()"), stand_in("two", free_port()))
    read_until(process, "ready     two")
    process.terminate()
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "ready     one" not in output


def test_a_second_ctrl_c_ends_a_service_that_does_not_listen(supervise, free_port, eventually, is_running, tmp_path):
    process = supervise(stand_in("deaf", free_port(), DEAF), stand_in("one", free_port(), writes_at_stop("one")))
    read_until(process, "all ready")
    deaf = int((tmp_path / "deaf.log").read_text().split()[1])
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    assert is_running(deaf)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    assert not is_running(deaf)
    assert (tmp_path / "order").read_text() == "one "


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(HAS_A_CHILD, id="a child's child"),
        pytest.param(DEAF, id="one that ignores SIGTERM", marks=pytest.mark.long),
    ],
)
def test_a_killed_supervisor_leaves_nothing_running(supervise, free_port, eventually, is_running, tmp_path, body):
    process = supervise(stand_in("one", free_port(), body))
    read_until(process, "all ready")
    file = tmp_path / ("child" if body is HAS_A_CHILD else "one.log")
    survivor = int(file.read_text().split()[-1])
    assert is_running(survivor)
    process.kill()
    eventually(lambda: not is_running(survivor))


def test_logs_are_files_and_shown_only_when_asked_for(supervise, free_port, tmp_path):
    body = "print('a line of log', flush=True)\nserve()"
    process = supervise(stand_in("My service", free_port(), body))
    assert "a line of log" not in read_until(process, "all ready")
    process.terminate()
    process.communicate(timeout=20)
    assert (tmp_path / "my-service.log").read_text() == "a line of log\n"

    process = supervise(stand_in("My service", free_port(), body), VERBOSE="1")
    assert "    My service | a line of log\n" in read_until(process, "all ready")
    process.terminate()
    process.communicate(timeout=20)
    assert (tmp_path / "my-service.log.old").read_text() == "a line of log\n"
