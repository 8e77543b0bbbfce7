"""Starts the services to measure on a temporary PostgreSQL, with their model and rows in the database."""

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import aiohttp

from bench import seed
from bench.client import BenchClient
from bench.processes import Server
from cli import data_dir
from cli.database.postgres import Cluster
from cli.services import service_command
from cli.services.ports import HOST, find_free_port
from common.tokens import make_token

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - only a directory of our own is made there
_MEMORY_NEEDED = 2 * 1024**3
_SECRET = secrets.token_hex(32)
_WITHOUT_LIMITS: dict[str, str] = dict.fromkeys(
    ("LIMIT_TOOL_CALLS_PER_MINUTE", "LIMIT_TASKS", "LIMIT_CHANGES_PER_DAY"), "1000000000"
)


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
        expires = int(time.time()) + 3600
        claims = {
            "audience": f"http://{HOST}:{self.mcp.port}/mcp",
            "expires": expires,
            "jti": "bench",
            "scope": "tasks",
        }
        return make_token(_SECRET, user, **claims)


@contextmanager
def temporary_database(*, durable: bool = True) -> Iterator[Cluster]:
    """Starts it in a directory that is deleted after the block, in memory if there is room."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that SIGTERM deletes it, too
    roomy = _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > _MEMORY_NEEDED
    place = _SHARED_MEMORY if roomy else None
    with tempfile.TemporaryDirectory(prefix="todo-measured-", dir=place, ignore_cleanup_errors=True) as directory:
        Path(directory).chmod(0o711)  # PostgreSQL may run as another user than we do
        with Cluster.start(Path(directory, "database"), durable=durable) as cluster:
            variables = os.environ | {"MIGRATION_DATABASE_URL": cluster.owner_url}
            service_command.run("migrations", variables=variables, stdout=subprocess.DEVNULL)
            yield cluster


@asynccontextmanager
async def serve(
    work: Path, *, both: Mapping[str, str], mcp: Mapping[str, str], backend: Mapping[str, str]
) -> AsyncIterator[tuple[Server, Server]]:
    mcp_port, port = find_free_port(), find_free_port()
    both = {**both, "MCP_URL": f"http://{HOST}:{mcp_port}/mcp"}
    async with AsyncExitStack() as stack:
        tool_server = Server(work, "mcp_server", port=mcp_port, **{**both, **mcp, "MCP_PORT": str(mcp_port)})
        stack.push_async_callback(tool_server.stop)
        server = Server(work, "backend", port=port, **{**both, **backend, "AGENTS": "off", "BACKEND_PORT": str(port)})
        stack.push_async_callback(server.stop)
        await tool_server.wait_until_ready()
        await server.wait_until_ready()
        yield tool_server, server


@asynccontextmanager
async def start_services(database: Cluster, *, threads: int, **backend_settings: str) -> AsyncIterator[BenchServices]:
    work, admin_url, model_port = data_dir.logs(database.data_dir), database.admin_url, find_free_port()
    model_url = f"http://{HOST}:{model_port}/v1"
    both = {"DATABASE_URL": database.url, "MCP_TOKEN_SECRET": _SECRET}
    model_settings = {"LLM_PROVIDER": "custom", "LLM_BASE_URL": model_url, "LLM_MODEL": "instant"}
    async with AsyncExitStack() as stack:
        model = Server(work, "bench.model", str(model_port), port=model_port)
        stack.push_async_callback(model.stop)
        await model.wait_until_ready("/v1/models")
        mcp, backend = await stack.enter_async_context(
            serve(work, both=both, mcp=_WITHOUT_LIMITS, backend={**model_settings, **backend_settings})
        )
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
        )
        await stack.enter_async_context(session)
        client = BenchClient(session, f"http://{HOST}:{backend.port}", f"http://{HOST}:{mcp.port}/mcp")
        _, exchange = await client.create_thread("say 5")
        copies = seed.copy_conversation(admin_url, exchange, prefix="thr_one_", threads=threads, turns=1)
        seed.vacuum(admin_url)
        yield BenchServices(backend, mcp, client, model_url, admin_url, cycle(copies))
