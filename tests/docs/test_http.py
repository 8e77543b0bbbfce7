"""The requests of the documents, as curl sends them; each operation has one."""

import asyncio
import json
import os
import re
from typing import Any

import httpx2
import pytest

from tests.conftest import ROOT
from tests.docs.documents import COMMANDS, HTTP_DOCUMENTS, Command, check_answer, find_definitions
from tests.scripted_model import ScriptedModel
from tests.support.ai_sdk import FRONTENDS, VERSIONS
from tests.support.answers import start_run
from tests.support.script import PAUSING, add_task, delete_tasks, says, start_coder, summarises
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until

pytestmark = pytest.mark.long(seconds=15)

REQUESTS = [one for one in COMMANDS if one.document in HTTP_DOCUMENTS and "curl " in one.text]
WITHOUT_COMMAND = {
    *(("get", path) for path in ("/", "/c/{chat_id}", "/t/{task_id}", "/widget", "/openapi.json")),
    *(("get", path) for path in ("/today", "/upcoming", "/all", "/done", "/deleted")),
    *(("get", path) for path in ("/assets/{hash}/{path}", "/manifest.json", "/service-worker.js")),
    *(("get", path) for path in ("/health", "/ready", "/metrics", "/calendar/{name}")),
    *((method, "/calendar") for method in ("get", "post", "delete")),
    *((method, "/session") for method in ("get", "post", "delete")),
    *(("post", "/setup"), ("put", "/session/password")),
    *(("post", path) for path in ("/links", "/links/take")),
    *(("get", "/session/callback"), ("post", "/session/provider")),
    *((method, "/sessions") for method in ("get", "delete")),
    ("delete", "/sessions/{session_id}"),
    *((method, "/tokens") for method in ("get", "post")),
    *(("delete", "/tokens/{token_id}"), ("get", "/calendar.ics")),
    *((method, "/authorization") for method in ("get", "post")),
    *((method, "/alerts/settings") for method in ("get", "patch")),
    *(("get", "/alerts"), ("get", "/alerts/unshown"), ("post", "/alerts/channels"), ("post", "/alerts/shown")),
    *((method, "/alerts/channels/{channel_id}") for method in ("patch", "delete")),
    ("post", "/alerts/channels/{channel_id}/test"),
    *(("post", f"/alerts/{{key}}/{action}") for action in ("shown", "done", "snooze")),
    ("get", "/clients"),
    ("delete", "/clients/{client_id}"),
    *((method, "/chats/{chat_id}/files/{path}") for method in ("get", "put", "delete")),
    ("get", "/chats/{chat_id}/files"),
    ("post", "/chats/{chat_id}/commit"),
    ("get", "/chats/{chat_id}/work/{item_id}/{number}"),
    ("post", "/conversations"),
    ("post", "/memory"),
    ("get", "/schedules/preview"),
    *((method, "/schedules/{schedule_id}") for method in ("patch", "delete")),
    ("post", "/schedules/{schedule_id}/run"),
    ("get", "/tasks/changes"),
    ("get", "/tasks/{task_id}"),
    ("get", "/tasks/{task_id}/files"),
    ("delete", "/tasks/{task_id}"),
}
"""Operations that the documents only name, or that are for the page and for other programs."""
ADDRESS = "localhost:8000"
CURL = 'curl() { command curl -H "Authorization: Bearer $TODO_TOKEN" --fail-with-body "$@"; }'
NAME = re.compile(r"`(\w+)`")
STREAMS = ("/interactions", "/events", "/edit")


@pytest.fixture
def stack_name() -> str:
    return "approvals"


def operation(command: Command) -> tuple[str, str]:
    """The method and the path of the schema that a command asks for."""
    [path] = re.findall(rf"{ADDRESS}([^ '?]*)", command.text)
    [method] = re.findall(r"-sX ([A-Z]+)", command.text) or ["POST" if " -d " in command.text else "GET"]
    for value, name in (
        ("groceries", "{chat_id}"),
        ("$RUN", "{interaction_id}"),
        ("$INPUT", "{input_id}"),
        ("$TASK", "{task_id}"),
    ):
        path = path.replace(value, name)
    return method.lower(), path


def name_of(command: Command) -> str:
    return " ".join(operation(command))


async def prepare(command: Command, user: User, model: ScriptedModel, stored: Stored) -> None:
    """Does what a reader did before this command, or what the model does then."""
    await model.script(add_task("milk"), says("Added “milk”."))
    await user.runs.say("groceries", "add milk")
    if "/approve" in command.text or command.sets == "APPROVAL":
        await model.script(delete_tasks(1), says("Fine."))
        await start_run(user, "groceries", "go on", until="approval_required")
        await until(lambda: stored.run_statuses(user.name)[-1] == "waiting")
    elif "/cancel" in command.text or "/messages" in command.text:
        await model.script(PAUSING, says("Hello."))
        await start_run(user, "groceries", "go on", until="turn_start")
    elif "/compact" in command.text:
        for text in ("add eggs", "add bread", "add tea", "add jam"):
            await model.script(says("Fine."))
            await user.runs.say("groceries", text)
        await model.script(summarises("You added milk, eggs and bread."))
    elif "/steps" in command.text:
        await model.script(start_coder("Write a poem."), says("Here it is."), says("Fine."))
        run_id = await start_run(user, "groceries", "write a poem", until="approval_required")
        await until(lambda: stored.run_statuses(user.name)[-1] == "waiting")
        [approval] = (await user.runs.get_interaction("groceries", run_id))["approvals"]
        await user.runs.approve("groceries", run_id, approval["approval_id"], approved=True)
        await user.runs.read("groceries", run_id)
    else:
        await model.script(add_task("milk"), says("Added “milk”."))


