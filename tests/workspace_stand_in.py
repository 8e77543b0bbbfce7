"""A small workspace: the eight tools over real files and processes, without confinement, for tests of who uses it."""

import asyncio
import difflib
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt
from fastmcp import FastMCP
from fastmcp.dependencies import CurrentContext
from fastmcp.server.context import Context
from fastmcp.server.dependencies import get_http_headers
from fastmcp.tools import ToolResult
from mcp.types import TextContent
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.serving import serve

WORKSPACE_SECRET = "a secret of the workspace's, long enough 0123456789"
_CONTEXT: Context = CurrentContext()


@dataclass
class Workspace:
    """`root` has a folder for each conversation, `results` what each call answered, by its key."""

    root: Path
    url: str = ""
    confinement: str | None = "bubblewrap"
    calls: list[tuple[str, str, str]] = field(default_factory=list)  # person, folder, tool
    results: dict[str, ToolResult] = field(default_factory=dict)
    recording: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, asyncio.Task[None]])
    running: int = 0

    def folder(self, name: str) -> Path:
        path = self.root / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def files(self) -> dict[str, str]:
        found = (path for path in self.root.glob("*/**/*") if path.is_file())
        return {str(path.relative_to(self.root).as_posix()).partition("/")[2]: path.read_text() for path in found}

    async def begin(self, tool: str, context: Context) -> tuple[Path, str, ToolResult | None]:
        assert context.request_context is not None
        meta: dict[str, Any] = dict(context.request_context.meta or {})
        token = get_http_headers(include={"authorization"})["authorization"].removeprefix("Bearer ")
        person = jwt.decode(token, WORKSPACE_SECRET, algorithms=["HS256"], audience=f"{self.url}/mcp")["sub"]
        key = meta["todo/idempotency_key"]
        if meta.get("todo/recorded"):
            if key in self.recording:
                await self.recording[key]
            return self.root, key, self.results.get(key) or _result("Nothing is recorded of this call.", ok=False)
        self.calls.append((person, meta["todo/folder"], tool))
        return self.folder(meta["todo/folder"]), key, self.results.get(key)

    async def run(self, folder: Path, key: str, *argv: str) -> ToolResult:
        process = await asyncio.create_subprocess_exec(
            *argv, cwd=folder, stdout=-1, stderr=-1, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
        )
        self.recording[key] = recording = asyncio.create_task(self._record(process, key))
        try:
            await asyncio.shield(recording)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return self.results[key]

    async def _record(self, process: asyncio.subprocess.Process, key: str) -> None:
        """Whoever waits for it may have left: what it wrote is kept."""
        self.running += 1
        stdout, stderr = await process.communicate()
        self.running -= 1
        said, errors, code = stdout.decode(), stderr.decode(), process.returncode
        details = {"exit_code": code, "stdout": said, "stderr": errors, "timed_out": False, "seconds": 0.1}
        self.results[key] = _result(f"{said}{errors}\nexit code {code}", truncated=False, **details)


def _result(text: str, *, ok: bool = True, **details: Any) -> ToolResult:
    content = [TextContent(type="text", text=text)]
    return ToolResult(content=content, structured_content={"ok": ok, **details}, is_error=not ok)


def server(workspace: Workspace) -> FastMCP:  # noqa: C901 - a tool is a function
    mcp = FastMCP("workspace")

    @mcp.custom_route("/ready", methods=["GET"])
    async def ready(request: Request) -> Response:
        return JSONResponse({"status": "ready", "confinement": workspace.confinement})

    @mcp.tool
    async def list_files(path: str = ".", depth: int = 3, context: Context = _CONTEXT) -> ToolResult:
        folder, _, _ = await workspace.begin("list_files", context)
        return _result("\n".join(sorted(str(one.relative_to(folder)) for one in (folder / path).rglob("*"))))

    @mcp.tool
    async def read_file(path: str, offset: int = 1, limit: int = 2000, context: Context = _CONTEXT) -> ToolResult:
        folder, _, _ = await workspace.begin("read_file", context)
        if not (folder / path).is_file():
            return _result(f"There is no file {path}: list_files shows what there is.", ok=False)
        lines = (folder / path).read_text().splitlines()
        shown = "\n".join(f"{number}: {line}" for number, line in enumerate(lines, 1))
        return _result(f"File: {path} ({len(lines)} lines)\n{shown}", total_lines=len(lines))

    @mcp.tool
    async def search_files(pattern: str, path: str = ".", context: Context = _CONTEXT) -> ToolResult:
        folder, key, _ = await workspace.begin("search_files", context)
        return await workspace.run(folder, key, "grep", "-rnE", pattern, path)

    @mcp.tool
    async def write_file(path: str, content: str, context: Context = _CONTEXT) -> ToolResult:
        folder, key, done = await workspace.begin("write_file", context)
        if done is None:
            target = folder / path
            created = not target.exists()
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
            size = len(content.encode())
            done = _result(f"Wrote {size} bytes to {path}.", created=created, bytes=size, diff="")
            workspace.results[key] = done
        return done

    @mcp.tool
    async def edit_file(path: str, old_text: str, new_text: str, context: Context = _CONTEXT) -> ToolResult:
        folder, _, _ = await workspace.begin("edit_file", context)
        before = (folder / path).read_text()
        if before.count(old_text) != 1:
            return _result(f"old_text was found {before.count(old_text)} times, it must be unique.", ok=False)
        after = before.replace(old_text, new_text)
        (folder / path).write_text(after)
        diff = "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm=""))
        return _result(f"Changed {path}.", diff=diff, bytes=len(after.encode()))

    @mcp.tool
    async def run_command(command: str, timeout_s: int = 120, context: Context = _CONTEXT) -> ToolResult:
        folder, key, done = await workspace.begin("run_command", context)
        return done or await workspace.run(folder, key, "bash", "-c", command)

    @mcp.tool
    async def run_python(code: str, timeout_s: int = 120, context: Context = _CONTEXT) -> ToolResult:
        folder, key, done = await workspace.begin("run_python", context)
        return done or await workspace.run(folder, key, "python3", "-c", code)

    @mcp.tool
    async def commit(message: str, context: Context = _CONTEXT) -> ToolResult:
        folder, key, _ = await workspace.begin("commit", context)
        return await workspace.run(folder, key, "git", "commit", "-m", message)

    return mcp


class EndedByLeaving:
    """Ends a request whose client has closed its connection."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        messages = [await receive()]
        while messages[-1].get("more_body"):
            messages.append(await receive())
        waiting, left = iter(messages), asyncio.Event()

        async def replay() -> Message:
            if (message := next(waiting, None)) is None:
                await left.wait()
            return message or {"type": "http.disconnect"}

        async def watch() -> None:
            await receive()
            left.set()
            answering.cancel()

        answering, watching = asyncio.ensure_future(self._app(scope, replay, send)), asyncio.create_task(watch())
        await asyncio.wait({answering})
        watching.cancel()


@asynccontextmanager
async def serve_workspace(root: Path) -> AsyncIterator[Workspace]:
    workspace = Workspace(root)
    app = server(workspace).http_app(path="/mcp", stateless_http=True, json_response=True)
    async with serve(EndedByLeaving(app)) as url:
        workspace.url = url
        yield workspace
