"""Every route of the application: it is in the OpenAPI document, and errors and HEAD are the same everywhere."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from pydantic import TypeAdapter
from starlette.routing import compile_path

from backend.app import create_app
from backend.model.providers import resolve
from backend.settings import BackendSettings
from tests.runs_client import id_of
from tests.scripted_model import ScriptedModel
from tests.support.answers import start_run
from tests.support.script import PAUSING, add_task, says
from tests.support.users import User

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
OLD_ADDRESS = "/chats/openapi.json"
UNKNOWN = {
    "chat_id": "thr_" + "0" * 32,
    "interaction_id": "run_" + "0" * 32,
    "input_id": "msg_0",
    "item_id": "wid_0",
    "number": "0",
    "task_id": "987654",
    "path": "notes.txt",
    "hash": "0",
    "name": "secret.ics",
    "session_id": "x" * 22,
    "token_id": "x" * 22,
    "client_id": "x" * 22,
    "channel_id": "987654",
    "key": "x" * 24,
    "schedule_id": "sch_0",
}
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/chats/{chat_id}/interactions"): {"user_message": "hello"},
    ("POST", "/chats/{chat_id}/interactions/{interaction_id}/edit"): {"new_user_message": "hello"},
    ("POST", "/chats/{chat_id}/interactions/{interaction_id}/approve"): {"approval_id": "call_0", "approved": True},
    ("POST", "/chats/{chat_id}/interactions/{interaction_id}/messages"): {"text": "hello", "mode": "steer"},
    ("POST", "/chats/{chat_id}/branch"): {"interaction_id": None},
    ("POST", "/chats/{chat_id}/commit"): {"message": "hello"},
    ("POST", "/setup"): {"code": "x" * 32, "name": "anna", "password": "correct horse"},
    ("PUT", "/session/password"): {"old": "correct horse", "new": "battery staple"},
    ("POST", "/links/take"): {"code": "x"},
    ("POST", "/authorization"): {"allow": True},
    ("PATCH", "/chats/{chat_id}"): {"title": "hello"},
    ("PATCH", "/tasks/{task_id}"): {"title": "hello"},
    ("PATCH", "/profile"): {"name": "Anna"},
    ("PATCH", "/alerts/channels/{channel_id}"): {"on": True},
    ("POST", "/alerts/{key}/snooze"): {"minutes": 10},
    ("POST", "/alerts/shown"): {"proof": "x" * 22},
    ("POST", "/schedules"): {"text": "sum up", "repeat": "FREQ=DAILY", "time": "16:00"},
    ("PATCH", "/schedules/{schedule_id}"): {"paused": True},
}
EMPTY = {
    ("GET", "/chat/stream/{chat_id}/stream"),
    ("GET", "/tasks/{task_id}/files"),
    ("GET", "/c/{chat_id}"),
    ("GET", "/t/{task_id}"),
}
"""Routes that answer an unknown id with a success; the page itself says that there is no such conversation or task."""


def create_application() -> FastAPI:
    settings = BackendSettings.model_validate({"database_url": "postgresql://x/y", "llm_provider": "offline"})
    return create_app(settings, resolve(settings))


def list_routes() -> set[tuple[str, str]]:
    """The method and path of each route of the application."""
    routes = iter_route_contexts(create_application().routes)
    found = {(method, str(route.path_format)) for route in routes for method in route.methods or ()}
    return {(method, path) for method, path in found if method != "HEAD" and path != OLD_ADDRESS}


ROUTES = sorted(list_routes())
PATHS = sorted({path for _, path in ROUTES})


def with_unknown_ids(path: str) -> str:
    return path.format_map(UNKNOWN)


def sentence(response: httpx2.Response) -> str:
    content = response.json()
    assert set(content) == {"error"}, response.text
    assert content["error"].endswith("."), response.text
    return content["error"]


@pytest.fixture
def http(user: User) -> httpx2.AsyncClient:
    return user.runs.http


def find_slow_lists(schema: Any, place: str = "body") -> Iterator[str]:
    """Finds lists in a schema of pydantic's for which a request could cause an error in each item."""
    if isinstance(schema, dict):
        if schema.get("type") in ("list", "tuple", "set", "frozenset", "generator") and not schema.get("fail_fast"):
            yield place
        for name, part in schema.items():
            if name != "python_schema":  # JSON has only what the schema for JSON allows
                yield from find_slow_lists(part, f"{place}.{name}")
    elif isinstance(schema, list | tuple):
        for part in schema:
            yield from find_slow_lists(part, place)


