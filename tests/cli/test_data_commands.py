"""`./todo` on the data of running services: export, log, forget, usage, calendar, mcp, models and token."""

import asyncio
import json
import os
import stat
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, find_free_port
from tests.fake_ollama import model as ollama_model
from tests.fake_ollama import serve_ollama
from tests.scripted_model import ScriptedModel
from tests.serving import http_client
from tests.support.answers import HANGS, find_thread, start_run
from tests.support.approvals import APIS, wait_for_approval
from tests.support.commands import todo, todo_at
from tests.support.fixtures import NewUser
from tests.support.script import add_task, call, calls, delete_tasks, endless_answer, says, start_coder
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.chatkit import user_input

pytestmark = pytest.mark.long

KEY = "sk-a-very-secret-key"
FULL = "error: The output cannot be written: No space left on device."
SILENT = {**HANGS, "eof_after": 0}
# The tables of the task server, and where an export has their rows.
TASK_TABLES = {"tasks": "tasks", "task_calls": "changes", "task_changes": "changes", "people": "people"}


def error_of(output: str) -> str:
    """The one line of an error; nothing internal is shown."""
    [line] = output.splitlines()
    assert "Traceback" not in line
    return line


def contents(directory: Path) -> set[str]:
    """The texts of all files below."""
    return {path.read_text(errors="replace") for path in directory.rglob("*") if path.is_file()}


