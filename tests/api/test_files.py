"""A conversation's files over HTTP: stored in a real workspace, listed, opened and deleted by their user alone."""

import asyncio
import json
import os
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
import pytest

from tests.conftest import find_free_port
from tests.scripted_model import ScriptedModel
from tests.support.backends import user_at
from tests.support.fixtures import NewUser
from tests.support.script import call, calls, says
from tests.support.stack import Services, Stack
from tests.support.users import User
from tests.tokens import OTHER_SECRET
from tests.waiting import until


def workspaces(services: Services) -> Path:
    return Path(services.workspace.environment["WORKSPACE_DIR"])


async def create(user: User) -> str:
    """The id of a conversation in which nothing is said yet."""
    return (await user.runs.begin("files"))["id"]


async def test_files_are_stored_listed_and_opened(user: User) -> None:
    thread, http = await create(user), user.runs.http
    base, large = f"/chats/{thread}/files", b"x" * 2_000_000
    stored = await http.put(f"{base}/notes.txt", content=b"one two three <script>\n")
    assert (stored.status_code, stored.json()["bytes"]) == (201, 23)
    assert (await http.put(f"{base}/notes.txt", content=b"one two three <b>\n")).status_code == 200
    assert (await http.put(f"{base}/sub/large.html", content=large)).status_code == 201, (
        "over the limit of other bodies"
    )
    assert (await http.put(f"{base}/page.svg", content=b"<svg\0/>")).status_code == 201
    listed = (await http.get(base)).json()
    assert {file["path"]: file["size"] for file in listed["files"]} == {
        "notes.txt": 18,
        "page.svg": 7,
        "sub/large.html": len(large),
    }

    shown = await http.get(f"{base}/notes.txt")
    assert (shown.text, shown.headers["content-type"]) == ("one two three <b>\n", "text/plain; charset=utf-8")
    assert "content-disposition" not in shown.headers
    for name in ("page.svg", "sub/large.html"):
        attachment = await http.get(f"{base}/{name}")
        assert attachment.headers["content-type"] == "application/octet-stream"
        assert attachment.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
        assert attachment.headers["content-security-policy"] == shown.headers["content-security-policy"] == "sandbox"
        assert attachment.headers["x-content-type-options"] == "nosniff"
    assert attachment.content == large

    committed = await http.post(f"/chats/{thread}/commit", json={"message": "first"})
    assert committed.status_code == 200
    assert committed.json()["message"].startswith("Committed as ")
    assert (await http.post(f"/chats/{thread}/commit", json={"message": "second"})).status_code == 409


async def test_name_of_a_download_has_no_invisible_marks(user: User) -> None:
    name = quote("invoice\u202etxt\u2069\u200b.exe")
    path = f"/chats/{await create(user)}/files/{name}"
    assert (await user.runs.http.put(path, content=b"\0")).status_code == 201
    attachment = await user.runs.http.get(path)
    assert attachment.headers["content-disposition"] == "attachment; filename*=UTF-8''invoicetxt.exe"


async def test_conversation_may_begin_with_a_file(user: User, model: ScriptedModel) -> None:
    created = await user.runs.http.post("/conversations", json={"title": "notes.txt"})
    thread = created.json()["id"]
    assert (created.status_code, created.json()["title"]) == (201, "notes.txt")
    await user.runs.put_file(thread, "notes.txt", b"one")
    await model.script(says("Seen."))
    assert (await user.chatkit.say("what is in notes.txt?", thread)).text == "Seen."


async def test_conversation_that_replaces_a_cleared_one(user: User) -> None:
    thread, http = await create(user), user.runs.http
    for wrong, status in (({"title": ""}, 400), ({"left": 3}, 400), ({"left": "a/b"}, 400), ({"left": "none"}, 404)):
        assert (await http.post("/conversations", json={"title": "notes.txt", **wrong})).status_code == status
    other = (await user.runs.begin("more.txt", left=thread))["id"]
    assert [one["id"] for one in (await user.chatkit.list_threads()).data] == [other, thread]
    last = json.loads((await user.runs.get_log(thread))[-1])
    assert (last["event"], last["output"]) == ("session_clear", other)