async def run(command: Command, user: User) -> str:
    """What the command prints, or sets, in a shell where those before it have set their variables."""
    set_variable = f'echo "${{{command.sets}:?}}"' if command.sets else ""
    definitions = find_definitions(command)
    text = "\n".join([CURL, definitions, command.text, set_variable]).replace(ADDRESS, user.url)
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euc", text),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "TODO_TOKEN": user.token, "no_proxy": "*"},
    )
    printed, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0, printed
    return printed.decode().replace(user.name, "local")


@pytest.mark.parametrize("command", REQUESTS, ids=name_of)
async def test_request(command: Command, user: User, model: ScriptedModel, stored: Stored) -> None:
    await prepare(command, user, model, stored)
    printed = await run(command, user)
    await model.release()
    check_answer(command, printed)
    match operation(command)[1]:
        case "/chat/stream":
            assert printed.rstrip().endswith("data: [DONE]")
        case "/chat/stream/{chat_id}/stream":
            assert "204 No Content" in printed
        case _ if command.sets:
            pass
        case path if path.endswith(STREAMS):
            assert printed.rstrip().splitlines()[-2] == "event: interaction_complete"
            assert '"status": "COMPLETED"' in printed
        case path if path.endswith("/log"):
            assert "user_message" in [json.loads(line)["event"] for line in printed.splitlines()]
        case _:
            pass
    busy = {"running"} if command.sets else {"running", "waiting"}
    await until(lambda: not busy & {*stored.run_statuses(user.name)})


def test_commands_take_ids_from_variables() -> None:
    assert [
        one.text for one in REQUESTS if re.search(r"\b(run|msg|thr|call)_|/tasks/\d|(_id\W*|ID): *\d", one.text)
    ] == []


def test_each_operation_has_a_command(user: User) -> None:
    paths = httpx2.get(f"{user.url}/openapi.json", trust_env=False, timeout=60).json()["paths"]
    published = {(method, path) for path, methods in paths.items() for method in methods}
    assert {operation(command) for command in REQUESTS} == published - WITHOUT_COMMAND
    assert published >= WITHOUT_COMMAND


def test_tested_versions_are_documented() -> None:
    locked = json.loads((FRONTENDS / "package.json").read_text())["dependencies"]
    majors = [locked[name].rpartition("@")[2].partition(".")[0] for name in VERSIONS.values()]
    assert majors == [str(version) for version in VERSIONS]
    document = (ROOT / "docs/frontends.md").read_text()
    assert f"`assistant-stream` {locked['assistant-stream'].rpartition('.')[0]}" in document


def read_words() -> dict[str, tuple[list[str], list[str]]]:
    """Returns the names of a conversation and of a run in each API, by the table of words."""
    table = (ROOT / "docs/api.md").read_text().partition("\n## Words\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if " | " in line]
    return {api: (NAME.findall(thread), NAME.findall(run)) for api, thread, run, _ in rows[1:]}


def find_log_line(stack: Stack, thread: str) -> dict[str, Any] | None:
    lines = (line for line in stack.backends[0].log_text.splitlines() if thread in line and "run ended" in line)
    return next(map(json.loads, lines), None)


async def test_words(user: User, model: ScriptedModel, stack: Stack) -> None:
    """Each API has the names of the table, with the same ids."""
    words = read_words()
    thread = (await user.chatkit.say("hello")).thread_id
    message: dict[str, Any] = {"threadId": thread, "messages": [{"role": "user", "content": "hello"}]}
    http = user.runs.http
    plain = await http.post("/chatkit", json={"conversation_id": thread, "message": "hello"})
    stream = await http.post("/chat/stream", json=message)
    answers: dict[str, dict[str, Any]] = {
        "run API": (await user.runs.say(thread, "hello"))[0].data,
        "ChatKit": (await user.chatkit.items(thread))[0],
        "`/chat`": (await http.post("/chat", json=message)).json(),
        "`/chat/stream`": json.loads(stream.text.partition("data: ")[2].splitlines()[0])["messageMetadata"],
        "plain message at `/chatkit`": json.loads(plain.text.rpartition("data: ")[2]),
        "[JSONL log](agents.md#log)": json.loads((await http.get(f"/chats/{thread}/log")).text.splitlines()[-1]),
        "service logs": await until(lambda: find_log_line(stack, thread)),
    }
    assert words.keys() - {"metrics, traces"} == answers.keys()
    runs = [run["id"] for run in (await http.get(f"/chats/{thread}")).json()["interactions"]]
    for api, answer in answers.items():
        [conversation], run = words[api]
        assert answer[conversation] == thread, api
        assert [name for name in run if answer[name] not in runs] == [], api