class TestExportAndForget:
    @pytest.fixture
    def stack_name(self) -> str:
        return "approvals"

    @pytest.fixture
    async def written(self, user: User, new_user: NewUser, model: ScriptedModel) -> User:
        """A user with tasks, files, a memory, a calendar, an ended session and a call that waits for approval."""
        await model.script(add_task("milk", also=["bread"]), says("Added."))
        thread = (await user.chatkit.say("add milk and bread")).thread_id
        await user.runs.put_file(thread, "notes.txt", f"of {user.name}".encode())
        await user.runs.add_to_memory("* I work nights")
        await user.chatkit.http.post("/calendar")
        await model.script(delete_tasks(1), {"status": 401})
        await user.chatkit.say("delete milk", thread)
        deleted = (await user.chatkit.say("fail")).thread_id
        await user.chatkit.delete_thread(deleted)
        async with http_client(user.url) as http:
            await http.post("/session", headers={"Authorization": f"Bearer {user.token}"})
            await http.delete("/session", headers={"Origin": user.url})
        return user

    @pytest.fixture
    async def other(self, new_user: NewUser, model: ScriptedModel) -> User:
        user = new_user()
        await model.script(add_task("something else"), says("Added."))
        thread = (await user.chatkit.say("add something else")).thread_id
        await user.runs.put_file(thread, "notes.txt", f"of {user.name}".encode())
        return user

    async def test_everything_of_one_user(
        self, stack: Stack, written: User, other: User, model: ScriptedModel, stored: Stored, tmp_path: Path
    ) -> None:
        name, document, archive = written.name, tmp_path / "user.json", tmp_path / "user.tar"
        files = ("--output", str(document), "--files", str(archive))
        exported = await todo_at(stack, "export", "--user", name, *files)
        assert exported.returncode == 0, exported.stderr
        assert {stat.S_IMODE(path.stat().st_mode) for path in (document, archive)} == {0o600}
        await self._check_export(json.loads(document.read_text()), written, stored)
        assert other.name not in document.read_text()
        [thread] = [thread["id"] for thread in (await written.chatkit.list_threads()).data]
        with tarfile.open(archive) as packed:
            assert packed.getnames() == [thread, f"{thread}/notes.txt"]
        again = await todo_at(stack, "export", "--user", name, *files)
        assert again.returncode == 1, "a file that is there is not overwritten"

        logged = await todo_at(stack, "export", "--user", name, "--format", "jsonl")
        assert logged.returncode == 0, logged.stderr
        lines = await written.runs.get_log(thread)
        assert [json.loads(line) for line in logged.stdout.splitlines()] == [json.loads(line) for line in lines]
        missing = await todo_at(stack, "export", "--user", name, "--format", "jsonl", "--thread", "thr_none")
        assert missing.returncode == 1
        for redirection, sentence in (
            (">/dev/full", FULL),
            (">&-", "error: There is no standard output to write to."),
        ):
            lost = await todo_at(stack, "export", "--user", name, redirection=redirection)
            assert (lost.returncode, error_of(lost.stderr)) == (1, sentence)

        cards = [item for item in await written.chatkit.items(thread) if item["type"] == "widget"]
        folders, before = Path(stack.services.workspace.environment["WORKSPACE_DIR"]), stored.row_counts(other.name)
        texts = {f"of {name}", f"of {other.name}"}
        assert texts <= contents(folders)
        forgotten = await todo_at(stack, "forget", "--user", name, "--yes")
        assert forgotten.returncode == 0, forgotten.stderr
        assert stored.row_counts(name) == {}
        assert stored.row_counts(other.name) == before
        assert contents(folders) & texts == {f"of {other.name}"}, "only the other user's files are there"
        assert (await other.runs.files((await other.chatkit.list_threads()).data[0]["id"]))["files"]
        action = {"type": "approve", "payload": {}}
        params = {"thread_id": thread, "item_id": cards[-1]["id"], "action": action}
        assert (await written.chatkit.post("threads.custom_action", **params)).status_code == 404
        for command in ("forget", "export"):
            nothing = await todo_at(stack, command, "--user", name, *(["--yes"] if command == "forget" else []))
            assert (nothing.returncode, nothing.stdout) == (1, "")
            assert name in error_of(nothing.stderr)

    async def _check_export(self, document: dict[str, Any], user: User, stored: Stored) -> None:
        assert (document["version"], document["user"]) == (2, user.name)
        tasks, chat = document["todo"], document["chat"]
        assert sorted(task["title"] for task in tasks["tasks"]) == ["bread", "milk"]
        assert len(tasks["changes"]) == 2
        [thread] = (await user.chatkit.list_threads()).data
        [exported] = chat["conversations"]
        assert exported["id"] == thread["id"]
        said = [entry["text"] for entry in chat["entries"] if entry["kind"] == "user_message"]
        assert said == ["add milk and bread", "delete milk"]
        assert [run["conversation_id"] for run in chat["runs"]] == [thread["id"], thread["id"], None]
        assert chat["runs"][0]["usage"]["model"] == "offline-rules"
        assert chat["model_turns"][0]["usage"]["requests"] == 1
        assert "replay" not in chat["model_turns"][0]
        assert [(call["tool"], call["state"]) for call in chat["tool_calls"]] == [
            ("add_task", "done"),
            ("delete_task", "awaiting_approval"),
        ]
        assert len(chat["sessions"]) == 1
        [profile] = chat["profiles"]
        assert profile["time_zone"] == "Europe/Berlin"
        assert profile["memory"].strip() == "* I work nights"
        assert profile["calendar"] is True, "of its secret only a hash is stored, and that is not exported"

    async def test_every_table_with_rows_of_users(
        self, stack: Stack, written: User, model: ScriptedModel, stored: Stored
    ) -> None:
        """Each is filled here, exported and emptied, so that none can be overlooked."""
        await model.script(start_coder("count"), says("3"), {**says("3"), "reasoning": "One, two."}, SILENT)
        chat = await APIS["run_api"].say(written, "agents", "have it counted")
        waiting = await wait_for_approval(written, chat)
        place = (waiting.chat, waiting.run, waiting.approval)
        await written.runs.approve(*place, approved=True, always=True, key="approved")
        await until(lambda: "completed" in stored.run_statuses(written.name)[-1:])
        thread = await find_thread(written, chat)
        answer = next(item for item in await written.chatkit.items(thread) if item["type"] == "assistant_message")
        await written.chatkit.feedback(thread, [answer["id"]], "positive")
        run = await start_run(written, chat, "count on")
        await written.runs.send(chat, run, "and again", mode="follow_up")
        stored.add_account(written.name)

        counts = stored.row_counts(written.name)
        assert set(counts) == set(stored.user_tables())
        exported = await todo_at(stack, "export", "--user", written.name)
        document = json.loads(exported.stdout)
        for table in TASK_TABLES:
            assert document["todo"][TASK_TABLES[table]], table
        assert {table: len(rows) for table, rows in document["chat"].items()} == {
            table: count for table, count in counts.items() if table not in TASK_TABLES
        }
        assert "hash" not in document["chat"]["accounts"][0] | document["chat"]["one_time_codes"][0]
        assert "a-hash" not in exported.stdout
        entries = document["chat"]["entries"]
        assert [entry["text"] for entry in entries if entry["seq"] is None] == ["and again"]
        assert [entry["id"] for entry in entries if entry["feedback"] == "positive"] == [answer["id"]]
        assert [run["agent"] for run in document["chat"]["runs"] if run["parent_call_id"]] == ["coder"]
        forgotten = await todo_at(stack, "forget", "--user", written.name, "--yes")
        assert forgotten.returncode == 0, forgotten.stderr
        assert stored.row_counts(written.name) == {}

    async def test_what_agents_were_allowed_and_wrote(
        self, stack: Stack, user: User, model: ScriptedModel, stored: Stored, tmp_path: Path
    ) -> None:
        written = calls(call("write_file", path="out.txt", content="of an agent"))
        await model.script(start_coder("count"), written, says("3"), says("3"))
        chat = await APIS["run_api"].say(user, "agents", "have it counted")
        waiting = await wait_for_approval(user, chat)
        await user.runs.approve(chat, waiting.run, waiting.approval, approved=True, always=True)
        await until(lambda: stored.run_statuses(user.name) == ["completed"])
        document = tmp_path / "user.json"
        assert (await todo_at(stack, "export", "--user", user.name, "--output", str(document))).returncode == 0
        assert len(json.loads(document.read_text())["chat"]["consents"]) == 1
        folders = Path(stack.services.workspace.environment["WORKSPACE_DIR"])
        assert "of an agent" in contents(folders)
        assert (await todo_at(stack, "forget", "--user", user.name, "--yes")).returncode == 0
        assert stored.row_counts(user.name) == {}
        assert "of an agent" not in contents(folders)

    async def test_forget_stops_a_running_answer(
        self, stack: Stack, user: User, model: ScriptedModel, stored: Stored
    ) -> None:
        await model.script(endless_answer("one two"))
        async with user.chatkit.open("threads.create", input=user_input("count")) as events:
            async for event in events:
                if event["type"] == "thread.item.updated":
                    break
            assert (await todo_at(stack, "forget", "--user", user.name, "--yes")).returncode == 0
            assert (await model.finished_requests())[-1]["outcome"] == "client_closed"
            rest = [event async for event in events]
        assert all(event["type"] != "error" or event["allow_retry"] for event in rest)
        assert stored.row_counts(user.name) == {}

    async def test_login_of_the_services_is_not_enough(self, stack: Stack, other: User, stored: Stored) -> None:
        before = stored.row_counts(other.name)
        settings = {"MIGRATION_DATABASE_URL": "", "DATABASE_URL": stack.database_url}
        for command in (("forget", "--user", other.name, "--yes"), ("usage",)):
            rejected = await todo_at(stack, *command, **settings)
            assert rejected.returncode == 1
            assert "MIGRATION_DATABASE_URL" in rejected.stderr
        assert stored.row_counts(other.name) == before