def test_validation_of_a_body_ends_at_the_first_invalid_item() -> None:
    """Errors for thousands of items hold the event loop; a request is rejected for the first one in any case."""
    bodies = {
        str(route.path): TypeAdapter(route.body_field.field_info.annotation).core_schema
        for route in iter_route_contexts(create_application().routes)
        if getattr(route, "body_field", None) is not None
    }
    assert len(bodies) > 10
    assert {path: found for path, body in bodies.items() if (found := [*find_slow_lists(body)])} == {}
    assert [*find_slow_lists(TypeAdapter(list[list[int]]).core_schema)] == ["body", "body.items_schema"]


async def test_every_route_is_documented(http: httpx2.AsyncClient) -> None:
    paths = (await http.get("/openapi.json")).json()["paths"]
    assert {(method.upper(), path) for path, operations in paths.items() for method in operations} == {*ROUTES}


@pytest.mark.parametrize("path", PATHS)
async def test_other_methods(path: str, http: httpx2.AsyncClient) -> None:
    address = with_unknown_ids(path)
    known = {method for method, other in ROUTES if compile_path(other)[0].match(address)}
    allowed = known | ({"HEAD"} if "GET" in known else set())
    for method in {*METHODS, "OPTIONS", "TRACE", "COPY"} - known:
        response = await http.request(method, address)
        assert response.status_code == 405, (method, response.text)
        assert set(response.headers["allow"].split(", ")) == allowed
        assert method in sentence(response)
        assert address in sentence(response)
        assert all(one in sentence(response) for one in allowed)


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/nothing", "/nothing"),
        ("/nothing/", "/nothing/"),
        ("/nothing?secret=1", "/nothing"),
        ("/tasks/1/nothing", "/tasks/1/nothing"),
        ("/chats/a/interactions/b/nothing", "/chats/a/interactions/b/nothing"),
        ("/chatkit/threads", "/chatkit/threads"),
        ("/%E2%80%AE%00%ff", "/%E2%80%AE%00%ff"),
        ("/assets/0/nothing.js", "/assets/0/nothing.js"),
        ("/assets/0/%00", "/assets/0/%00"),
        ("/assets/0/%2e%2e/pyproject.toml", "/assets/0/%2e%2e/pyproject.toml"),
        ("/assets/0/..%2f..%2fpyproject.toml", "/assets/0/..%2f..%2fpyproject.toml"),
        ("/" + "a" * 5_000, "/" + "a" * 249 + "…"),
    ],
)
async def test_unknown_path(path: str, named: str, user: User, http: httpx2.AsyncClient) -> None:
    for method in ("GET", "POST", "DELETE"):
        if method != "GET" and path.startswith("/assets/0/"):
            continue
        response = await http.request(method, httpx2.URL(user.url).copy_with(raw_path=path.encode()))
        assert response.status_code == 404, (method, response.text)
        assert f"at {named}." in sentence(response)
        assert "secret" not in response.text


async def test_slash_at_the_end(http: httpx2.AsyncClient) -> None:
    for path in ("/tasks/", "/chats/", "/chats/groceries/", "/openapi.json/"):
        response = await http.get(path, headers={"X-Forwarded-Proto": "https"})
        assert response.status_code == 307
        assert response.headers["location"] == f"https://{http.base_url.netloc.decode()}{path.rstrip('/')}"


