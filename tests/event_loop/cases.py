"""The worst requests to each route and tool that the limits allow, as far as they are known."""

import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tests.abuse import BODY_SIZE, create_values
from tests.api.test_routes import BODIES
from tests.event_loop.system import (
    ANSWER,
    CHINESE,
    DESCRIPTION,
    DISTINCT,
    ENGLISH,
    LABELS,
    MESSAGE,
    QUERY,
    TITLE,
    Clients,
    post_keyed_chatkit_message,
    post_keyed_message,
)
from tests.mcp import wire
from tests.support.script import call, calls, says
from todo_client.chatkit import request, user_input

_hundreds = itertools.count(1)
JSON = {"content-type": "application/json"}

Attempt = Callable[[Clients], Awaitable[Any]]
"""Sends what holds the event loop longest, as far as is known."""


OF_ALERTS = {"channel_id": "1", "key": "a-key", "schedule_id": "sch_one"}


def get(path: str, status: int = 200, headers: Mapping[str, str] = {}) -> Attempt:
    async def attempt(clients: Clients) -> None:
        response = await clients.backend.get(path.format_map(clients.ids), headers=headers)
        assert response.status_code == status, response.text[:500]

    return attempt


def send(method: str, path: str, body: Any = None) -> Attempt:
    return lambda clients: clients.backend.request(method, path.format_map(clients.ids), json=body)


def send_large(method: str, path: str) -> Attempt:
    """Sends a body of the largest size to what does not accept it."""
    body = b'{"text": "%s"}' % (b"x" * BODY_SIZE)
    return lambda clients: clients.backend.request(method, path, content=body, headers=JSON)


def each_body(method: str, path: str) -> dict[str, Attempt]:
    """Sends bodies of the largest size, each of another kind of JSON: what names the body's field, and alone."""
    name = next(iter(BODIES.get((method, path), {"text": ""})))

    def create(value: bytes) -> Attempt:
        address = path.format_map(
            {"chat_id": "new", "interaction_id": "{run}", "input_id": "msg_0", "task_id": "1", **OF_ALERTS}
        )
        return lambda clients: clients.backend.request(
            method, address.format_map(clients.ids), content=b'{"%s": %s}' % (name.encode(), value), headers=JSON
        )

    return {kind: create(value) for kind, value in create_values(BODY_SIZE).items()}


def tool(name: str, **arguments: Any) -> Attempt:
    return lambda clients: wire.send(clients.mcp, wire.call(name, arguments))


def tool_on_100_tasks(name: str, **arguments: Any) -> Attempt:
    async def attempt(clients: Clients) -> None:
        first, *also = _list_next_100()
        response = await wire.send(clients.mcp, wire.call(name, {"task_id": first, "also": also, **arguments}))
        wire.result(response)

    return attempt


def send_on_100_tasks(method: str, **fields: Any) -> Attempt:
    async def attempt(clients: Clients) -> None:
        first, *also = _list_next_100()
        path = f"/tasks/{first}" if fields else f"/tasks/{first}?also={','.join(map(str, also))}"
        response = await clients.backend.request(method, path, json={**fields, "also": also} if fields else None)
        assert response.status_code == 200, response.text

    return attempt


def _list_next_100() -> range:
    """Returns the ids of tasks that no attempt has changed."""
    first = 100 * next(_hundreds) + 1
    return range(first, first + 100)


def chatkit(kind: str, **params: Any) -> Attempt:
    return lambda clients: clients.backend.post(
        "/chatkit",
        json=request(kind, **{k: v.format_map(clients.ids) if k == "thread_id" else v for k, v in params.items()}),
    )


def answered(step: dict[str, Any], *more: dict[str, Any], message: str = MESSAGE) -> Attempt:
    async def attempt(clients: Clients) -> None:
        await clients.model.script(step, *more, says("Fine."))
        response = await clients.backend.post("/chats/scripted/interactions", json={"user_message": message})
        assert response.status_code == 200, response.text
        await clients.backend.delete("/chats/scripted")
        await clients.model.reset()

    return attempt


async def undo_100_tasks(clients: Clients) -> None:
    first, *also = _list_next_100()
    for name, fields in (("delete_task", {}), ("update_task", {"undo": True})):
        response = await wire.send(clients.mcp, wire.call(name, {"task_id": first, "also": also, **fields}))
        wire.result(response)