async def test_usage(stack: Stack, user: User, model: ScriptedModel) -> None:
    await model.script(says("Hello."), start_coder("write"), says("Written."), says("Fine."))
    thread = (await user.chatkit.say("hello")).thread_id
    await user.chatkit.say("have it written", thread)
    done = await todo_at(stack, "usage", "--user", user.name, "--json")
    [row] = json.loads(done.stdout)
    assert (row["user"], row["model"], row["turns"], row["requests"]) == (user.name, "offline-rules", 2, 4)
    assert min(row["input_tokens"], row["output_tokens"]) > 0
    assert row["by_agent"]["coder"]["requests"] == 1
    table = await todo_at(stack, "usage", "--user", user.name)
    assert table.stdout.splitlines()[-1].split()[:3] == ["total", "2", "4"]
    [today] = json.loads((await todo_at(stack, "usage", "--user", user.name, "--today", "--json")).stdout)
    used = {name: row[name] for name in ("input_tokens", "output_tokens")}
    assert today == {"user": user.name, "limit": 5_000_000, **used}
    table = await todo_at(stack, "usage", "--user", user.name, "--today")
    assert table.stdout.splitlines()[-1].split()[0] == user.name
    assert table.stdout.split()[-1] == "5,000,000"
    await model.script(HANGS)
    run = await start_run(user, "chat", "count", until="answer_delta")
    table = await todo_at(stack, "usage", "--user", user.name)
    assert table.stdout.splitlines()[-2].split()[2:4] == ["-", "1"], "its model is known at its end"
    await user.runs.cancel("chat", run)
    full = await todo_at(stack, "usage", "--user", user.name, redirection=">/dev/full")
    assert (full.returncode, error_of(full.stderr)) == (
        1,
        "error: The output cannot be written: No space left on device.",
    )
    nobody = await todo_at(stack, "usage", "--user", f"{user.name}-nobody", "--json")
    assert json.loads(nobody.stdout) == []


