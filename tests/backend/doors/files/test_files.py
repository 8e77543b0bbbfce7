"""A conversation's files, in a real workspace: put in, listed, opened, and never another person's."""

import asyncio
import errno
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from tests.backend.conftest import Backend, Rows
from tests.backend.consent import call, calls
from tests.chatkit_client import ChatKit
from tests.scripted_model import ScriptedModel
from tests.serving import serve
from tests.tokens import OTHER_SECRET
from tests.waiting import until
from tests.workspace_service import WORKSPACE_TOKEN_SECRET, served_workspace
from workspace.server import create_app
from workspace.settings import Settings as WorkspaceSettings


@pytest.fixture(scope="module")
def workspace() -> Iterator[tuple[str, Path]]:
    with served_workspace() as (service, directory):
        yield f"{service.url}/mcp", directory


@pytest.fixture
async def chat(backend: Backend, workspace: tuple[str, Path]) -> AsyncIterator[ChatKit]:
    url, _ = workspace
    secret = SecretStr(WORKSPACE_TOKEN_SECRET)
    async with backend(workspace_url=url, workspace_token_secret=secret, approvals=("bulk",)) as client:
        yield client


async def test_files_are_put_in_listed_and_opened(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script({"text": "Hello."})
    thread = (await chat.say("hello")).thread_id
    http, base = chat.http, f"/chats/{thread}/files"
    large = b"x" * 2_000_000
    put = await http.put(f"{base}/notes.txt", content=b"one two three <script>\n")
    assert (put.status_code, put.json()["bytes"]) == (201, 23)
    assert (await http.put(f"{base}/notes.txt", content=b"one two three <b>\n")).status_code == 200
    assert (await http.put(f"{base}/sub/large.html", content=large)).status_code == 201, (
        "more than other requests may be"
    )
    assert (await http.put(f"{base}/page.svg", content=b"<svg\0/>")).status_code == 201
    listed = (await http.get(base)).json()
    assert {one["path"]: one["size"] for one in listed["files"]} == {
        "notes.txt": 18,
        "page.svg": 7,
        "sub/large.html": len(large),
    }

    shown = await http.get(f"{base}/notes.txt")
    assert (shown.text, shown.headers["content-type"]) == ("one two three <b>\n", "text/plain; charset=utf-8")
    assert "content-disposition" not in shown.headers
    for name in ("page.svg", "sub/large.html"):
        saved = await http.get(f"{base}/{name}")
        assert saved.headers["content-type"] == "application/octet-stream"
        assert saved.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
        assert saved.headers["content-security-policy"] == shown.headers["content-security-policy"] == "sandbox"
        assert saved.headers["x-content-type-options"] == "nosniff"
    assert saved.content == large

    kept = await http.post(f"/chats/{thread}/commit", json={"message": "first"})
    assert kept.status_code == 200
    assert kept.json()["message"].startswith("Committed as ")
    again = await http.post(f"/chats/{thread}/commit", json={"message": "second"})
    assert again.status_code == 409


async def test_a_conversation_may_begin_with_a_file(chat: ChatKit, model: ScriptedModel) -> None:
    begun = await chat.http.post("/conversations", json={"title": "notes.txt"})
    thread = begun.json()["id"]
    assert (begun.status_code, begun.json()["title"]) == (201, "notes.txt")
    assert (await chat.http.put(f"/chats/{thread}/files/notes.txt", content=b"one")).status_code == 201
    await model.script({"text": "Seen."})
    assert (await chat.say("what is in notes.txt?", thread)).text == "Seen."
    for wrong, status in (({"title": ""}, 400), ({"left": 3}, 400), ({"left": "a/b"}, 400), ({"left": "none"}, 404)):
        body = {"title": "notes.txt", **wrong}
        assert (await chat.http.post("/conversations", json=body)).status_code == status
    cleared = await chat.http.post("/conversations", json={"title": "more.txt", "left": thread})
    lines = (await chat.http.get(f"/chats/{thread}/log")).text.splitlines()
    assert json.loads(lines[-1])["event"] == "session_clear"
    assert json.loads(lines[-1])["output"] == cleared.json()["id"]
    assert len((await chat.list_threads()).data) == 2


async def test_a_task_has_the_files_that_agents_wrote_for_it(chat: ChatKit, model: ScriptedModel) -> None:
    async def written(task_id: int) -> list[tuple[str, str, int]]:
        told = (await chat.http.get(f"/tasks/{task_id}/files")).json()["files"]
        return [(one["chat_id"], one["path"], one["size"]) for one in told]

    async def work(task_id: int | None, *made: dict[str, Any]) -> str:
        coder = call("do_with_coder", task="do it", task_id=task_id)
        await model.script(calls(coder), *(calls(one) for one in made), {"text": "Done."}, {"text": "It is done."})
        answer = await chat.say("do it")
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
    await chat.http.put(f"/chats/{second}/files/mine.txt", content=b"put in")
    await chat.http.post(f"/chats/{first}/commit", json={"message": "m"})
    expected = [(second, "more.md", 4), (first, "gone.txt", 1), (first, "out/list.md", 6)]
    assert await written(3) == expected
    assert (await chat.http.get(f"/chats/{first}/files/out/list.md")).text == "- milk"
    assert (await chat.http.get("/tasks/0/files")).status_code == 400
    await model.script(
        calls(call("do_with_coder", task="tidy", task_id=None)),
        calls(call("run_command", command="rm gone.txt; echo more >out/list.md")),
        {"text": "Done."},
        {"text": "Done."},
    )
    await chat.say("tidy", first)
    assert await written(3) == [(second, "more.md", 4), (first, "out/list.md", 5)], "as they are now"
    await chat.post("threads.delete", thread_id=second)
    assert await written(3) == [(first, "out/list.md", 5)]


async def test_what_is_refused_says_why(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script({"text": "Hello."})
    base = f"/chats/{(await chat.say('hello')).thread_id}/files"
    assert (await chat.http.get(f"{base}/none.txt")).status_code == 404
    assert (await chat.http.put(f"{base}/%2e%2e/up.txt", content=b"x")).status_code in (400, 404)
    assert (await chat.http.get("/chats/thr_0/files")).status_code == 404
    assert (await chat.http.get("/chats/thr_0/files/notes.txt")).status_code == 404
    assert (await chat.http.delete("/chats/thr_0/files/notes.txt")).status_code == 404
    large = await chat.http.put(f"{base}/a.bin", content=b"x" * 10_000_001)
    assert large.status_code == 413


async def begun(stack: AsyncExitStack, chat: ChatKit, request: str) -> None:
    """A request whose client neither sends more nor reads, until the stack is left."""
    address = urlsplit(str(chat.http.base_url))
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    stack.callback(lambda: writer.transport.abort())  # the writer itself is kept: it closes with its last reference
    writer.write(f"{request}\r\n\r\n".replace(" HTTP", f" HTTP/1.1\r\nHost: {address.netloc}").encode())


async def test_files_that_never_end_cost_their_person_alone(
    chat: ChatKit, model: ScriptedModel, workspace: tuple[str, Path]
) -> None:
    await model.script({"text": "Hello."})
    base = f"/chats/{(await chat.say('hello')).thread_id}/files"
    large = b"x" * 9_000_000
    await chat.http.put(f"{base}/large", content=large)
    coming = workspace[1] / ".incoming"
    async with AsyncExitStack() as stack:
        for number in range(8):
            await begun(stack, chat, f"PUT {base}/{number} HTTP\r\nContent-Length: 9000000\r\n\r\nbegun")
        await until(lambda: len([*coming.iterdir()]) == 8)
        refused = await chat.http.get(base)
        assert (refused.status_code, refused.json()) == (
            429,
            {"error": "8 of your files are being transferred. Wait until they are done and try again."},
        )
    await until(lambda: not [*coming.iterdir()])
    for _ in range(4):
        async with AsyncExitStack() as stack:
            for _ in range(8):
                await begun(stack, chat, f"GET {base}/large HTTP")
    async with asyncio.timeout(20):
        while (listed := await chat.http.get(base)).status_code == 429:
            await asyncio.sleep(0.01)
    assert [one["path"] for one in listed.json()["files"]] == ["large"]
    assert (await chat.http.get(f"{base}/large")).content == large


async def test_a_conversation_takes_its_files_with_it(
    chat: ChatKit, model: ScriptedModel, workspace: tuple[str, Path]
) -> None:
    await model.script({"text": "Hello."})
    thread = (await chat.say("hello")).thread_id
    await chat.http.put(f"/chats/{thread}/files/a.txt", content=b"secret")
    files = chat.app.state.parts.files._files  # pyright: ignore[reportAttributeAccessIssue]

    async def content() -> AsyncIterator[bytes]:
        yield b"x"

    await files.put(f"{thread}.researcher", "b.txt", content(), {}, user_id="local")
    assert len([*workspace[1].glob(f"*/{thread}*")]) == 2
    assert (await chat.post("threads.delete", thread_id=thread)).status_code == 200
    assert not [*workspace[1].rglob(f"{thread}*")], "its answers neither"
    assert not [*(workspace[1] / ".removed").iterdir()]


async def test_a_full_disk_is_said_so(
    backend: Backend, tmp_path: Path, free_port: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("workspace.doors.files._write", full)
    directory, secret, port = tmp_path / "workspaces", SecretStr(WORKSPACE_TOKEN_SECRET), free_port()
    directory.mkdir(mode=0o700)
    url = f"http://127.0.0.1:{port}/mcp"
    app = create_app(WorkspaceSettings(workspace_dir=directory, workspace_url=url, workspace_token_secret=secret))
    async with serve(app, port=port), backend(workspace_url=url, workspace_token_secret=secret) as chat:
        thread = (await chat.http.post("/conversations", json={"title": "files"})).json()["id"]
        put = await chat.http.put(f"/chats/{thread}/files/a.txt", content=b"x")
    assert put.status_code == 507
    assert put.json()["error"] == "The workspace's disk is full. Nothing was changed. Try again later."


async def test_a_workspace_that_is_gone_is_said_so(backend: Backend, model: ScriptedModel) -> None:
    """And one that has other secrets: what it says of them is nothing for a person."""
    with served_workspace(WORKSPACE_TOKEN_SECRET=OTHER_SECRET) as (service, _):
        given = {
            "workspace_url": f"{service.url}/mcp",
            "workspace_token_secret": SecretStr(WORKSPACE_TOKEN_SECRET),
            "agents": "on",
            "mcp_resend_seconds": 0.1,
        }
        async with backend(**given) as chat:
            await model.script({"text": "Hello."}, {"text": "Hello."})
            thread = (await chat.say("hello")).thread_id
            for is_gone in (False, True):
                if is_gone:
                    service.end()
                    for _ in range(2):
                        await chat.app.state.parts.files._files._tools.look()  # pyright: ignore[reportAttributeAccessIssue]
                answers = [
                    await chat.http.get(f"/chats/{thread}/files"),
                    await chat.http.put(f"/chats/{thread}/files/a", content=b"x"),
                    await chat.http.post(f"/chats/{thread}/commit", json={"message": "m"}),
                ]
                assert [answer.status_code for answer in answers] == [503] * 3
                assert all(answer.json()["error"].startswith("The agents' workspace") for answer in answers)
            await chat.say("hello", thread)
            asked = [request["body"]["tools"] for request in await model.finished_requests()]
            offered = [[tool["function"]["name"] for tool in tools if "do_with" in str(tool)] for tools in asked]
            assert offered == [["do_with_coder", "do_with_researcher"], []], "who is not there does nothing"
            assert (await chat.post("threads.delete", thread_id=thread)).status_code == 200


async def test_steps_are_told_to_their_person_page_by_page(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script(
        calls(call("do_with_coder", task="say hello", task_id=None)),
        calls(call("run_command", command="echo hello")),
        {"text": "Done."},
        {"text": "It is done."},
    )
    thread = (await chat.say("do it")).thread_id
    [run] = rows("SELECT id FROM runs")
    path = f"/chats/{thread}/interactions/{run['id']}/steps"
    first = (await chat.http.get(path, params={"limit": 2})).json()
    rest = (await chat.http.get(path, params={"after": first["after"]})).json()
    steps = [*first["steps"], *rest["steps"]]
    assert [step["kind"] for step in steps] == ["task", "step", "output", "step", "end"]
    assert rest["after"] is None
    assert steps[2]["details"]["stdout"] == "hello\n"
    assert steps[1]["details"]["requests"] == 1
    work = steps[2]["content"]["work"]
    assert (await chat.http.get(f"/chats/{thread}/work/{work}/1")).json() == steps[2]["details"]
    for elsewhere in (f"{thread}/work/{work}/2", f"{thread}/work/wf_0/1", f"thr_{'0' * 32}/work/{work}/1"):
        assert (await chat.http.get(f"/chats/{elsewhere}")).status_code == 404
    assert (await chat.http.get(f"/chats/{thread}/interactions/run_0/steps")).status_code == 404
