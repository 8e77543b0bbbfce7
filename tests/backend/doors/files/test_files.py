"""A conversation's files, in a real workspace: put in, listed, opened, and never another person's."""

from collections.abc import AsyncIterator, Iterator

import pytest
from pydantic import SecretStr

from tests.backend.conftest import Backend, Rows
from tests.backend.consent import call, calls
from tests.chatkit_client import ChatKit
from tests.scripted_model import ScriptedModel
from tests.workspace_service import WORKSPACE_TOKEN_SECRET, served_workspace


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served_workspace() as (service, _):
        yield f"{service.url}/mcp"


@pytest.fixture
async def chat(backend: Backend, url: str) -> AsyncIterator[ChatKit]:
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
    begun = await chat.http.post("/chats", json={"title": "notes.txt"})
    thread = begun.json()["id"]
    assert (begun.status_code, begun.json()["title"]) == (201, "notes.txt")
    assert (await chat.http.put(f"/chats/{thread}/files/notes.txt", content=b"one")).status_code == 201
    await model.script({"text": "Seen."})
    assert (await chat.say("what is in notes.txt?", thread)).text == "Seen."
    assert (await chat.http.post("/chats", json={"title": ""})).status_code == 400


async def test_what_is_refused_says_why(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script({"text": "Hello."})
    base = f"/chats/{(await chat.say('hello')).thread_id}/files"
    assert (await chat.http.get(f"{base}/none.txt")).status_code == 404
    assert (await chat.http.put(f"{base}/%2e%2e/up.txt", content=b"x")).status_code in (400, 404)
    assert (await chat.http.get("/chats/thr_0/files")).status_code == 404
    assert (await chat.http.get("/chats/thr_0/files/notes.txt")).status_code == 404
    large = await chat.http.put(f"{base}/a.bin", content=b"x" * 10_000_001)
    assert large.status_code == 413


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