@pytest.mark.parametrize(("method", "path"), [one for one in ROUTES if "{" in one[1] and one not in EMPTY])
async def test_unknown_id(method: str, path: str, http: httpx2.AsyncClient, model: ScriptedModel) -> None:
    response = await http.request(method, with_unknown_ids(path), json=BODIES.get((method, path)))
    assert response.status_code == 404, response.text
    if path.startswith("/calendar/"):
        assert "secret" not in sentence(response)
    else:
        named = ("chat_id", "task_id", "path", "session_id", "token_id", "client_id")
        named = (*named, "schedule_id", "channel_id", "key")
        assert next(UNKNOWN[name] for name in named if f"{{{name}}}" in path) in sentence(response)


async def test_what_is_not_found_is_named(http: httpx2.AsyncClient, user: User, model: ScriptedModel) -> None:
    await model.script(says("Hello."))
    run = id_of(await user.runs.say("a", "hello"))
    base = f"/chats/a/interactions/{run}"
    other = UNKNOWN["interaction_id"]
    asked: list[tuple[str, str, Any, str]] = [
        ("GET", f"/chats/a/interactions/{other}", None, f"no interaction {other}."),
        ("GET", f"/chats/a?before={other}", None, f"no interaction {other}."),
        ("GET", f"/chats?after={UNKNOWN['chat_id']}", None, f"no conversation {UNKNOWN['chat_id']}."),
        ("POST", f"{base}/approve", {"approval_id": "call_0", "approved": True}, "no approval call_0."),
        ("POST", f"{base}/messages/msg_0/steer", None, "no message msg_0."),
        ("DELETE", f"{base}/messages/msg_0", None, "no message msg_0."),
        ("POST", "/chats/a/branch", {"interaction_id": other}, f"no interaction {other}."),
        ("GET", "/chats/a/files/no/such.txt", None, "no file no/such.txt."),
        ("DELETE", "/chats/a/files/no/such.txt", None, "no file no/such.txt."),
        ("GET", "/chats/a/files/%2e%2e/x", None, "no file ../x."),
        ("PATCH", "/tasks/987654", {"title": "x"}, "987654"),
        ("POST", "/memory", {"text": "x", "chat_id": "b"}, "no conversation b."),
        ("POST", "/conversations", {"title": "x", "left": "b"}, "no conversation b."),
        ("GET", "/chats/" + "z" * 100, None, "z" * 100),
    ]
    for method, path, body, named in asked:
        response = await http.request(method, httpx2.URL(user.url).copy_with(raw_path=path.encode()), json=body)
        assert response.status_code == 404, (method, path, response.text)
        assert named in sentence(response), (method, path)


SENT: list[tuple[str, str, Any, str]] = [
    ("POST", "/tasks", {"titel": "x"}, "titel is not a field of this request. Its fields are due, description, "),
    ("POST", "/tasks", {"text": "x", "titel": 1}, "titel is not a field"),
    ("POST", "/tasks", {"due": "today"}, "The request needs title. It has due."),
    ("POST", "/tasks", {}, "The request needs title. It has no fields."),
    ("POST", "/tasks", {"text": ""}, "at text: String should have at least 1 character."),
    ("POST", "/tasks", [], "The request is not valid: Input should be an object."),
    ("POST", "/tasks", {"text": "x", "written": "soon"}, "at written: Input should be a valid datetime"),
    ("POST", "/tasks", {"text": "tomorrow", "written": "9999-12-31T12:00"}, "at written: Input should be less than"),
    ("PATCH", "/tasks/1", {"done": True}, "done is not a field of this request."),
    ("POST", "/tasks/undo", {"id": 1}, "id is not a field of this request. Its fields are batch."),
    ("POST", "/chats/a/interactions", {"user_mesage": "x"}, "The request needs user_message. It has user_mesage."),
    ("POST", "/chats/a/interactions", {"user_message": 1}, "at user_message: Input should be a valid string."),
    (
        *("POST", "/chats/a/interactions", {"user_message": [{"type": "text"}]}),
        "The request needs user_message.0.text. It has type.",
    ),
    ("PATCH", "/chats/a", {"name": "x"}, "name is not a field of this request. Its fields are title."),
    ("POST", "/memory", {"txt": "x"}, "txt is not a field of this request. Its fields are text and chat_id."),
    ("POST", "/conversations", {"name": "x"}, "Its fields are title, left and directory."),
    ("POST", "/chat", {}, "The request needs messages. It has no fields."),
    ("POST", "/chat/stream", {"messages": [{"content": "x"}]}, "The request needs messages.0.role. It has content."),
    ("POST", "/chatkit", {"type": "threads.explode", "params": {}}, "no request of the type threads.explode."),
    ("POST", "/chatkit", [], "The ChatKit request is not valid: Input should be an object."),
    ("GET", "/tasks", None, "The request needs the query view."),
    ("GET", f"/tasks/preview?text={501 * 'a'}", None, "The query text is not valid: "),
    ("GET", "/tasks/preview?text=tomorrow&written=9999-12-31T12:00", None, "The query written is not valid: "),
    ("GET", "/tasks?view=x", None, "The query view is not valid: Input should be 'today', "),
    ("GET", "/tasks/abc", None, "The path task_id is not valid: "),
]


