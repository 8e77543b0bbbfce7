"""An MCP server whose answers are odd, each at a path of its own, as those of public reports are."""

import json
from collections import Counter
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

Json = dict[str, Any]
_SAY: Json = {"name": "say", "description": "Says it.", "inputSchema": {"type": "object"}}
_TEXT: Json = {"type": "text", "text": "said"}
_OUTPUT: Json = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

LISTS: dict[str, list[Any]] = {
    "two of a name": [_SAY, {**_SAY, "description": "Says it, too."}],
    "odd tools": [
        *({"name": "no_schema"}, {"name": "null_schema", "inputSchema": None, "description": 5}, {"inputSchema": {}}),
        *("text", {"name": "text_schema", "inputSchema": {}, "outputSchema": "x"}, _SAY),
        {"name": "bad_one", "inputSchema": {"anyOf": [{"properties": {}}]}},
    ],
    "output schema": [{**_SAY, "outputSchema": _OUTPUT}],
    "other structure": [{**_SAY, "outputSchema": _OUTPUT}],
    "broken output schema": [{**_SAY, "outputSchema": {"type": 5, "$ref": "#/nowhere"}}],
}
RESULTS: dict[str, Any] = {
    "output schema": {"content": [_TEXT]},
    "other structure": {"content": [_TEXT], "structuredContent": {"a": "b"}},
    "no content": {"structuredContent": {"a": 1}},
    "nothing": {},
    "content null": {"content": None, "structuredContent": {"a": 1}},
    "content a text": {"content": "said"},
    "unknown part": {"content": [_TEXT, {"type": "hologram", "data": 1}, {"type": "text", "text": "more"}]},
    "part without a type": {"content": [{"text": "said"}, 5]},
    "structured null": {"content": [_TEXT], "structuredContent": None, "isError": None},
    "structured list": {"content": [], "structuredContent": [1, 2]},
    "annotated": {"content": [{**_TEXT, "annotations": {"priority": 1.5, "audience": "me"}}]},
    "summary": {
        "content": [{"type": "text", "text": "list_projects returned 2 items."}],
        "structuredContent": {"projects": ["a", "b"]},
    },
    "both": {"content": [{"type": "text", "text": '{"a": 1}'}], "structuredContent": {"a": 1}},
    "wrapped": {"content": [{"type": "text", "text": "said"}], "structuredContent": {"result": "said"}},
    "resource": {"content": [{"type": "resource", "resource": {"text": "said"}}]},
}
STATUSES = (401, 403, 404, 429, 500, 503)


class OddServer:
    """`requests` counts what was asked, by path and method. The second session of some paths ends after one call."""

    def __init__(self) -> None:
        self.requests = Counter[tuple[str, str]]()
        self._sessions = Counter[str]()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        response = await self._respond(request) if request.method == "POST" else Response(status_code=405)
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        kind = request.url.path.removeprefix("/").replace("-", " ")
        message = json.loads(await request.body())
        method = message["method"]
        self.requests[kind, method] += 1
        if "id" not in message:
            return Response(status_code=202)
        session = request.headers.get("mcp-session-id", "")
        if method == "initialize":
            self._sessions[kind] += 1
            return self._answer(message, self._greet(), **{"mcp-session-id": f"s{self._sessions[kind]}"})
        if method == "server/discover":
            return JSONResponse(self._fail(message, "Method not found", -32601))
        if kind.startswith("session ") and session == "s2" and self.requests[kind, "tools/call"] > 1:
            return self._end_session(kind, message)
        if method == "tools/list":
            cursor = "again" if kind == "pages" else None
            return self._answer(message, {"tools": LISTS.get(kind, [_SAY]), "nextCursor": cursor})
        if kind.startswith("http "):
            return self._reject(kind, int(kind.split()[1]), message)
        return self._answer(message, RESULTS.get(kind, {"content": [_TEXT]}))

    def _greet(self) -> Json:
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        }

    def _answer(self, message: Json, result: Any, **headers: str) -> Response:
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result}, headers=headers)

    def _fail(self, message: Json, words: str, code: int = -32000) -> Json:
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": words}}

    def _end_session(self, kind: str, message: Json) -> Response:
        match kind:
            case "session 404":
                return JSONResponse(self._fail(message, "Session not found"), 404)
            case "session without id":
                return JSONResponse({**self._fail(message, "Session not found", -32001), "id": None}, 404)
            case "session 400":
                return JSONResponse(
                    {**self._fail(message, "Bad Request: No valid session ID provided"), "id": None}, 400
                )
            case _:
                return PlainTextResponse("gone", 410)

    def _reject(self, kind: str, status: int, message: Json) -> Response:
        is_second = kind.endswith("once") and self.requests[kind, "tools/call"] > 1
        if is_second:
            return self._answer(message, {"content": [_TEXT]})
        return JSONResponse({"error": f"no, {status}"}, status, headers={"retry-after": "0"})