async def move_100_overdue_tasks(clients: Clients) -> None:
    first, *also = _list_next_100()
    await wire.send(clients.mcp, wire.call("update_task", {"task_id": first, "also": also, "due": "2020-01-01"}))
    moved = (await clients.backend.post("/tasks/move-overdue")).json()
    assert moved["count"] == 90, "a tenth is completed"
    assert (await clients.backend.post("/tasks/undo", json={"batch": moved["batch"]})).status_code == 200
    assert (await clients.backend.post("/tasks/move-overdue")).json()["count"] == 90


UNKNOWN_INPUT = "/chats/{chat}/interactions/{run}/messages/msg_0"
ROUTE_CASES: dict[tuple[str, str], dict[str, Attempt]] = {
    ("DELETE", "/alerts/channels/{channel_id}"): {"": send("DELETE", "/alerts/channels/1")},
    ("DELETE", "/calendar"): {"": lambda clients: clients.backend.get("/calendar")},
    ("DELETE", "/chats/{chat_id}"): {"": send("DELETE", "/chats/none")},
    ("DELETE", "/chats/{chat_id}/files/{path}"): {"": send("DELETE", "/chats/{files}/files/none")},
    ("DELETE", "/chats/{chat_id}/interactions/{interaction_id}/messages/{input_id}"): {
        "": send("DELETE", UNKNOWN_INPUT)
    },
    ("DELETE", "/clients/{client_id}"): {"": send("DELETE", "/clients/none")},
    ("DELETE", "/session"): {"": send("DELETE", "/session")},
    ("DELETE", "/sessions"): {"": send("DELETE", "/sessions")},
    ("DELETE", "/sessions/{session_id}"): {"": send("DELETE", "/sessions/none")},
    ("DELETE", "/tokens/{token_id}"): {"": send("DELETE", "/tokens/none")},
    ("DELETE", "/tasks/{task_id}"): {"100 at once": send_on_100_tasks("DELETE")},
    ("GET", "/"): {
        "": get("/"),
        "unknown path": get("/nothing", 404),
        "unknown path in a browser": get("/nothing", 404, {"sec-fetch-mode": "navigate"}),
        "other method": send("PUT", "/"),
        "other method with a body": send_large("POST", "/tasks/2"),
        "other method with a PUT body": send_large("PUT", "/chats"),
        "unknown path with a body": send_large("POST", "/nothing"),
    },
    ("GET", "/alerts"): {"": get("/alerts?limit=100")},
    ("GET", "/alerts/settings"): {"": get("/alerts/settings")},
    ("GET", "/alerts/unshown"): {"": get("/alerts/unshown")},
    ("GET", "/authorization"): {"": get("/authorization?client_id=" + "x" * 2_000, 404)},
    ("GET", "/c/{chat_id}"): {"": get("/c/{chat}", 404)},
    ("GET", "/calendar"): {"": get("/calendar")},
    ("GET", "/calendar.ics"): {"10,000 tasks": get("/calendar.ics")},
    ("GET", "/calendar/{name}"): {"10,000 tasks": get("/calendar/{calendar}")},
    ("GET", "/chat/stream/{chat_id}/stream"): {
        "": get("/chat/stream/{chat}/stream", 204),
        "changes": get("/chat/stream/changes/stream"),
    },
    ("GET", "/chats"): {"": get(f"/chats?limit=100&titled={CHINESE[:200]}")},
    ("GET", "/chats/{chat_id}"): {
        "long": get("/chats/{chat}?limit=100"),
        "brief": get("/chats/{chat}?limit=100&brief=true"),
        "answer": get("/chats/answer"),
        "changes": get("/chats/changes"),
        "brief changes": get("/chats/changes?brief=true"),
    },
    ("GET", "/chats/{chat_id}/files"): {"": get("/chats/{files}/files")},
    ("GET", "/chats/{chat_id}/files/{path}"): {"": get("/chats/{files}/files/large.txt")},
    ("GET", "/chats/{chat_id}/interactions/{interaction_id}"): {
        "long": get("/chats/{chat}/interactions/{run}"),
        "answer": get("/chats/answer/interactions/{answer}"),
        "changes": get("/chats/changes/interactions/{changes_run}"),
    },
    ("GET", "/chats/{chat_id}/interactions/{interaction_id}/events"): {
        "long": get("/chats/{chat}/interactions/{run}/events"),
        "answer": get("/chats/answer/interactions/{answer}/events"),
        "changes": get("/chats/changes/interactions/{changes_run}/events"),
    },
    ("GET", "/chats/{chat_id}/interactions/{interaction_id}/steps"): {
        "": get("/chats/{chat}/interactions/{run}/steps?limit=100")
    },
    ("GET", "/chats/{chat_id}/log"): {
        "long": get("/chats/{chat}/log"),
        "answer": get("/chats/answer/log"),
        "changes": get("/chats/changes/log"),
    },
    ("GET", "/chats/{chat_id}/work/{item_id}/{number}"): {"": get("/chats/{chat}/work/wid_0/0", 404)},
    ("GET", "/clients"): {"": get("/clients")},
    ("GET", "/health"): {"": get("/health")},
    ("GET", "/memory"): {"": get("/memory")},
    ("GET", "/schedules"): {"": get("/schedules")},
    ("GET", "/schedules/preview"): {
        "many words": get(f"/schedules/preview?text={'every+friday+at+' * 62}"),
        "long words": get(f"/schedules/preview?text={'every+' * 11}{'9' * 900}"),
    },
    ("GET", "/metrics"): {"": get("/metrics")},
    ("GET", "/openapi.json"): {"": get("/openapi.json")},
    ("GET", "/ready"): {"": get("/ready")},
    ("GET", "/session"): {"": get("/session")},
    ("GET", "/session/callback"): {"": send("GET", "/session/callback")},
    ("GET", "/sessions"): {"": get("/sessions")},
    ("GET", "/tasks"): {
        "all": get("/tasks?view=all&limit=100"),
        "done": get("/tasks?view=done&limit=100"),
        "search": get(f"/tasks?view=all&query={QUERY}"),
        "days": get("/tasks?view=upcoming&limit=100"),
        "end": get("/tasks?view=all&limit=100&offset=9000"),
        "title": get("/tasks?view=all&limit=100&sort=title"),
    },
    ("GET", "/tasks/batches"): {"": get("/tasks/batches?limit=100")},
    ("GET", "/tasks/counts"): {"": get("/tasks/counts")},
    ("GET", "/tasks/changes"): {"": get("/tasks/changes?after=0")},
    ("GET", "/tasks/preview"): {
        **{
            f"{unit}, {mode}": (
                lambda clients, unit=unit, mode=mode, size=size: clients.backend.get(
                    "/tasks/preview", params={"text": (unit * size)[:size], "mode": mode}
                )
            )
            for unit in ("a-", "#a", "_", "mon ", "1_", "\u4e2d")
            for mode, size in (("task", 500), ("date", 100), ("date", 500))
        },
    },
    ("GET", "/tasks/{task_id}"): {"": get("/tasks/2")},
    ("GET", "/tasks/{task_id}/files"): {"": get("/tasks/2/files")},
    ("GET", "/tokens"): {"": get("/tokens")},
    ("GET", "/profile"): {"": get("/profile")},
    ("GET", "/usage"): {"": get("/usage")},
    **{("GET", path): {"": get(path)} for path in ("/today", "/upcoming", "/all", "/done", "/deleted")},
    ("GET", "/t/{task_id}"): {"": get("/t/2")},
    ("GET", "/assets/{hash}/{path}"): {"": get("/assets/0/page.js")},
    ("GET", "/manifest.json"): {"": get("/manifest.json")},
    ("GET", "/service-worker.js"): {"": get("/service-worker.js")},
    ("GET", "/widget"): {"": get("/widget")},
    ("PATCH", "/alerts/channels/{channel_id}"): {"": send("PATCH", "/alerts/channels/1", {"name": CHINESE[:100]})},
    ("PATCH", "/alerts/settings"): {"": send("PATCH", "/alerts/settings", {"remind": 10})},
    ("PATCH", "/chats/{chat_id}"): {"": send("PATCH", "/chats/{chat}", {"title": CHINESE[:200]})},
    ("PATCH", "/profile"): {"stacked marks": send("PATCH", "/profile", {"name": "e" + "\u0301" * 15_000})},
    ("PATCH", "/schedules/{schedule_id}"): {"": send("PATCH", "/schedules/sch_0", {"text": CHINESE[:1_000]})},
    ("PATCH", "/tasks/{task_id}"): {"100 at once": send_on_100_tasks("PATCH", description=DESCRIPTION)},
    ("POST", "/alerts/channels"): {
        "": send("POST", "/alerts/channels", {"kind": "push", "name": "x", "target": {"endpoint": CHINESE[:10_000]}})
    },
    ("POST", "/alerts/channels/{channel_id}/test"): {"": send("POST", "/alerts/channels/1/test")},
    ("POST", "/alerts/shown"): {"": send("POST", "/alerts/shown", {"proof": "x" * 10_000})},
    ("POST", "/alerts/{key}/done"): {"": send("POST", "/alerts/none/done")},
    ("POST", "/alerts/{key}/shown"): {"": send("POST", "/alerts/none/shown")},
    ("POST", "/alerts/{key}/snooze"): {"": send("POST", "/alerts/none/snooze", {"minutes": 10})},
    ("POST", "/schedules"): {
        "rare days": send(
            "POST",
            "/schedules",
            {"text": CHINESE[:1_000], "repeat": "FREQ=MONTHLY;INTERVAL=84;BYDAY=5MO", "time": "16:00"},
        )
    },
    ("POST", "/schedules/{schedule_id}/run"): {"": send("POST", "/schedules/sch_0/run")},
    ("DELETE", "/schedules/{schedule_id}"): {"": send("DELETE", "/schedules/sch_0")},
    ("POST", "/authorization"): {"": send("POST", "/authorization", {"allow": True})},
    ("POST", "/calendar"): {"": get("/calendar")},  # a new address would replace the one of other cases
    ("POST", "/chat"): {
        "512 KiB": lambda clients: clients.backend.post(
            "/chat",
            json={"messages": [{"role": "user", "content": MESSAGE[:5]} for _ in range(200)], "x": "x" * 400_000},
        ),
        "changes": post_keyed_message,
        "invalid approvals": send("POST", "/chat", {"threadId": "x", "messages": [], "approvals": [{}] * 9_980}),
    },
    ("POST", "/chat/stream"): {
        "512 KiB": lambda clients: clients.backend.post(
            "/chat/stream", json={"messages": [{"role": "user", "content": "hi"}] * 200, "x": "x" * 400_000}
        ),
        "invalid messages": send("POST", "/chat/stream", {"messages": [1] * 19_000}),
    },
    ("POST", "/chatkit"): {
        "message": chatkit("threads.create", input=user_input(MESSAGE)),
        "quote": chatkit("threads.create", input=user_input("<", quoted_text="<\n" * 3_900)),
        "items": chatkit("items.list", thread_id="{chat}", limit=100, order="desc"),
        "events of changes": post_keyed_chatkit_message,
        "items of changes": chatkit("items.list", thread_id="{changes}", limit=100, order="desc"),
        "items of changes from the first": chatkit("items.list", thread_id="{changes}", limit=100, order="asc"),
        "thread of changes": chatkit("threads.get_by_id", thread_id="{changes}"),
        "items of the answer": chatkit("items.list", thread_id="{answer_chat}", limit=100, order="desc"),
        "thread": chatkit("threads.get_by_id", thread_id="{chat}"),
        "threads": chatkit("threads.list", limit=100, order="desc"),
    },
    ("POST", "/chats/{chat_id}/branch"): {"": send("POST", "/chats/{chat}/branch", {"interaction_id": None})},
    ("POST", "/chats/{chat_id}/commit"): {"": send("POST", "/chats/{files}/commit", {"message": CHINESE[:1_000]})},
    ("POST", "/chats/{chat_id}/compact"): {"": send("POST", "/chats/{chat}/compact")},
    ("POST", "/chats/{chat_id}/interactions"): {
        "long history": send("POST", "/chats/{chat}/interactions", {"user_message": MESSAGE}),
        "parts": send(
            "POST",
            "/chats/parts/interactions",
            {
                "user_message": [{"type": "task", "task_id": n} for n in range(1, 99)]
                + [{"type": "text", "text": MESSAGE}]
            },
        ),
        "text of 400,000": answered({"text": ANSWER, "chunk_chars": 400_000}),
        "English of 400,000": answered({"text": ENGLISH, "chunk_chars": 400_000}),
        "400,000 distinct characters": answered({"text": DISTINCT, "chunk_chars": 400_000}),
        "text in pieces": answered({"text": ENGLISH[:10_000], "chunk_chars": 1}),
        "reasoning of 400,000": answered({"text": "Fine.", "reasoning": ANSWER, "chunk_chars": 400_000}),
        "arguments of 400,000": answered(calls(call("add_task", title=ANSWER)) | {"chunk_chars": 400_000}),
        "list of 100 tasks": answered(calls(call("list_tasks", limit=100))),
        "100 tasks added": answered(calls(call("add_task", title=TITLE, also=[TITLE] * 9))),
    },
    ("POST", "/chats/{chat_id}/interactions/{interaction_id}/approve"): {
        "": send(
            "POST",
            "/chats/{chat}/interactions/{run}/approve",
            {"approval_id": "x", "approved": False, "reason": MESSAGE[:1000]},
        )
    },
    ("POST", "/chats/{chat_id}/interactions/{interaction_id}/cancel"): {
        "": send("POST", "/chats/{chat}/interactions/{run}/cancel")
    },
    ("POST", "/chats/{chat_id}/interactions/{interaction_id}/edit"): {
        "long history": send("POST", "/chats/{chat}/interactions/{run}/edit", {"new_user_message": MESSAGE})
    },
    ("POST", "/chats/{chat_id}/interactions/{interaction_id}/messages"): {
        "": send("POST", "/chats/{chat}/interactions/{run}/messages", {"text": MESSAGE, "mode": "steer"})
    },
    ("POST", "/chats/{chat_id}/interactions/{interaction_id}/messages/{input_id}/steer"): {
        "": send("POST", f"{UNKNOWN_INPUT}/steer")
    },
    ("POST", "/conversations"): {"": send("POST", "/conversations", {"title": CHINESE[:1000]})},
    ("POST", "/memory"): {"": send("POST", "/memory", {"text": CHINESE[:4_000]})},
    ("POST", "/links"): {"": send("POST", "/links")},
    ("POST", "/links/take"): each_body("POST", "/links/take"),
    ("POST", "/session"): {"": send("POST", "/session"), **each_body("POST", "/session")},
    ("POST", "/session/provider"): {"": send("POST", "/session/provider")},
    ("POST", "/setup"): each_body("POST", "/setup"),
    ("POST", "/tasks"): {
        "fields": send("POST", "/tasks", {"title": TITLE, "description": DESCRIPTION, "labels": LABELS}),
        "text": send("POST", "/tasks", {"text": "#a" * 250}),
    },
    ("POST", "/tasks/move-overdue"): {"100 tasks": move_100_overdue_tasks},
    ("POST", "/tasks/undo"): {"": send("POST", "/tasks/undo", {"batch": "x"})},
    ("POST", "/tokens"): {"": send("POST", "/tokens", {"name": CHINESE[:100], "scopes": ["tasks"] * 10_000})},
    ("PUT", "/chats/{chat_id}/files/{path}"): {
        "10 MB": lambda clients: clients.backend.put(
            f"/chats/{clients.ids['files']}/files/large.txt", content=b"x" * 9_000_000
        )
    },
    ("PUT", "/session/password"): each_body("PUT", "/session/password"),
    ("PUT", "/memory"): {
        "64 KiB": lambda clients: clients.backend.put(
            "/memory", json={"text": CHINESE[:28_000]}, headers={"if-match": "*"}
        )
    },
}
TOOL_CASES: dict[str, dict[str, Attempt]] = {
    "add_task": {
        "50 tasks": tool("add_task", title=TITLE, description=DESCRIPTION, also=[TITLE] * 49, labels=LABELS),
        "marks": tool("add_task", title="e" + "\u0301" * 15_000),
    },
    "list_tasks": {
        "100 tasks": tool("list_tasks", limit=100),
        "search": tool("list_tasks", query=QUERY, limit=100),
        "spelling": tool("list_tasks", query="mlik", limit=100),
    },
    "complete_task": {"100 tasks": tool_on_100_tasks("complete_task")},
    "update_task": {
        "100 tasks": tool_on_100_tasks("update_task", description=DESCRIPTION),
        "undo of 100 tasks": undo_100_tasks,
    },
    "delete_task": {"100 tasks": tool_on_100_tasks("delete_task")},
}
READ_CASES: dict[str, dict[str, Attempt]] = {
    "/batch": {"": lambda clients: clients.mcp.get("/batch?id=x")},
    "/batches": {"": lambda clients: clients.mcp.get("/batches?limit=100")},
    "/counts": {"": lambda clients: clients.mcp.get("/counts")},
    "/list": {
        view: lambda clients, view=view: clients.mcp.get(f"/list?view={view}&limit=100")
        for view in ("today", "upcoming", "all", "done", "deleted")
    },
    "/changes": {"": lambda clients: clients.mcp.get("/changes?after=0")},
    "/done": {"": lambda clients: clients.mcp.get("/done?days=365")},
    "/tasks": {"200 ids": lambda clients: clients.mcp.get(f"/tasks?ids={','.join(map(str, range(1, 201)))}")},
    "/mcp": {
        kind: lambda clients, value=value: clients.mcp.post(
            "/mcp",
            content=b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add_task", "arguments": '
            + value
            + b"}}",
            headers=JSON | {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"},
        )
        for kind, value in create_values(BODY_SIZE).items()
    },
}