async def test_calendar(stack: Stack, user: User, model: ScriptedModel) -> None:
    await model.script(add_task("milk", due="2026-12-01"), says("Fine."))
    await user.chatkit.say("add milk")
    commands = ("calendar", "--user", user.name)
    first, second = [await todo_at(stack, *commands, BACKEND_URL=f"{stack.url}/") for _ in range(2)]
    for made in (first, second):
        assert made.returncode == 0, made.stderr
        assert made.stdout.startswith(f"{stack.url}/calendar/")
    http = user.chatkit.http
    assert (await http.get(first.stdout.strip())).status_code == 404, "a new address replaces the older one"
    assert "SUMMARY:milk" in (await http.get(second.stdout.strip())).text
    assert (await todo_at(stack, *commands, "--revoke")).returncode == 0
    assert (await http.get(second.stdout.strip())).status_code == 404
    for arguments, settings in (
        ((*commands, "--revoke"), {}),
        (("calendar", "--user", f"{user.name}-nobody"), {}),
        (("calendar", "--user", user.name), {"AUTH_MODE": "none"}),
    ):
        rejected = await todo_at(stack, *arguments, **settings)
        assert (rejected.returncode, rejected.stdout) == (1, "")
        error_of(rejected.stderr)
    rejected = await todo_at(stack, *commands, BACKEND_URL="ftp://todo.example")
    assert (rejected.returncode, rejected.stdout) == (os.EX_CONFIG, "")
    assert "environment: BACKEND_URL must be" in rejected.stderr