@pytest.mark.parametrize("seconds", [0.5, 1_764_000_000, 1e12])
async def test_time_of_a_file(user: User, stack: Stack, seconds: float) -> None:
    """The commands of an agent can set any time; beyond the year 9999, the last that ISO 8601 has is shown."""
    thread = await create(user)
    assert (await user.runs.http.put(f"/chats/{thread}/files/notes.txt", content=b"x")).status_code == 201
    [file] = workspaces(stack.services).rglob(f"*{thread}*/notes.txt")
    os.utime(file, (seconds, seconds))
    [listed] = (await user.runs.files(thread))["files"]
    kept = min(file.stat().st_mtime, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())
    assert datetime.fromisoformat(listed["modified"]) == datetime.fromtimestamp(kept, UTC)


async def test_files_of_a_task(user: User, model: ScriptedModel) -> None:
    """Those that agents wrote for it and that are still there, as they are now, the newest first."""

    async def written(task_id: int) -> list[tuple[str, str, int]]:
        files = (await user.runs.http.get(f"/tasks/{task_id}/files")).json()["files"]
        return [(file["chat_id"], file["path"], file["size"]) for file in files]

    async def work(task_id: int | None, *made: dict[str, Any], thread: str | None = None) -> str:
        coder = call("do_with_coder", task="do it", task_id=task_id)
        await model.script(calls(coder), *map(calls, made), says("Fine."), says("It is so."))
        answer = await user.chatkit.say("do it", thread)
        assert answer.error is None
        return answer.thread_id

    assert await written(3) == []
    first = await work(
        3,
        call("write_file", path="./out//list.md", content="- flour"),
        call("edit_file", path="out/list.md", old_text="flour", new_text="milk"),
        call("read_file", path="out/list.md"),
        call("write_file", path="gone.txt", content="x"),
        call("write_file", path="a/../b", content="never"),
    )
    await work(None, call("write_file", path="other.md", content="of no task"))
    await work(31, call("write_file", path="other.md", content="of another one"))
    second = await work(3, call("write_file", path="more.md", content="more"))
    await user.runs.put_file(second, "mine.txt", b"uploaded")
    await user.runs.commit(first, "m")
    assert await written(3) == [(second, "more.md", 4), (first, "gone.txt", 1), (first, "out/list.md", 6)]
    assert (await user.runs.http.get(f"/chats/{first}/files/out/list.md")).text == "- milk"
    assert (await user.runs.http.get("/tasks/0/files")).status_code == 400
    await work(None, call("run_command", command="rm gone.txt; echo more >out/list.md"), thread=first)
    assert await written(3) == [(second, "more.md", 4), (first, "out/list.md", 5)]
    await work(4, call("run_command", command="echo 1 >counted.txt"), thread=first)
    assert await written(4) == [(first, "counted.txt", 2)]
    await user.chatkit.ask("threads.delete", thread_id=second)
    assert await written(3) == [(first, "out/list.md", 5)]


async def test_details_of_a_step_of_an_agent(user: User, new_user: NewUser, model: ScriptedModel) -> None:
    await model.script(
        calls(call("do_with_coder", task="say hello", task_id=None)),
        calls(call("run_command", command="echo hello; echo oh >&2; exit 3"), text="I say it."),
        says("Fine."),
        says("It is so."),
    )
    answer = await user.chatkit.say("do it")
    thread = answer.thread_id
    [item] = [one for one in answer.items if one["type"] == "workflow" and one["workflow"]["type"] == "custom"]
    assert "Exit code 3" in item["workflow"]["tasks"][2]["content"]
    work = f"{thread}/work/{item['id']}"
    details = (await user.runs.http.get(f"/chats/{work}/2")).json()
    assert (details["stdout"], details["stderr"], details["exit_code"]) == ("hello\n", "oh\n", 3)
    for other in (*(f"{work}/{step}" for step in (0, 1, 3)), f"{thread}/work/wf_0/2", f"{thread}/work/x/2"):
        assert (await user.runs.http.get(f"/chats/{other}")).status_code == 404
    assert (await user.runs.http.get(f"/chats/thr_{'0' * 32}/work/{item['id']}/2")).status_code == 404
    assert (await new_user().runs.http.get(f"/chats/{work}/2")).status_code == 404