@pytest.mark.parametrize(("method", "path", "body", "named"), SENT)
async def test_invalid_fields_are_named(
    method: str, path: str, body: Any, named: str, http: httpx2.AsyncClient
) -> None:
    response = await http.request(method, path, json=body)
    assert response.status_code == 400, response.text
    assert named in sentence(response)


async def test_long_names_are_shortened(http: httpx2.AsyncClient) -> None:
    for body in ({"\u202ex" + "y" * 50_000: 1}, {f"x{number}": 1 for number in range(500)}):
        for path in ("/tasks", "/chat"):
            assert len(sentence(await http.post(path, json=body))) < 400


async def test_content_type_is_named(http: httpx2.AsyncClient) -> None:
    for media_type, named in (("text/csv", "text/csv"), ("", "no type")):
        response = await http.post("/tasks", content=b"{}", headers={"Content-Type": media_type})
        assert response.status_code == 415
        assert named in sentence(response)


@pytest.mark.parametrize("stack_name", ["limits"])
async def test_preflight_that_is_rejected(http: httpx2.AsyncClient) -> None:
    there = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    for method in (*METHODS, "HEAD"):
        response = await http.options("/tasks", headers=there | {"Access-Control-Request-Method": method})
        assert response.status_code == 200
    for headers, named in (
        ({"Access-Control-Request-Method": "COPY"}, "COPY"),
        ({"Access-Control-Request-Headers": "x-foo"}, "x-foo"),
    ):
        response = await http.options("/tasks", headers=there | headers)
        assert response.status_code == 400
        assert named in sentence(response)


def list_readable(chat: str, run: str) -> Iterator[str]:
    known = UNKNOWN | {"chat_id": chat, "interaction_id": run, "task_id": "1", "path": "page.js"}
    for method, path in ROUTES:
        if method == "GET":
            yield path.format_map(known) + ("?view=all" if path == "/tasks" else "")
            yield f"{with_unknown_ids(path)}?text=milk"


async def test_head_is_answered_as_get(http: httpx2.AsyncClient, user: User, model: ScriptedModel) -> None:
    await model.script(add_task("milk"), says("Added."))
    run = id_of(await user.runs.say("a", "add milk"))
    assert (await http.put("/chats/a/files/page.js", content=b"x" * 300_000)).status_code == 201
    for address in list_readable("a", run):
        read, head = await http.get(address), await http.head(address)
        assert (head.status_code, head.content) == (read.status_code, b""), address
        varying = {"date", "x-request-id", "transfer-encoding"}
        for name in {*read.headers, *head.headers} - varying - ({"content-length"} if "/metrics" in address else set()):
            assert head.headers.get(name) == read.headers.get(name), (address, name)


async def test_head_of_a_stream_ends(http: httpx2.AsyncClient, user: User, model: ScriptedModel) -> None:
    await model.script(PAUSING)
    run = await start_run(user, "a", "count", until="answer_delta")
    for path in (f"/chats/a/interactions/{run}/events", "/chat/stream/a/stream"):
        head = await http.head(path, timeout=5)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"].startswith("text/event-stream")
    assert (await user.runs.get_interaction("a", run))["status"] == "RUNNING"
    await model.release()
