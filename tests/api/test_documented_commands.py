"""The curl commands of the documents work as they are written; each operation has one."""

import asyncio
import json
import os
import re

import httpx2
import pytest

from tests.conftest import ROOT
from tests.runs_client import SHAPES, id_of
from tests.scripted_model import ScriptedModel
from tests.support.ai_sdk import FRONTENDS, VERSIONS
from tests.support.answers import start_run
from tests.support.script import SLOW, add_task, delete_tasks, says
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until

pytestmark = pytest.mark.long

API_PAGE, FRONTENDS_PAGE, AGENTS_PAGE = (
    (ROOT / "docs" / name).read_text() for name in ("api.md", "frontends.md", "agents.md")
)
LINES = f"{API_PAGE}\n{FRONTENDS_PAGE}\n{AGENTS_PAGE}".splitlines()
COMMANDS = [line.strip() for line in LINES if line.startswith("    curl ")]
UNPUBLISHED = {
    ("post", "/chatkit"),
    ("get", "/tasks"),
    ("get", "/tasks/preview"),
    ("post", "/tasks"),
    ("patch", "/tasks/{task_id}"),
    ("post", "/tasks/undo"),
    ("get", "/memory"),
    ("put", "/memory"),
}
"""Operations with a command that the published schema leaves out."""
TASKS = {("post", "/tasks"): [["buy milk"], ["call mum"]], ("patch", "/tasks/{task_id}"): [["milk"]]}
"""The tasks that the commands of an operation leave behind."""
ADDRESS = "localhost:8000"


@pytest.fixture
def stack_name() -> str:
    return "approvals"


def operation(command: str) -> tuple[str, str]:
    """The method and the path of the schema that a command asks for."""
    [path] = re.findall(rf"{ADDRESS}([^ '?]*)", command)
    [method] = re.findall(r"-sX ([A-Z]+)", command) or ["POST" if " -d " in command else "GET"]
    for value, name in (
        ("groceries", "{chat_id}"),
        ("$RUN", "{interaction_id}"),
        ("$INPUT", "{input_id}"),
        ("$TASK", "{task_id}"),
    ):
        path = path.replace(value, name)
    return method.lower(), path


def name_of(command: str) -> str:
    return " ".join(operation(command))


async def run(command: str, known: dict[str, str]) -> str:
    """What the command prints, in a shell that knows these variables."""
    environment = {**os.environ, **known, "no_proxy": "*"}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_shell(f"{command} --fail-with-body", stdout=pipe, env=environment)
    printed, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0, printed
    return printed.decode()


@pytest.mark.parametrize("command", COMMANDS, ids=name_of)
async def test_command(command: str, user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(says("Hello."))
    known = {"RUN": id_of(await user.runs.say("groceries", "hello"))}
    if "$APPROVAL" in command:
        await model.script(add_task("milk"), delete_tasks(1), says("Done."))
        known["RUN"] = await start_run(user, "groceries", "go on", until="approval_required")
        await until(lambda: stored.run_statuses(user.name)[-1] == "waiting")
        [approval] = (await user.runs.get_interaction("groceries", known["RUN"]))["approvals"]
        known["APPROVAL"] = approval["approval_id"]
    elif "/cancel" in command or "/messages" in command:
        await model.script(SLOW, says("Hello."))
        known["RUN"] = await start_run(user, "groceries", "go on", until="turn_start")
        if "$INPUT" in command:
            queued = await user.runs.send("groceries", known["RUN"], "and then?", mode="follow_up")
            known["INPUT"] = queued["input_id"]
    elif "$TASK" in command or "$BATCH" in command:
        added = (await user.page.http.post("/tasks", json={"title": "milk"})).json()
        known |= {"TASK": str(added["tasks"][0]["id"]), "BATCH": added["batch"]}
    else:
        await model.script(says("Yes."), says("Yes."))
    authorized = f"{command.replace(ADDRESS, user.url)} -H 'Authorization: Bearer {user.token}'"
    printed = await run(authorized, known)
    match operation(command)[1]:
        case "/chat":
            assert json.loads(printed)["status"] == "completed"
        case "/chat/stream":
            assert printed.rstrip().endswith("data: [DONE]")
        case "/chat/stream/{chat_id}/stream":
            assert "204 No Content" in printed
        case "/memory":
            assert '"lines_read"' in printed
        case "/chatkit":
            assert "message_complete" in printed
        case path if path.endswith(("/interactions", "/events", "/edit")):
            assert printed.rstrip().splitlines()[-2] == "event: interaction_complete"
            assert '"status": "COMPLETED"' in printed
        case path if path.endswith("/log"):
            assert "user_message" in [json.loads(line)["event"] for line in printed.splitlines()]
        case _:
            assert "error" not in json.loads(printed)
    await until(lambda: not {"running", "waiting"} & {*stored.run_statuses(user.name)})
    assert stored.titles(user.name) in TASKS.get(operation(command), [[]])


def test_each_operation_has_a_command(user: User) -> None:
    paths = httpx2.get(f"{user.url}/chats/openapi.json", trust_env=False).json()["paths"]
    published = {(method, path) for path, methods in paths.items() for method in methods}
    assert {operation(command) for command in COMMANDS} == {*published, *UNPUBLISHED}


def test_each_event_is_documented() -> None:
    rows = "\n".join(line.split("|")[1] for line in API_PAGE.splitlines() if line.startswith("| `"))
    assert [name for name in SHAPES if f"`{name}`" not in rows] == []


def test_tested_versions_are_documented() -> None:
    locked = json.loads((FRONTENDS / "package.json").read_text())["dependencies"]
    majors = [locked[name].rpartition("@")[2].partition(".")[0] for name in VERSIONS.values()]
    assert majors == [str(version) for version in VERSIONS]
    assert f"`assistant-stream` {locked['assistant-stream'].rpartition('.')[0]}" in FRONTENDS_PAGE
