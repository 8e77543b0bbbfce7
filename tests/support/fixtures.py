"""Fixtures of the tests that use the product from outside: running stacks, and a new user for each test."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.logins import as_service
from tests.scripted_model import ScriptedModel
from tests.support.accounts import AccountStack, run_account_stack
from tests.support.golden import Golden
from tests.support.http_relay import HttpRelay
from tests.support.stack import STACKS, Services, Stack, run_services, run_stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until

StartStack = Callable[[str], Stack]
NewUser = Callable[..., User]


@pytest.fixture(scope="session")
def services(server_url: str, template: str) -> Iterator[Services]:
    from tests.conftest import new_database  # which imports this module

    directory = Path(tempfile.mkdtemp(prefix="todo-stack-"))
    try:
        with new_database(server_url, template) as (_, url), run_services(as_service(url), directory) as services:
            yield services
    finally:
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def start_stack(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartStack]:
    """Returns a function that starts a stack of `STACKS` when the first test needs it."""
    stacks: dict[str, Stack] = {}
    with ExitStack() as cleanup:

        def start(name: str) -> Stack:
            if name not in stacks:
                directory = tmp_path_factory.mktemp(f"stack-{name}")
                stacks[name] = cleanup.enter_context(run_stack(services, STACKS[name], directory))
            stacks[name].ensure_running()
            return stacks[name]

        yield start


@pytest.fixture(scope="session")
def accounts(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountStack]:
    with run_account_stack(services, tmp_path_factory.mktemp("accounts")) as stack:
        yield stack


@pytest.fixture
def stack_name() -> str:
    """The stack that the tests of a module use; modules can override the fixture."""
    return "main"


@pytest.fixture
def stack(start_stack: StartStack, stack_name: str) -> Stack:
    return start_stack(stack_name)


@pytest.fixture
async def model(stack: Stack) -> AsyncIterator[ScriptedModel]:
    """A client of the scripted model, without steps and requests of an earlier test."""
    async with ScriptedModel(stack.services.model.url) as model:
        yield model


@pytest.fixture
async def new_user(stack: Stack) -> AsyncIterator[NewUser]:
    """Returns a function that creates a user of the stack; its arguments are those of `User`."""
    async with new_users(stack) as make:
        yield make


@asynccontextmanager
async def new_users(stack: Stack) -> AsyncIterator[NewUser]:
    """Waits in the end until no run goes on, of any user: it would take a scripted response of the next test."""
    async with AsyncExitStack() as clients:

        def make(name: str | None = None, *, backend: int = 0) -> User:
            user = User(stack, name, backend=backend)
            clients.push_async_exit(user)
            return user

        yield make
    with Stored(stack.database_url) as stored:
        await until(lambda: not stored.is_run_running())


@pytest.fixture
async def user(new_user: NewUser) -> User:
    return new_user()


@pytest.fixture
async def relay(stack: Stack) -> AsyncIterator[HttpRelay]:
    relay = HttpRelay(stack.url)
    await relay.restore()
    yield relay
    relay.cut()


@pytest.fixture
def stored(stack: Stack) -> Iterator[Stored]:
    with Stored(stack.database_url) as stored:
        yield stored


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.path)
