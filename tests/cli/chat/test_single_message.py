"""One message and its answer: what is on stdout, what on stderr, and with which status it ends."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from tests.chatkit_client import ChatKit
from tests.cli.chat.terminal import chat as run_chat
from tests.conftest import ROOT, find_free_port
from tests.scripted_model import ScriptedModel
from tests.support.approvals import talk_with_tasks
from tests.support.backends import user_at
from tests.support.script import add_task, call, calls, delete_tasks, endless_answer, says
from tests.support.stack import Services
from tests.support.users import User
from todo_client.connection import ApiError

pytestmark = pytest.mark.long

ADDING = {**add_task("milk"), "text": "I add it."}
Chat = Callable[..., Awaitable["subprocess.CompletedProcess[str]"]]


@pytest.fixture
def chat(user: User) -> Chat:
    """`./todo chat` of the user, without a terminal."""
    return partial(run_chat, TODO_TOKEN=user.token)


async def test_answer_is_on_stdout(served: ChatKit, user: User, chat: Chat, model: ScriptedModel) -> None:
    await model.script(
        ADDING, {"text": "**Added**: it is \x1b[31mthere."}, {"text": "You are welcome."}, {"text": "Hello."}
    )
    url = ("--url", served.base_url)
    done = await chat(*url, stdin=b"add milk\n")
    assert (done.returncode, done.stdout) == (0, "I add it.\n\n**Added**: it is [31mthere.\n\nAdded 1\n")
    assert "✓ add task 1 milk" in done.stderr
    assert " in · " in done.stderr.splitlines()[-1]
    assert "\x1b" not in done.stderr
    done = await chat(*url, "--continue", "--exec", "thank you", "--temp", "1.5", "--model", "large")
    assert (done.returncode, done.stdout) == (0, "You are welcome.\n")
    [thread] = (await served.list_threads()).data
    body = (await model.finished_requests())[-1]["body"]
    assert (body["model"], body["temperature"]) == ("large", 1.5)
    assert len((await user.runs.get_chat(thread["id"]))["interactions"]) == 2
    done = await chat(*url, "--new", "--debug", "--exec", "hello")
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert "interaction_complete" in done.stderr
    assert len((await served.list_threads()).data) == 2
    await model.script({"text": "In the first."}, {"text": "There again."})
    assert (await chat(*url, "--thread", thread["id"], "--exec", "and here")).stdout == "In the first.\n"
    assert (await chat(*url, "--continue", "--exec", "still here")).stdout == "There again.\n"
    assert len((await user.runs.get_chat(thread["id"]))["interactions"]) == 4, "the one that was used last"


async def test_temperature_of_a_model_that_takes_none(services: Services, chat: Chat, model: ScriptedModel) -> None:
    await model.script(says("Hello."))
    async with user_at(services, LLM_OMIT="temperature") as there:
        done = await chat("--url", there.url, "--temp", "0.5", "--exec", "hello", TODO_TOKEN=there.token)
        assert (done.returncode, done.stdout) == (0, "Hello.\n")
        assert len([line for line in done.stderr.splitlines() if "takes no temperature" in line]) == 1
        with pytest.raises(ApiError, match="takes no temperature"):
            await there.runs.say("groceries", "hello", more={"metadata": {"temperature": 0.5}})
    assert "temperature" not in (await model.finished_requests())[-1]["body"]


async def test_memory_with_a_conversation_that_has_only_a_name(
    served: ChatKit, user: User, chat: Chat, model: ScriptedModel
) -> None:
    options = ("--url", served.base_url, "--thread", "mine", "--exec")
    assert (await chat(*options, "/memory one")).returncode == 0
    await model.script(says("Hello."))
    assert (await chat(*options, "hello")).returncode == 0
    assert (await chat(*options, "/memory two")).returncode == 0
    assert (await user.runs.memory())["text"] == "* one\n* two"
    logged = [json.loads(line)["input"] for line in (await user.runs.get_log("mine"))]
    assert [text for text in logged if text and text.startswith("/memory")] == ["/memory * two"]


async def test_list_is_on_stdout(served: ChatKit, user: User, chat: Chat, model: ScriptedModel) -> None:
    url, listing = ("--url", served.base_url), calls(call("list_tasks", limit=1))
    await talk_with_tasks(user, model, 2)
    await model.script(listing, {"text": "2 open tasks."}, listing, {"text": "Task number 1, and another."})
    done = await chat(*url, "--exec", "what is on my list?")
    assert done.stdout == "2 open tasks.\n\n· 1 task number 1\nand 1 more\n"
    assert "task number 1" not in done.stderr
    assert (await chat(*url, "--exec", "and now?")).stdout == "Task number 1, and another.\n"


async def test_json(served: ChatKit, user: User, chat: Chat, model: ScriptedModel) -> None:
    await model.script({"text": "Hello \x1b[31m\x9b."})
    done = await chat("--url", served.base_url, "--json", "--thread", "mine", "--exec", "hello")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    names = [one["event"] for one in events]
    assert (names[0], names[-1]) == ("interaction_started", "interaction_complete")
    assert {"answer", "answer_delta"} <= {*names}
    assert events[0]["data"]["chat_id"] == "mine"
    assert "\x1b" not in done.stdout
    assert done.stdout.isascii()


async def test_exit_status(served: ChatKit, user: User, chat: Chat, model: ScriptedModel) -> None:
    url = ("--url", served.base_url)
    thread = await talk_with_tasks(user, model, 1)
    await model.script(delete_tasks(1))
    asks = await chat(*url, "--thread", thread, "--exec", "delete it")
    assert (asks.returncode, asks.stdout) == (3, "")
    assert f"This needs your approval. Decide with: ./todo chat --thread {thread}" in asks.stderr
    await model.reset()
    await model.script({"status": 401, "body": {}})
    failed = await chat(*url, "--exec", "hello")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("error: ")
    for arguments, status, sentence in (
        (("--url", f"http://127.0.0.1:{find_free_port()}", "--exec", "x"), 2, "No server is running at http"),
        ((*url, "--exec", "  "), 2, "nothing to say"),
        ((*url, "--model", "huge", "--exec", "x"), 1, "Choose one of these: offline-rules, large."),
        ((*url, "--thread", "thr_none", "--exec", "x"), 1, "error: "),
    ):
        done = await chat(*arguments)
        assert (done.returncode, done.stdout) == (status, "")
        assert sentence in done.stderr


@pytest.mark.parametrize("request_", [signal.SIGINT, signal.SIGTERM])
async def test_interrupted(request_: signal.Signals, served: ChatKit, user: User, model: ScriptedModel) -> None:
    await model.script(endless_answer("one two three"))
    command = [sys.executable, "-P", "-m", "cli", "chat", "--url", served.base_url, "--exec", "count"]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TODO_TOKEN": user.token}
    piped = asyncio.subprocess.PIPE
    asked = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=environment, stdout=piped, stderr=piped)
    assert asked.stdout is not None
    assert asked.stderr is not None
    assert (await asked.stdout.read(3)) == b"one"
    asked.send_signal(request_)
    assert await asyncio.wait_for(asked.wait(), 30) == 130
    assert await asked.stderr.read() == b"Stopped.\n"
    [thread] = (await served.list_threads()).data
    assert (await user.runs.get_chat(thread["id"]))["interactions"][0]["status"] in ("RUNNING", "CANCELLED")


async def test_token(user: User, model: ScriptedModel) -> None:
    """It signs in, and is sent to no other machine without encryption."""
    await model.script(says("Hello Ann."))
    signed_in = await run_chat("--url", user.url, "--exec", "hello", TODO_TOKEN=user.token)
    assert (signed_in.returncode, signed_in.stdout) == (0, "Hello Ann.\n")
    elsewhere = await run_chat("--url", "http://192.0.2.1", "--exec", "hello", TODO_TOKEN="secret")
    assert elsewhere.returncode == 1
    assert "TODO_TOKEN" in elsewhere.stderr


async def test_token_that_is_rejected(user: User) -> None:
    expired = user.mint_token(exp=1_764_000_000)
    for token, reason in (
        (
            "",
            "You are not signed in. Set TODO_TOKEN to a token that you make on the page, or to one of your identity "
            "provider.",
        ),
        ("a secret", "TODO_TOKEN has spaces or other characters that no token has."),
        ("caf\udce9", "TODO_TOKEN has spaces or other characters that no token has."),
        (expired, "the token in TODO_TOKEN expired at 2025-11-24 16:00 UTC."),
    ):
        done = await run_chat("--url", user.url, "--exec", "hello", TODO_TOKEN=token)
        assert (done.returncode, done.stdout) == (1, "")
        [sentence] = done.stderr.splitlines()
        assert reason in sentence
        assert len(token) < 10 or token not in sentence


async def test_new_conversation_is_announced(served: ChatKit, user: User, chat: Chat, model: ScriptedModel) -> None:
    await model.script(*[{"text": "Hello."}] * 3)
    url = ("--url", served.base_url)
    begun = await chat(*url, "--continue", "--exec", "hello")
    assert (begun.returncode, begun.stdout) == (0, "Hello.\n")
    assert "There is no conversation to continue: this starts a new one." in begun.stderr
    begun, continued = [await chat(*url, "--thread", "mine", "--exec", "hello") for _ in range(2)]
    assert (begun.stdout, continued.stdout) == ("Hello.\n", "Hello.\n")
    assert "This starts a new conversation named mine." in begun.stderr
    assert "new conversation" not in continued.stderr


async def test_text_that_is_not_utf8(served: ChatKit, chat: Chat, model: ScriptedModel) -> None:
    url = ("--url", served.base_url)
    for done in (await chat(*url, stdin=b"add caf\xe9"), await chat(*url, "--exec", "add caf\udce9")):
        assert (done.returncode, done.stdout) == (2, "")
        [sentence] = done.stderr.splitlines()
        assert "is not UTF-8 text" in sentence
    assert await model.requests() == []


async def test_output_that_is_closed_or_full(served: ChatKit, user: User, chat: Chat, model: ScriptedModel) -> None:
    url = ("--url", served.base_url)
    await model.script(*[ADDING, says("There.")] * 3)
    answer = "I add it.\n\nThere.\n\nAdded 1\n"
    for redirection, output in ((">&-", ""), ("2>&-", answer), ("<&- >&- 2>&-", "")):
        done = await chat(*url, "--exec", "add milk", redirection=redirection)
        assert (done.returncode, done.stdout) == (0, output)
    assert len((await user.runs.tasks("all"))["tasks"]) == 3
    await model.script(*[{"text": "one two three"}] * 3)
    for arguments in ((), ("--json",)):
        full = await chat(*url, *arguments, "--exec", "count", redirection=">/dev/full")
        assert full.returncode == 1
        assert full.stderr.splitlines() == ["error: The output cannot be written: No space left on device."]
    closed = await chat(*url, "--exec", "count", redirection="| head -c 0")
    assert closed.stderr == ""


async def test_tables_fit_80_columns(served: ChatKit, user: User, chat: Chat, model: ScriptedModel) -> None:
    await model.script(add_task("a long title " * 10, due="2030-11-30 15:00", labels=["one", "two"]), says("Added."))
    await user.chatkit.say("add it")
    for command in ("/tasks", "/threads", "/help"):
        done = await chat("--url", served.base_url, "--exec", command)
        assert max(map(len, done.stdout.splitlines())) <= 80


async def test_slash_command(served: ChatKit, user: User, chat: Chat, model: ScriptedModel) -> None:
    url = ("--url", served.base_url)
    thread = await talk_with_tasks(user, model, 2)
    tasks = await chat(*url, "--exec", "/tasks")
    assert (tasks.returncode, tasks.stderr) == (0, "")
    assert "task number 1" in tasks.stdout
    undone = await chat(*url, "--thread", thread, stdin=b"/undo\n")
    assert (undone.returncode, undone.stdout.partition("\n")[0]) == (0, "Undone. The tasks are now:")
    titles = sorted(undone.stdout.splitlines()[1:])
    assert titles == ["· task number 1 (deleted)", "· task number 2 (deleted)"]
    assert (await chat(*url, "--exec", "/tasks")).stdout == "No tasks.\n"
    log = await chat(*url, "--thread", thread, "--exec", "/log")
    events = [json.loads(line)["event"] for line in log.stdout.splitlines()]
    assert (log.returncode, events[0]) == (0, "session_start")
    for command, sentence in (
        ("/taks", "There is no /taks. Did you mean /tasks?"),
        ("/put", "/put FILE: add a file from this machine."),
        ("/retry", "/retry works only in a conversation: start ./todo chat."),
        ("/get none.txt", "This conversation is empty."),
    ):
        failed = await chat(*url, "--exec", command)
        assert (failed.returncode, failed.stdout) == (1, "")
        assert sentence in failed.stderr
    before = len(await model.requests())
    await model.script({"text": "A path."})
    assert (await chat(*url, "--exec", "//etc is what?")).stdout == "A path.\n"
    [sent] = (await model.requests())[before:]
    assert sent["body"]["messages"][-1]["content"].endswith("/etc is what?")


async def test_listed_tasks_have_their_dates(served: ChatKit, user: User, chat: Chat, model: ScriptedModel) -> None:
    dates = ("2030-11-29", "2030-11-30 15:00")
    await model.script(*[add_task(f"due {due}", due=due) for due in dates], says("Added."))
    await user.chatkit.say("add them")
    lines = (await chat("--url", served.base_url, "--exec", "/tasks")).stdout.splitlines()
    assert [line.split("  ")[-1].strip() for line in lines] == ["Fri 29 Nov 2030", "Sat 30 Nov 2030 15:00"]


async def test_file_is_written_here(served: ChatKit, user: User, chat: Chat, tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("one two")
    options = ("--url", served.base_url, "--thread", (await user.runs.begin("files"))["id"])
    assert (await chat(*options, "--exec", f"/put {own}")).returncode == 0
    there = tmp_path / "there"
    there.mkdir()
    got = await chat(*options, "--exec", "/get own.txt", cwd=there)
    assert (got.returncode, "Wrote own.txt to the current directory: 7 bytes." in got.stderr) == (0, True)
    assert (there / "own.txt").read_text() == "one two"
    again = await chat(*options, "--exec", "/get own.txt", cwd=there)
    assert (again.returncode, "own.txt exists here already." in again.stderr) == (1, True)


async def test_all_is_approved(served: ChatKit, user: User, chat: Chat, model: ScriptedModel) -> None:
    options = ("--url", served.base_url, "--thread", await talk_with_tasks(user, model, 2))
    await model.script(delete_tasks(1), delete_tasks(2), {"text": "Both are deleted."})
    done = await chat(*options, "--yes", "--exec", "delete both")
    assert (done.returncode, done.stdout) == (0, "Both are deleted.\n\nDeleted 2\n")
    assert (await chat(*options, "--exec", "/tasks")).stdout == "No tasks.\n"
