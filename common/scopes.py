"""What a token may do: one table with the scope of each route of the backend, and of each tool and route of the tasks.

A route or tool without a row is refused.
"""

from collections.abc import Collection, Mapping
from typing import Literal

Scope = Literal["public", "any", "chat", "tasks:read", "tasks", "all"]
PUBLIC: Scope = "public"
"""For everybody, without sign-in."""
ANY: Scope = "any"
"""For every valid token."""
CHAT: Scope = "chat"
"""Conversations with the assistant, which works on the tasks with all tools; their files, and the memory."""
READ: Scope = "tasks:read"
TASKS: Scope = "tasks"
ALL: Scope = "all"
"""What the user does on the page; no personal token and no OAuth client may do it."""
TokenScope = Literal["chat", "tasks:read", "tasks"]
TOKEN_SCOPES: tuple[TokenScope, ...] = ("chat", "tasks:read", "tasks")
"""Those that a token can have."""

METADATA_PATH = "/.well-known/oauth-protected-resource"
"""Where clients read who issues tokens; the path of the MCP server follows (RFC 9728, section 3.1)."""

BACKEND: Mapping[str, Scope] = {
    "GET /openapi.json": PUBLIC,
    "GET /chats/openapi.json": PUBLIC,
    "GET /health": PUBLIC,
    "GET /ready": PUBLIC,
    "GET /metrics": PUBLIC,
    "POST /chatkit": CHAT,
    "GET /chats": CHAT,
    "GET /chats/{chat_id}": CHAT,
    "PATCH /chats/{chat_id}": CHAT,
    "DELETE /chats/{chat_id}": CHAT,
    "GET /chats/{chat_id}/log": CHAT,
    "GET /chats/{chat_id}/interactions/{interaction_id}": CHAT,
    "GET /chats/{chat_id}/interactions/{interaction_id}/steps": CHAT,
    "GET /chats/{chat_id}/interactions/{interaction_id}/events": CHAT,
    "POST /chats/{chat_id}/interactions": CHAT,
    "POST /chats/{chat_id}/interactions/{interaction_id}/edit": CHAT,
    "POST /chats/{chat_id}/interactions/{interaction_id}/cancel": CHAT,
    "POST /chats/{chat_id}/interactions/{interaction_id}/approve": CHAT,
    "POST /chats/{chat_id}/interactions/{interaction_id}/messages": CHAT,
    "POST /chats/{chat_id}/interactions/{interaction_id}/messages/{input_id}/steer": CHAT,
    "DELETE /chats/{chat_id}/interactions/{interaction_id}/messages/{input_id}": CHAT,
    "POST /chats/{chat_id}/branch": CHAT,
    "POST /chats/{chat_id}/compact": CHAT,
    "POST /chat": CHAT,
    "POST /chat/stream": CHAT,
    "GET /chat/stream/{chat_id}/stream": CHAT,
    "POST /conversations": CHAT,
    "GET /chats/{chat_id}/work/{item_id}/{number}": CHAT,
    "GET /tasks/{task_id}/files": CHAT,
    "GET /chats/{chat_id}/files": CHAT,
    "GET /chats/{chat_id}/files/{path}": CHAT,
    "PUT /chats/{chat_id}/files/{path}": CHAT,
    "DELETE /chats/{chat_id}/files/{path}": CHAT,
    "POST /chats/{chat_id}/commit": CHAT,
    "GET /schedules": CHAT,
    "GET /schedules/preview": CHAT,
    "POST /schedules": CHAT,
    "PATCH /schedules/{schedule_id}": CHAT,
    "POST /schedules/{schedule_id}/run": CHAT,
    "DELETE /schedules/{schedule_id}": CHAT,
    "GET /memory": CHAT,
    "PUT /memory": CHAT,
    "POST /memory": CHAT,
    "GET /usage": CHAT,
    "GET /tasks": READ,
    "GET /tasks/changes": READ,
    "GET /tasks/counts": READ,
    "GET /tasks/batches": READ,
    "GET /tasks/preview": READ,
    "GET /tasks/{task_id}": READ,
    "POST /tasks": TASKS,
    "POST /tasks/undo": TASKS,
    "POST /tasks/move-overdue": TASKS,
    "PATCH /tasks/{task_id}": TASKS,
    "DELETE /tasks/{task_id}": TASKS,
    "GET /calendar.ics": READ,
    "GET /calendar/{name}": PUBLIC,
    "GET /calendar": ALL,
    "POST /calendar": ALL,
    "DELETE /calendar": ALL,
    "POST /session": PUBLIC,
    "DELETE /session": PUBLIC,
    "GET /session": ALL,
    "GET /sessions": ALL,
    "DELETE /sessions/{session_id}": ALL,
    "DELETE /sessions": ALL,
    "POST /setup": PUBLIC,
    "PUT /session/password": ALL,
    "POST /session/provider": PUBLIC,
    "GET /session/callback": PUBLIC,
    "POST /links": ALL,
    "POST /links/take": PUBLIC,
    "GET /profile": ALL,
    "PATCH /profile": ALL,
    "GET /alerts": ALL,
    "GET /alerts/unshown": ALL,
    "GET /alerts/settings": ALL,
    "PATCH /alerts/settings": ALL,
    "POST /alerts/channels": ALL,
    "PATCH /alerts/channels/{channel_id}": ALL,
    "DELETE /alerts/channels/{channel_id}": ALL,
    "POST /alerts/channels/{channel_id}/test": ALL,
    "POST /alerts/shown": PUBLIC,
    "POST /alerts/{key}/shown": ALL,
    "POST /alerts/{key}/done": ALL,
    "POST /alerts/{key}/snooze": ALL,
    "GET /tokens": ALL,
    "POST /tokens": ALL,
    "DELETE /tokens/{token_id}": ALL,
    "GET /authorization": ALL,
    "POST /authorization": ALL,
    "GET /clients": ALL,
    "DELETE /clients/{client_id}": ALL,
    **dict.fromkeys(("GET /authorize", "POST /token", "POST /revoke", "POST /register"), PUBLIC),
    "GET /.well-known/oauth-authorization-server": PUBLIC,
    "GET /.well-known/openid-configuration": PUBLIC,
    "GET /": PUBLIC,
    "GET /today": PUBLIC,
    "GET /upcoming": PUBLIC,
    "GET /all": PUBLIC,
    "GET /done": PUBLIC,
    "GET /deleted": PUBLIC,
    "GET /t/{task_id}": PUBLIC,
    "GET /c/{chat_id}": PUBLIC,
    "GET /widget": PUBLIC,
    "GET /assets/{hash}/{path}": PUBLIC,
    "GET /manifest.json": PUBLIC,
    "GET /service-worker.js": PUBLIC,
}
"""By method and path, as the application has them."""
TOOLS: Mapping[str, Scope] = {
    "add_task": TASKS,
    "list_tasks": READ,
    "complete_task": TASKS,
    "update_task": TASKS,
    "delete_task": TASKS,
}
TOOL_SERVER: Mapping[str, Scope] = {
    "/health": PUBLIC,
    "/ready": PUBLIC,
    "/metrics": PUBLIC,
    METADATA_PATH: PUBLIC,
    "/mcp": ANY,  # all tools are listed for every token; a call needs the scope of its tool
    "/batch": READ,
    "/batches": READ,
    "/changes": READ,
    "/counts": READ,
    "/done": READ,
    "/list": READ,
    "/tasks": READ,
}


def find_tool_server_scope(path: str) -> Scope | None:
    return TOOL_SERVER.get(METADATA_PATH if path.startswith(f"{METADATA_PATH}/") else path)


def read_scopes(claim: object) -> frozenset[str]:
    """Returns the scopes of the claim `scope` of a user's token, words separated by spaces; others mean nothing."""
    return frozenset(claim.split()).intersection(TOKEN_SCOPES) if isinstance(claim, str) else frozenset()


def includes(scopes: Collection[str], needed: Scope | None) -> bool:
    """Whether a token with these scopes may do what needs `needed`; None for what has no row."""
    if needed is None:
        return False
    return needed in (PUBLIC, ANY) or ALL in scopes or needed in scopes or (needed == READ and TASKS in scopes)


def explain_missing(needed: Scope | None) -> str:
    """Returns the sentence about a request that a token does not allow."""
    if needed is None or needed == ALL:
        return "No token can do this. Sign in on the page, and do it there."
    return f"Your token does not allow this: it lacks the scope {needed}. Make a token with that scope on the page."
