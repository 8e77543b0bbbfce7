"""Everything that is measured, running, with rows in the database."""

import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from bench import seed
from bench.drivers.client import Client
from bench.drivers.product import Chat, Tools
from bench.drivers.worker import Worker
from bench.processes import Server, free_port
from bench.scale import Scale
from common.tokens import make_token

PEOPLE = [f"person-{n}" for n in range(16)]
_SECRET = secrets.token_hex(32)
_NEVER = dict.fromkeys(("LIMIT_TOOL_CALLS_PER_MINUTE", "LIMIT_TASKS", "LIMIT_CHANGES_PER_DAY"), "1000000000")
FEW, THOUSAND, MANY = "few-tasks", "thousand-tasks", "many-tasks"


@dataclass(frozen=True)
class Place:
    """Where a run happens."""

    scale: Scale
    database_url: str
    admin_url: str
    work: Path
    pgbench: str | None
    model_port: int

    def seed(self, function: str, *values: Any, **named: Any) -> Any:
        """Calls a function of `bench.seed`."""
        return getattr(seed, function)(self.admin_url, *values, **named)

    @property
    def model_url(self) -> str:
        return f"http://127.0.0.1:{self.model_port}/v1"

    @property
    def model_settings(self) -> dict[str, str]:
        return {"LLM_PROVIDER": "custom", "LLM_BASE_URL": self.model_url, "LLM_MODEL": "instant"}

    def mcp_server(self, database_url: str, **settings: str) -> Server:
        port = free_port()
        return Server(
            self.work,
            "mcp_server",
            port=port,
            DATABASE_URL=database_url,
            MCP_PORT=str(port),
            MCP_URL=f"http://127.0.0.1:{port}/mcp",
            MCP_TOKEN_SECRET=_SECRET,
            **settings,
        )

    def backend(self, database_url: str, mcp: Server, **settings: str) -> Server:
        port = free_port()
        return Server(
            self.work,
            "backend",
            port=port,
            DATABASE_URL=database_url,
            BACKEND_PORT=str(port),
            MCP_URL=f"http://127.0.0.1:{mcp.port}/mcp",
            **self.model_settings,
            **settings,
        )


@dataclass(frozen=True)
class Product:
    """The services with their model alone, and conversations of one short exchange, round and round."""

    backend: Server
    mcp: Server
    chat: Chat
    threads: Iterator[str]


@asynccontextmanager
async def product(place: Place, **settings: str) -> AsyncIterator[Product]:
    """The backend is given these settings."""
    async with AsyncExitStack() as stack:
        model = _started(
            stack, Server(place.work, "bench.endpoints.model", str(place.model_port), port=place.model_port)
        )
        await model.ready()
        mcp = _started(stack, place.mcp_server(place.database_url, **_NEVER))
        backend = _started(stack, place.backend(place.database_url, mcp, **settings))
        for service in (mcp, backend):
            await service.ready()
        chat = Chat(backend.port)
        _, exchange = await chat.create("say 5")
        count = place.scale.threads
        threads = place.seed("copy_conversation", exchange, prefix="thr_one_", threads=count, turns=1)
        place.seed("settle")
        yield Product(backend, mcp, chat, cycle(threads))


@dataclass(frozen=True)
class Services:
    """The services with their model and rows in the database."""

    place: Place
    backend: Server
    mcp: Server
    model: Client
    chat: Chat
    tools: Tools
    threads: Iterator[str]  # of one short exchange, round and round
    short_threads: Iterator[str]  # of 20 items
    long_thread: str

    @property
    def scale(self) -> Scale:
        return self.place.scale


@dataclass(frozen=True)
class Stage(Services):
    """And what they are measured beside."""

    tools_with_tokens: Tools
    endpoint: Server
    plain: Client
    floor: Worker
    limit: Worker


@asynccontextmanager
async def set_up_services(
    scale: Scale, *, database_url: str, admin_url: str, work: Path, pgbench: str | None
) -> AsyncIterator[Services]:
    async with AsyncExitStack() as stack:
        port = free_port()
        place = Place(scale, database_url, admin_url, work, pgbench, port)
        model = _started(stack, Server(work, "bench.endpoints.model", str(port), port=port))
        await model.ready()
        mcp = _started(stack, place.mcp_server(database_url))
        # All that is measured here is to be answered: what is refused is measured under load.
        backend = _started(stack, place.backend(database_url, mcp, LIMIT_LAG_SECONDS="60"))
        for service in (mcp, backend):
            await service.ready()
        chat = Chat(backend.port)
        rows = await _seeded(place, chat)
        yield Services(place, backend, mcp, Client(model.port), chat, tools_of(mcp), *rows)


@asynccontextmanager
async def set_up(scale: Scale, *, database_url: str, **there: Any) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(set_up_services(scale, database_url=database_url, **there))
        place, port = services.place, free_port()
        floor, limit = [
            await Worker.start(module, place.model_url) for module in ("bench.drivers.floor", "bench.drivers.limit")
        ]
        stack.push_async_callback(floor.stop)
        stack.push_async_callback(limit.stop)
        guarded = _started(stack, place.mcp_server(database_url, AUTH_MODE="jwt", **_NEVER))
        endpoint = _started(
            stack, Server(place.work, "bench.endpoints.plain", str(port), port=port, DATABASE_URL=database_url)
        )
        await endpoint.ready("/health")
        await guarded.ready()
        await floor.ready()
        await limit.ready()
        guarded_tools = tools_of(guarded)
        yield Stage(
            **vars(services),
            tools_with_tokens=guarded_tools,
            endpoint=endpoint,
            plain=Client(port),
            floor=floor,
            limit=limit,
        )


def _started(stack: AsyncExitStack, server: Server) -> Server:
    stack.push_async_callback(server.stop)
    return server


def tools_of(mcp: Server) -> Tools:
    """With a token for each user: without one there is a single user where nobody signs in."""
    expires, audience = int(time.time()) + 3600, f"http://127.0.0.1:{mcp.port}/mcp"
    users = (*PEOPLE, FEW, THOUSAND, MANY)
    return Tools(mcp.port, {user: make_token(_SECRET, user, audience=audience, expires=expires) for user in users})


async def _seeded(place: Place, chat: Chat) -> tuple[Iterator[str], Iterator[str], str]:
    scale = place.scale
    _, exchange = await chat.create("say 5")
    _, tool_turn = await chat.create("add milk")
    threads = place.seed("copy_conversation", exchange, prefix="thr_one_", threads=scale.threads, turns=1)
    short = place.seed("copy_conversation", tool_turn, prefix="thr_short_", threads=scale.threads // 10, turns=10)
    (long,) = place.seed("copy_conversation", tool_turn, prefix="thr_long_", threads=1, turns=scale.long_thread // 2)
    for user, tasks in ((FEW, 20), (THOUSAND, 1_000), (MANY, scale.tasks)):
        place.seed("add_tasks", user, tasks)
    place.seed("settle")
    return cycle(threads), cycle(short), long
