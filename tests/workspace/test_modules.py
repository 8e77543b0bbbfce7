"""The account that the service switches to may be unable to read the checkout, so nothing is imported after that."""

import os
import subprocess
import sys

from tests.conftest import ROOT
from tests.workspace.running import SECRET, URL, directory, token

# A process of its own, because the test runner has imported everything.
SCRIPT = """
import asyncio, sys
import httpx2
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION
from common.tool_server.overrides import configure_logs
from workspace import server
from workspace.files.folder import Store
from workspace.settings import Settings

MODERN = {"protocolVersion": LATEST_MODERN_VERSION, "clientCapabilities": {}}
ENVELOPE = {f"io.modelcontextprotocol/{name}": value for name, value in MODERN.items()}
HELLO = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
CALL = {"name": "write_file", "arguments": {"path": "a", "content": "x"}}
REFUSED = {"name": "write_file", "arguments": {"unknown": True}}

switched = set()  # the modules when the account has been switched
prepare = Store.prepare
Store.prepare = lambda store: (switched.update(sys.modules), prepare(store))

async def main():
    configure_logs("INFO", "text")
    app = server.create_app(Settings())
    inner = app
    while not hasattr(inner, "router"):
        inner = inner._app
    headers = {"accept": "application/json, text/event-stream", "authorization": f"Bearer {sys.argv[1]}"}
    transport = httpx2.ASGITransport(app)
    async with (
        inner.router.lifespan_context(inner),
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as http,
    ):
        for version, meta, methods in (
            (LATEST_HANDSHAKE_VERSION, {}, [("initialize", HELLO)]),
            (LATEST_MODERN_VERSION, ENVELOPE, [("server/discover", {})]),
        ):
            for method, params in [*methods, ("tools/list", {}), ("tools/call", REFUSED), ("tools/call", CALL)]:
                names = {"mcp-name": params["name"]} if "name" in params else {}
                more = {"mcp-protocol-version": version, "mcp-method": method, **names}
                body = {"jsonrpc": "2.0", "id": 1, "method": method}
                body["params"] = {**params, "_meta": {**meta, "todo/folder": "cnv_1"}}
                (await http.post("/mcp", json=body, headers=more)).raise_for_status()
        (await http.put("/files/cnv_1/b", content=b"x")).raise_for_status()
        (await http.get("/files/cnv_1/b")).raise_for_status()
        print(*{*sys.modules} - switched)

asyncio.run(main())
"""


def test_nothing_is_imported_after_the_start() -> None:
    with directory() as root:
        os.chown(root, os.geteuid(), -1)
        variables = {"WORKSPACE_DIR": str(root), "WORKSPACE_URL": URL, "WORKSPACE_TOKEN_SECRET": SECRET}
        command = [sys.executable, "-c", SCRIPT, token("alice")]
        environment = variables | {"PATH": os.environ["PATH"]}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr
