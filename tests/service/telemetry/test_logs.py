import json
import logging
import os
import pty
import subprocess
import sys
from collections.abc import Iterator

import pytest

from service.telemetry import request_id
from service.telemetry.logs import JsonFormatter, TextFormatter, fields
from tests.conftest import ROOT

PROGRAM = """
import logging, sys
from service.telemetry.logs import configure, fields
configure("INFO", sys.argv[1], quiet=["loud"])
logging.getLogger("loud").info("never")
logging.getLogger("room").info("done", extra=fields(seconds=0.5))
"""


@pytest.fixture
def asked() -> Iterator[str]:
    token = request_id.current.set("r1")
    yield "r1"
    request_id.current.reset(token)


def record(message: str, **values: object) -> logging.LogRecord:
    return logging.makeLogRecord({"name": "room", "levelname": "INFO", "msg": message, **fields(**values)})


def test_a_json_line_has_the_fields_beside_the_message_and_the_request(asked: str) -> None:
    line = json.loads(JsonFormatter().format(record("done", seconds=0.5, owner='a "b"\n', run=None)))
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "INFO",
        "logger": "room",
        "message": "done",
        "seconds": 0.5,
        "owner": 'a "b"\n',
        "request_id": asked,
    }


def test_a_json_line_stays_one_line_with_a_traceback_in_it() -> None:
    try:
        raise KeyError("title")
    except KeyError:
        failed = record("failed")
        failed.exc_info = sys.exc_info()
    text = JsonFormatter().format(failed)
    assert "\n" not in text
    assert "KeyError: 'title'" in json.loads(text)["exception"]


def test_a_line_for_people_cannot_be_broken_by_a_name(asked: str) -> None:
    text = TextFormatter().format(record("done", owner="eve\n2026 INFO owner=alice", seconds=0.5))
    assert text.endswith(r'INFO room: done owner="eve\n2026 INFO owner=alice" seconds=0.5 request_id=r1')


@pytest.mark.parametrize(
    ("chosen", "terminal", "is_json"),
    [("auto", False, True), ("auto", True, False), ("text", False, False), ("json", True, True)],
)
def test_json_unless_on_a_terminal_or_as_chosen(chosen: str, terminal: bool, is_json: bool) -> None:
    reading, writing = pty.openpty() if terminal else os.pipe()
    done = subprocess.run([sys.executable, "-c", PROGRAM, chosen], cwd=ROOT, stderr=writing)
    text = os.read(reading, 10_000).decode().strip()
    os.close(reading)
    os.close(writing)
    assert done.returncode == 0
    assert text.startswith("{") is is_json
    assert "never" not in text
    assert "0.5" in text
