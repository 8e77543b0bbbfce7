"""One message and its answer: what is on stdout, what on stderr, and with which status it ends."""

import asyncio
import json
import os
import signal
import sys
from typing import Any

import pytest

from tests.backend.conftest import Backend
from tests.backend.consent import calls, deleting, with_tasks
from tests.chatkit_client import ChatKit
from tests.cli.chat.terminal import chat
from tests.conftest import ROOT, find_free_port
from tests.runs_client import Runs
from tests.scripted_model import ScriptedModel
from tests.tokens import IDP_SECRET, ISSUER, minted, of_provider

pytestmark = pytest.mark.long

ADDING = calls({"name": "add_task", "arguments": {"title": "milk"}}, text="I add it.")


async def test_the_answer_alone_is_on_stdout(served: ChatKit, model: ScriptedModel) -> None:
    await model.script(
        ADDING, {"text": "**Added**: it is \x1b[31mthere."}, {"text": "You are welcome."}, {"text": "Hello."}
    )
    url = ("--url", served.base_url)
    done = await chat(*url, stdin=b"add milk\n")
    assert (done.returncode, done.stdout) == (0, "I add it.\n\n**Added**: it is [31mthere.\n")
    assert "✓ add task 1 milk" in done.stderr
    assert " in · " in done.stderr.splitlines()[-1]
    assert "\x1b" not in done.stderr
    done = await chat(*url, "--continue", "--exec", "thank you", "--temp", "1.5", "--model", "large")
    assert (done.returncode, done.stdout) == (0, "You are welcome.\n")
    [thread] = (await served.list_threads()).data
    body = (await model.finished_requests())[-1]["body"]
    assert (body["model"], body["temperature"]) == ("large", 1.5)
    async with Runs(served.base_url) as runs:
        assert len((await runs.get_chat(thread["id"]))["interactions"]) == 2
    done = await chat(*url, "--new", "--debug", "--exec", "hello")
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert "interaction_complete" in done.stderr
    assert len((await served.list_threads()).data) == 2
    await model.script({"text": "In the first."}, {"text": "There again."})
    assert (await chat(*url, "--thread", thread["id"], "--exec", "and here")).stdout == "In the first.\n"
    assert (await chat(*url, "--continue", "--exec", "still here")).stdout == "There again.\n"
    async with Runs(served.base_url) as runs:
        assert len((await runs.get_chat(thread["id"]))["interactions"]) == 4, "the one that was used last"


async def test_events_as_lines(served: ChatKit, model: ScriptedModel) -> None:
    await model.script({"text": "Hello \x1b[31m\x9b."})
    done = await chat("--url", served.base_url, "--json", "--thread", "mine", "--exec", "hello")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["event"] for one in events if not one["event"].endswith("_delta")] == [
        "interaction_started",
        "turn_start",
        "turn_end",
        "answer",
        "interaction_complete",
    ]
    assert events[0]["data"]["chat_id"] == "mine"
    assert "\x1b" not in done.stdout
    assert done.stdout.isascii()


async def test_it_ends_as_it_went(served: ChatKit, model: ScriptedModel) -> None:
    url = ("--url", served.base_url)
    thread = await with_tasks(served, model, 1)
    await model.script(calls(deleting(1)))
    asks = await chat(*url, "--thread", thread, "--exec", "delete it")
    assert (asks.returncode, asks.stdout) == (3, "")
    assert f"It waits for your consent: ./todo chat --thread {thread}" in asks.stderr
    await model.reset()
    await model.script({"status": 401, "body": {}})
    failed = await chat(*url, "--exec", "hello")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("error: ")
    for arguments, status, sentence in (
        (("--url", f"http://127.0.0.1:{find_free_port()}", "--exec", "x"), 2, "No assistant answers at http"),
        ((*url, "--exec", "  "), 1, "nothing to say"),
        ((*url, "--model", "huge", "--exec", "x"), 1, "Ask for one of these: offline-rules, large."),
        ((*url, "--temp", "3", "--exec", "x"), 2, "3 is no number from 0 to 2"),
        ((*url, "--temp", "nan", "--exec", "x"), 2, "nan is no number from 0 to 2"),
        ((*url, "--thread", "thr_none", "--exec", "x"), 1, "error: "),
        ((*url, "--thread", "../x", "--exec", "x"), 2, "is no conversation's id or name"),
        (("--url", "ftp://x", "--exec", "x"), 2, "the address of the page"),
    ):
        done = await chat(*arguments)
        assert (done.returncode, done.stdout) == (status, "")
        assert sentence in done.stderr


@pytest.mark.parametrize("request_", [signal.SIGINT, signal.SIGTERM])
async def test_who_interrupts_it_stops_the_answer(
    request_: signal.Signals, served: ChatKit, model: ScriptedModel
) -> None:
    await model.script({"text": "one two three four " * 10, "chunk_chars": 8, "token_delay": 0.2})
    command = [sys.executable, "-P", "-m", "cli", "chat", "--url", served.base_url, "--exec", "count"]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    piped = asyncio.subprocess.PIPE
    asked = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=environment, stdout=piped, stderr=piped)
    assert asked.stdout is not None
    assert asked.stderr is not None
    assert (await asked.stdout.read(3)) == b"one"
    asked.send_signal(request_)
    assert await asyncio.wait_for(asked.wait(), 30) == 130
    assert await asked.stderr.read() == b"Stopped.\n"
    [thread] = (await served.list_threads()).data
    async with Runs(served.base_url) as runs:
        assert (await runs.get_chat(thread["id"]))["interactions"][0]["status"] in ("RUNNING", "CANCELLED")


async def test_a_token_signs_in_and_goes_nowhere_else(backend: Backend, model: ScriptedModel) -> None:
    await model.script({"text": "Hello Ann."})
    async with backend(**of_provider("todo")) as server:
        url: tuple[Any, ...] = ("--url", server.base_url, "--exec", "hello")
        assert (await chat(*url)).returncode == 1
        signed_in = await chat(*url, TODO_TOKEN=minted(IDP_SECRET, sub="ann", iss=ISSUER, aud="todo"))
        assert (signed_in.returncode, signed_in.stdout) == (0, "Hello Ann.\n")
    elsewhere = await chat("--url", "http://192.0.2.1", "--exec", "hello", TODO_TOKEN="secret")
    assert elsewhere.returncode == 1
    assert "TODO_TOKEN is sent over https or to this machine only" in elsewhere.stderr
