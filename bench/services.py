"""Starts the services to measure, with their model and rows in the database."""

import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import cycle

import aiohttp

from bench import seed
from bench.client import BenchClient
from bench.processes import HOST, Server, find_free_port
from bench.temporary import TemporaryDatabase
from common.tokens import make_token

_SECRET = secrets.token_hex(32)
_WITHOUT_LIMITS = dict.fromkeys(("LIMIT_TOOL_CALLS_PER_MINUTE", "LIMIT_TASKS", "LIMIT_CHANGES_PER_DAY"), "1000000000")


@dataclass(frozen=True)
class BenchServices:
    """`threads` repeats the ids of conversations with one short exchange."""

    backend: Server
    mcp: Server
    client: BenchClient
    model_url: str
    admin_url: str
    threads: Iterator[str]

    def create_token(self, user: str) -> str:
        """Creates an access token of the tool server for a user."""
        expires = int(time.time()) + 3600
        return make_token(_SECRET, user, audience=f"http://{HOST}:{self.mcp.port}/mcp", expires=expires)


@asynccontextmanager
async def start_services(
    database: TemporaryDatabase, *, threads: int, **backend_settings: str
) -> AsyncIterator[BenchServices]:
    """Starts the services and copies a conversation `threads` times."""
    work, admin_url = database.work, database.admin_url
    model_port, mcp_port, backend_port = find_free_port(), find_free_port(), find_free_port()
    model_url, mcp_url = f"http://{HOST}:{model_port}/v1", f"http://{HOST}:{mcp_port}/mcp"
    settings = {"DATABASE_URL": database.url, "MCP_URL": mcp_url, "MCP_TOKEN_SECRET": _SECRET}
    model_settings = {"LLM_PROVIDER": "custom", "LLM_BASE_URL": model_url, "LLM_MODEL": "instant"}
    async with AsyncExitStack() as stack:
        model = Server(work, "bench.model", str(model_port), port=model_port)
        stack.push_async_callback(model.stop)
        mcp = Server(work, "mcp_server", port=mcp_port, MCP_PORT=str(mcp_port), **settings, **_WITHOUT_LIMITS)
        stack.push_async_callback(mcp.stop)
        backend = Server(
            work,
            "backend",
            port=backend_port,
            BACKEND_PORT=str(backend_port),
            AGENTS="off",
            **settings,
            **model_settings,
            **backend_settings,
        )
        stack.push_async_callback(backend.stop)
        await model.wait_until_ready("/v1/models")
        await mcp.wait_until_ready()
        await backend.wait_until_ready()
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
        )
        await stack.enter_async_context(session)
        client = BenchClient(session, f"http://{HOST}:{backend_port}", mcp_url)
        _, exchange = await client.create_thread("say 5")
        copies = seed.copy_conversation(admin_url, exchange, prefix="thr_one_", threads=threads, turns=1)
        seed.vacuum(admin_url)
        yield BenchServices(backend, mcp, client, model_url, admin_url, cycle(copies))