async def test_rejected_requests(user: User, new_user: NewUser) -> None:
    thread, http = await create(user), user.runs.http
    base = f"/chats/{thread}/files"
    await user.runs.put_file(thread, "a.txt", b"x")
    assert (await http.get(f"{base}/none.txt")).status_code == 404
    assert (await http.put(f"{base}/%2e%2e/up.txt", content=b"x")).status_code in (400, 404)
    assert (await http.put(f"{base}/a.bin", content=b"x" * 10_000_001)).status_code == 413
    stranger = new_user().runs.http
    for client, chat in ((http, "thr_0"), (stranger, thread)):
        assert (await client.get(f"/chats/{chat}/files")).status_code == 404
        for method in ("GET", "PUT", "DELETE"):
            assert (await client.request(method, f"/chats/{chat}/files/a.txt")).status_code == 404
        assert (await client.post(f"/chats/{chat}/commit", json={"message": "m"})).status_code == 404


async def send_beginning(stack: AsyncExitStack, user: User, request: str) -> None:
    """A request whose client neither sends more nor reads, until the stack is left."""
    address = urlsplit(user.url)
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    stack.callback(lambda: writer.transport.abort())  # the writer itself is kept: it closes with its last reference
    headers = f"Host: {address.netloc}\r\nAuthorization: Bearer {user.token}"
    writer.write(f"{request}\r\n\r\n".replace(" HTTP", f" HTTP/1.1\r\n{headers}").encode())


async def test_transfers_at_once(user: User, new_user: NewUser, services: Services) -> None:
    """Transfers that never end count for their user alone, and only until the connection is lost."""
    thread, http = await create(user), user.runs.http
    base, large = f"/chats/{thread}/files", b"x" * 9_000_000
    await user.runs.put_file(thread, "large", large)
    incoming = workspaces(services) / ".incoming"
    async with AsyncExitStack() as stack:
        for number in range(8):
            await send_beginning(stack, user, f"PUT {base}/{number} HTTP\r\nContent-Length: 9000000\r\n\r\nbegun")
        await until(lambda: len([*incoming.iterdir()]) == 8)
        rejected = await http.get(base)
        assert (rejected.status_code, rejected.json()) == (
            429,
            {"error": "8 of your files are being transferred. Wait until they are done and try again."},
        )
        await create(other := new_user())
        assert (await other.runs.files(await create(other)))["files"] == []
    await until(lambda: not [*incoming.iterdir()])
    for _ in range(4):
        async with AsyncExitStack() as stack:
            for _ in range(8):
                await send_beginning(stack, user, f"GET {base}/large HTTP")

    async def accepted() -> httpx2.Response | None:
        response = await http.get(f"{base}/large")
        return None if response.status_code == 429 else response

    read = await until(accepted)  # a request whose client is gone may come late
    assert read.content == large
    assert [file["path"] for file in (await user.runs.files(thread))["files"]] == ["large"]


async def test_deleted_conversation_takes_its_files_with_it(user: User, services: Services) -> None:
    thread, directory = await create(user), workspaces(services)
    await user.runs.put_file(thread, "a.txt", b"secret")
    assert len([*directory.glob(f"*/{thread}*")]) == 1
    assert (await user.chatkit.post("threads.delete", thread_id=thread)).status_code == 200
    assert not [*directory.rglob(f"{thread}*")]


@pytest.mark.parametrize("problem", ["has another secret", "is gone"])
async def test_workspace_that_cannot_be_used(
    problem: str, services: Services, stack: Stack, user: User, model: ScriptedModel
) -> None:
    """The user reads nothing of why; agents are not offered, and the conversation can be deleted."""
    wrong = (
        {"WORKSPACE_URL": f"http://127.0.0.1:{find_free_port()}/mcp"}
        if problem == "is gone"
        else {"WORKSPACE_TOKEN_SECRET": OTHER_SECRET}
    )
    async with (
        user_at(services, user, MCP_RESEND_SECONDS="0.1", **wrong) as there,
    ):
        thread, http = await create(there), there.runs.http
        responses = [
            await http.get(f"/chats/{thread}/files"),
            await http.put(f"/chats/{thread}/files/a", content=b"x"),
            await http.post(f"/chats/{thread}/commit", json={"message": "m"}),
        ]
        assert [response.status_code for response in responses] == [503] * 3
        assert all(response.json()["error"].startswith("The agents' workspace") for response in responses)
        await model.script(says("Hello."))
        await there.chatkit.say("hello", thread)
        [request, *_] = await model.finished_requests()
        offered = [tool["function"]["name"] for tool in request["body"]["tools"]]
        assert ("do_with_coder" in offered) is (problem != "is gone")
        assert (await there.chatkit.post("threads.delete", thread_id=thread)).status_code == 200