async def test_other_mcp_servers(stack: Stack, tmp_path: Path) -> None:
    """Their tools are listed in full, approved, and seen to have changed since.

    No other test has a server of this name: approvals hold for the whole database.
    """
    description, file = tmp_path / "description", tmp_path / "mcp.json"
    shop: dict[str, Any] = {
        "command": "/bin/sh",
        "args": ["-c", f"printf '\\033]0;taken over\\007\\n' >&2; exec {sys.executable} -m tests.foreign_server"],
        "cwd": str(ROOT),
        "env": {"KEY": "${env:WEB_KEY}", "DESCRIPTION": str(description)},
        "tools": ["say", "add_task"],
    }
    gone = {"command": "/no/such/program", "args": ["${env:WEB_KEY}"]}
    file.write_text(json.dumps({"mcpServers": {"shop": shop, "gone": gone}}))

    async def mcp(*arguments: str) -> tuple[int, str]:
        settings = {"MCP_SERVERS_FILE": str(file), "WEB_KEY": KEY}
        done = await todo_at(stack, "mcp", *arguments, **settings)
        output = done.stdout + done.stderr
        assert KEY not in output
        assert "\x1b" not in output, "a terminal obeys nothing of a server's"
        assert "\u202e" not in output
        return done.returncode, output

    status, listed = await mcp("list")
    assert status == 0
    assert "mcp.shop.say: not approved" in listed
    assert "mcp.shop.much" in listed, "a tool that the file does not allow is shown, too"
    assert "/no/such/program" in listed
    assert (await mcp("approve", "shop"))[0] == 0
    description.write_text("Something else.")
    _, listed = await mcp("list")
    assert "mcp.shop.say: changed" in listed, "it was approved"
    assert "Something else." in listed
    status, output = await mcp("test", "shop")
    assert status == 0
    assert r"\x1b]0;taken over\x07" in output
    status, output = await mcp("approve", "shop", "much")
    assert status == 1, "a tool that the file does not allow is not approved"
    assert "Traceback" not in output
    shop["args"] = ["${env:DATABASE_URL}"]
    file.write_text(json.dumps({"mcpServers": {"shop": shop}}))
    assert (await mcp("list"))[0] == os.EX_CONFIG, "a setting of this program is given to nobody"


@pytest.fixture
def no_ollama() -> dict[str, str]:
    return {"OLLAMA_HOST": f"127.0.0.1:{find_free_port()}"}


MODEL_ANSWERS: dict[str, tuple[dict[str, Any], int, str]] = {
    "a tool call": (calls(call("add_task", title="buy milk")), 0, "add_task"),
    "the key in its text": (says(f"You sent {KEY}"), 1, "You sent"),
    "a rejected key": ({"status": 401, "body": {"error": {"message": f"Incorrect key {KEY}"}}}, 1, ""),
    "rubbish": ({"raw": ["data: {oops\n\n"]}, 1, ""),
}


@pytest.mark.parametrize("case", MODEL_ANSWERS)
async def test_checked_model(stack: Stack, model: ScriptedModel, no_ollama: dict[str, str], case: str) -> None:
    answer, status, text = MODEL_ANSWERS[case]
    await model.script(answer)
    url = f"{stack.services.model.url}/v1"
    settings = {"LLM_PROVIDER": "custom", "LLM_BASE_URL": url, "LLM_MODEL": "m", "LLM_API_KEY": KEY}
    done = await todo_at(stack, "models", "--check", **settings, **no_ollama)
    assert done.returncode == status
    assert text in done.stdout
    assert KEY not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_models() -> None:
    tools = ("completion", "tools")
    with serve_ollama(ollama_model("qwen3:8b", *tools), ollama_model("gemma3:4b", "completion")) as host:
        alone = todo("models", OLLAMA_HOST=host)
        assert alone.returncode == 0
        assert "qwen3:8b (used)" in alone.stdout
        custom = {"LLM_PROVIDER": "custom", "LLM_BASE_URL": f"http://{host}/v1", "LLM_MODEL": "gemma3:4b"}
        beside = todo("models", LLM_API_KEY=KEY, OLLAMA_HOST=host, **custom)
    assert f"custom, http://{host}/v1 (used: gemma3:4b)" in beside.stdout
    assert f"ollama, http://{host}/v1" in beside.stdout
    assert KEY not in beside.stdout + beside.stderr


