import gc
import json
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from jsonschema.validators import Draft202012Validator
from psycopg.sql import SQL, Composed, Identifier, Literal

from cli.database.postgres import Cluster
from tests.logins import as_admin, as_owner, as_service, password

pytest_plugins = ["tests.support.fixtures"]

ROOT = Path(__file__).resolve().parent.parent
MEMORY_NEEDED = 512 * 1024 * 1024
_PORTS = range(20_000, 32_000)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pooled", action="store_true", help="put PgBouncer before the tests' database")


@pytest.hookimpl(trylast=True)  # after tests have been deselected
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts the slowest files first, so that parallel processes end at about the same time."""
    seconds = defaultdict[Path, float](float)
    for item in items:
        long = item.get_closest_marker("long")
        seconds[item.path] += 0.05 if long is None else long.kwargs.get("seconds", 3)
    items.sort(key=lambda item: (-seconds[item.path], item.path))


def pytest_collection_finish() -> None:
    # Objects that exist now live until the end: the garbage collector need not traverse them.
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


# Each run has the same examples, and how long one takes says nothing on a busy machine.
PROFILE = settings(deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("todo", PROFILE)
settings.load_profile("todo")


def pytest_configure() -> None:
    gc.disable()  # during collection: imports create no garbage
    # SIGTERM runs the same cleanup as Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Shells start background jobs with SIGINT ignored; the services would inherit that, and tests stop them by SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def cache_schema_checks() -> Iterator[None]:
    """Checks each tool schema once: every MCP connection checks the same five, which takes 60 ms."""
    check, checked = Draft202012Validator.check_schema, set[str]()

    def check_once(schema: Any, **options: Any) -> None:
        if (text := json.dumps(schema, default=repr)) not in checked:
            check(schema, **options)
            checked.add(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Draft202012Validator, "check_schema", check_once)
        yield


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """The superuser's URL of the server in DATABASE_URL, or of a temporary one; tests create databases on it."""
    if url := os.environ.get("DATABASE_URL"):
        prepare_roles(url)
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="todo-test-", dir=find_memory()) as directory:
        os.chmod(directory, 0o711)  # PostgreSQL may run as another account
        with Cluster.start(directory, durable=False) as cluster:
            yield cluster.admin_url


def find_memory() -> Path | None:
    """Returns the directory whose files are in memory, if there is space for a database or for large files."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and shutil.disk_usage(memory).free > MEMORY_NEEDED else None


@pytest.fixture(scope="session")
def template(server_url: str) -> Iterator[str]:
    """The name of a migrated database without connections, from which tests create their databases."""
    with new_database(server_url) as (name, url):
        prepare_roles(url)
        migrate(url)
        _execute(server_url, SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false"), name)
        yield name


@pytest.fixture(scope="session")
def session_database_url(server_url: str, template: str, request: pytest.FixtureRequest) -> Iterator[str]:
    with new_database(server_url, template) as (_, url):
        if request.config.getoption("--pooled"):
            from tests.scale.pooler import pool_all_tests  # which imports this module

            with pool_all_tests(as_service(url)) as pooled_url:
                yield pooled_url
        else:
            yield as_service(url)


@pytest.fixture(scope="session")
def administrator() -> Iterator[Callable[[str], psycopg.Connection[Any]]]:
    """Returns a superuser's connection to a database, which is reused; every statement commits."""
    connections = dict[str, psycopg.Connection[Any]]()

    def connection(url: str) -> psycopg.Connection[Any]:
        if url not in connections or connections[url].closed:
            connections[url] = psycopg.connect(as_admin(url), autocommit=True, application_name="test")
        return connections[url]

    yield connection
    for each in connections.values():
        each.close()


@pytest.fixture
def database_url(session_database_url: str, administrator: Callable[[str], psycopg.Connection[Any]]) -> Iterator[str]:
    """The services' URL of an empty migrated database, which the tests share one after the other.

    It is emptied afterwards, too: rows of the local user would disturb tests that do not use this fixture.
    """
    _empty(administrator(session_database_url))
    yield session_database_url
    _empty(administrator(session_database_url))


def _empty(connection: psycopg.Connection[Any]) -> None:
    tables = connection.execute(
        "SELECT schemaname, tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
    ).fetchall()
    has_rows = SQL("SELECT {}, {} WHERE EXISTS (SELECT FROM {})")
    queries = [has_rows.format(*map(Literal, table), Identifier(*table)) for table in tables]
    if filled := connection.execute(SQL(" UNION ALL ").join(queries)).fetchall():
        names = SQL(", ").join(Identifier(*table) for table in filled)
        _truncate(connection, SQL("TRUNCATE {} CASCADE").format(names))
    connection.execute("SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, 1, false) FROM pg_sequences")


def _truncate(connection: psycopg.Connection[Any], statement: Composed, tries: int = 5) -> None:
    """Retries after a deadlock with the last requests of a browser that has just been closed."""
    try:
        connection.execute(statement)
    except psycopg.errors.DeadlockDetected:
        if tries == 1:
            raise
        _truncate(connection, statement, tries - 1)


@pytest.fixture
def fresh_database_url(server_url: str, template: str) -> Iterator[str]:
    """The services' URL of a migrated database of one test."""
    with new_database(server_url, template) as (_, url):
        yield as_service(url)


@pytest.fixture
def empty_database_url(server_url: str) -> Iterator[str]:
    """The owner's URL of a database of one test without tables."""
    with new_database(server_url) as (_, url):
        yield as_owner(url)


def find_free_port() -> int:
    """Returns a port below the ephemeral ports, so that a service can listen on it again after a restart."""
    for port in _list_ports():
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError


@cache
def _list_ports() -> Iterator[int]:
    """Yields the ports of this process of the test run in turn: a service takes its port later than it is chosen."""
    worker, workers = os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:], os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    ports = _PORTS[int(worker) :: int(workers)]
    begin = random.randrange(len(ports))
    return cycle([*ports[begin:], *ports[:begin]])


def migrate(url: str) -> None:
    """Runs the migrations as the owner of the database."""
    environment = os.environ | {"MIGRATION_DATABASE_URL": as_owner(url)}
    command = [sys.executable, "-m", "migrations"]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, f"migrations failed:\n{result.stdout}{result.stderr}"


def prepare_roles(url: str) -> None:
    """Creates the roles as the start of PostgreSQL does."""
    with psycopg.connect(as_admin(url)) as connection:
        connection.execute("LOCK TABLE pg_authid IN SHARE ROW EXCLUSIVE MODE")  # other processes do so, too
        for login in ("owner", "service"):
            connection.execute("SELECT set_config(%s, %s, false)", [f"todo.{login}_password", password() or ""])
        connection.execute((ROOT / "common" / "database" / "roles.sql").read_bytes())


@contextmanager
def new_database(server_url: str, template: str = "template0") -> Iterator[tuple[str, str]]:
    """Creates a database for the block; yields its name and URL."""
    name = f"todo_test_{secrets.token_hex(6)}"
    _execute(server_url, SQL("CREATE DATABASE {} TEMPLATE {} OWNER todo_owner"), name, template)
    try:
        yield name, urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
    finally:
        _execute(server_url, SQL("DROP DATABASE {} WITH (FORCE)"), name)


def _execute(server_url: str, statement: SQL, *names: str) -> None:
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(statement.format(*map(Identifier, names)))
