import http.client
import os
import re
import signal
import subprocess

import pytest

pytestmark = pytest.mark.long

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
threading.Thread(target=serve, daemon=True).start()
time.sleep(0.3)
if os.path.exists("die"):
    print("the last words", flush=True)
    os._exit(3)
signal.pause()
"""
HAS_A_CHILD = """
child = subprocess.Popen([sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"])
with open("child", "w") as file:
    file.write(f"{child.pid} {os.getpid()}")
serve()
"""


@pytest.fixture
def supervise(start, tmp_path):
    def run(*services: str, **environment: str):
        return start(
            "-m",
            "tests.cli.services.supervise",
            str(tmp_path),
            *services,
            env=os.environ | {"NO_COLOR": "1"} | environment,
        )

    return run


def answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", "/")
    return connection.getresponse().status == 200


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


def test_a_service_that_dies_is_started_again_without_what_it_left_behind(supervise, free_port, tmp_path, is_running):
    port = free_port()
    process = supervise(stand_in("one", free_port()), stand_in("two", port, HAS_A_CHILD))
    read_until(process, "all ready")
    for number in (signal.SIGKILL, signal.SIGTERM):
        child, service = map(int, (tmp_path / "child").read_text().split())
        os.kill(service, number)
        said = read_until(process, "ready     two")
        assert f"died      two            was killed by {number.name}; it is started again" in said
        assert f"(log: {tmp_path}/two.log)" in said
        assert not is_running(child)
        assert answers(port)
    process.terminate()
    output, _ = process.communicate(timeout=20)
    assert (process.returncode, output) == (0, "all stopped\n")


def test_one_that_dies_five_times_is_given_up_with_its_last_lines_and_all_are_stopped(
    supervise, free_port, tmp_path, is_running
):
    (tmp_path / "die").touch()
    process = supervise(stand_in("one", free_port(), HAS_A_CHILD), stand_in("two", free_port(), DIES_WHEN_TOLD))
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    pauses = re.findall(r"two +ended with exit code 3; it is started again (.*) \(log", output)
    assert pauses == ["now", "in 0.1 s", "in 0.2 s", "in 0.4 s"]
    assert "error: two ended with exit code 3 for the 5th time in short order, and is left alone; the end of" in output
    assert output.endswith("the last words\nall stopped\n")
    assert not is_running(int((tmp_path / "child").read_text().split()[0]))


def test_one_that_waits_itself_is_started_at_once_and_told_for_how_long(supervise, free_port, tmp_path):
    (tmp_path / "die").touch()
    body = f"print('given', sys.argv[2:], flush=True)\n{DIES_WHEN_TOLD}"
    process = supervise(stand_in("two", free_port(), body), WAIT="1")
    output, _ = process.communicate(timeout=30)
    assert "it is started again in 0.4 s" in output
    given = re.findall(r"^given (.*)$", (tmp_path / "two.log").read_text(), re.MULTILINE)
    assert given == ["[]", "['--pause=0']", "['--pause=0.1']", "['--pause=0.2']", "['--pause=0.4']"]


def test_one_that_served_well_for_a_while_begins_anew(supervise, free_port, tmp_path):
    (tmp_path / "die").touch()
    process = supervise(stand_in("two", free_port(), DIES_WHEN_TOLD), HEALTHY_SECONDS="0")
    for _ in range(8):
        assert "started again now" in read_until(process, "died      two")
        read_until(process, "ready     two")


@pytest.mark.parametrize("ready", [False, True])
def test_what_cannot_work_as_it_is_configured_is_not_started_again(supervise, free_port, ready):
    body = "print('MCP_URL is not set.', flush=True)\nos._exit(os.EX_CONFIG)"
    before = "threading.Thread(target=serve, daemon=True).start()\ntime.sleep(1)\n" if ready else ""
    process = supervise(stand_in("one", free_port()), stand_in("two", free_port(), before + body))
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert ("all ready" in output) is ready
    assert "error: two ended with exit code 78; the end of" in output
    assert output.count("MCP_URL is not set.") == 1


def test_a_service_killed_while_it_starts_is_started_again(supervise, free_port, tmp_path):
    body = "if not os.path.exists('tried'):\n    open('tried', 'w').close()\n    os.kill(os.getpid(), 9)\nserve()"
    process = supervise(stand_in("one", free_port(), body))
    assert "was killed by SIGKILL; it is started again now" in read_until(process, "all ready")


def test_a_stop_while_a_part_waits_for_its_next_start(supervise, free_port, tmp_path):
    (tmp_path / "die").touch()
    process = supervise(stand_in("one", free_port()), stand_in("two", free_port(), DIES_WHEN_TOLD))
    read_until(process, "in 0.4 s")
    process.terminate()
    assert process.wait(20) == 0


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
        pytest.param(DEAF, id="one that ignores SIGTERM"),
    ],
)
def test_a_killed_supervisor_leaves_nothing_running(supervise, free_port, eventually, is_running, tmp_path, body):
    process = supervise(stand_in("one", free_port(), body))
    read_until(process, "all ready")
    file = tmp_path / ("child" if body is HAS_A_CHILD else "one.log")
    survivor = int(file.read_text().split()[0 if body is HAS_A_CHILD else -1])
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