class TestToken:
    @pytest.fixture
    def directory(self, tmp_path: Path) -> str:
        return str(tmp_path)

    async def test_opens_the_task_server(self, stack: Stack, user: User, directory: str) -> None:
        url, port = f"{stack.services.mcp.url}/mcp", str(stack.services.mcp.port)
        made = await todo_at(stack, "token", "--user", user.name, "--data-dir", directory, MCP_PORT=port)
        assert (made.returncode, made.stderr) == (0, "")
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
        headers["authorization"] = f"Bearer {made.stdout.strip()}"
        params = {"name": "add_task", "arguments": {"title": "milk"}}
        response = await user.chatkit.http.post(url, json=body | {"params": params}, headers=headers)
        assert response.status_code == 200, response.text
        assert (await user.runs.tasks("all"))["tasks"][0]["title"] == "milk"
        chat = {"Authorization": headers["authorization"]}
        assert (await user.chatkit.http.get("/tasks?view=all", headers=chat)).status_code == 200
        assert (await user.chatkit.http.get("/chats", headers=chat)).status_code == 403, "it has the scope tasks"

    async def test_with_scopes_and_a_name(self, stack: Stack, user: User, stored: Stored, directory: str) -> None:
        options = ("--scope", "chat", "--scope", "tasks:read", "--name", "a notebook", "--days", "3650")
        made = await todo_at(stack, "token", "--user", user.name, *options, "--data-dir", directory)
        assert (made.returncode, made.stderr) == (0, "")
        headers = {"Authorization": f"Bearer {made.stdout.strip()}"}
        assert (await user.chatkit.http.get("/chats", headers=headers)).status_code == 200
        [session] = stored.rows_of(user.name, "sessions")
        assert (session["name"], session["scopes"]) == ("a notebook", ["chat", "tasks:read"])
        for wrong in (("--days", "3651"), ("--name", "a\nb"), ("--name", "x" * 101)):
            done = await todo_at(stack, "token", "--user", user.name, *wrong, "--data-dir", directory)
            assert (done.returncode != 0, done.stdout) == (True, "")
        assert len(stored.rows_of(user.name, "sessions")) == 1

    async def test_with_the_login_of_the_services(self, stack: Stack, user: User) -> None:
        """As in a container of the backend."""
        variables = {**os.environ, **stack.services.backend_environment()}
        command = [sys.executable, "-m", "backend", "token", "--user", user.name, "--scope", "chat"]
        made = await asyncio.to_thread(subprocess.run, command, env=variables, capture_output=True, text=True, cwd=ROOT)
        assert made.returncode == 0, made.stderr
        headers = {"Authorization": f"Bearer {made.stdout.strip()}"}
        assert (await user.chatkit.http.get("/chats", headers=headers)).status_code == 200

    async def test_with_accounts(self, stack: Stack, stored: Stored, directory: str) -> None:
        """Only for those who have one."""
        stored.add_account("zoë")
        for name, status in (("Zoë", 0), ("nobody", 1), ("local", 1)):
            done = await todo_at(
                stack, "token", "--user", name, "--data-dir", directory, AUTH_MODE="password", AUTH_JWT_SECRET=""
            )
            assert done.returncode == status, done.stderr
        kinds = [row["kind"] for row in stored.rows_of("zoë", "sessions")]
        assert kinds.count("token") == 1

    def test_needless_without_sign_in(self, directory: str) -> None:
        done = todo("token", "--user", "local", "--data-dir", directory, MCP_TOKEN_SECRET="x" * 32)
        assert (done.returncode, done.stdout.count(".")) == (0, 2)
        assert done.stderr == "note: There is no sign-in (AUTH_MODE=none): MCP clients need no token.\n"

    def test_rejected_without_a_secret(self, directory: str) -> None:
        done = todo("token", "--user", "alice", "--data-dir", directory, MCP_TOKEN_SECRET="")
        assert (done.returncode, done.stdout) == (1, "")
        error_of(done.stderr)
