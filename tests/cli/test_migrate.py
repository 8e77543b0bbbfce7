import os

import psycopg
import pytest

from cli.database import postgres
from tests.waiting import WAIT_SECONDS

pytestmark = pytest.mark.long

OWNER = """
import signal, sys
from cli.database.postgres import Cluster
cluster = Cluster.start(sys.argv[1], durable=False)
print("started", flush=True)
signal.pause()
"""


@pytest.fixture
def migrate(start, shared_dir):
    def run(**variables: str) -> int:
        kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        process = start("-m", "cli", "migrate", "--data-dir", str(shared_dir), env=kept | variables)
        return process.wait(WAIT_SECONDS)

    return run


def is_migrated(url: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT to_regclass('alembic_version') IS NOT NULL").fetchone() == (True,)


def test_own_database(migrate, empty_database_url, shared_dir):
    assert migrate(DATABASE_URL=empty_database_url) == 0
    assert is_migrated(empty_database_url)
    assert list(shared_dir.iterdir()) == []


def test_running_database(migrate, shared_dir, start):
    owner = start("-c", OWNER, str(shared_dir))
    assert owner.stdout.readline() == "started\n"
    assert migrate() == 0
    assert is_migrated(postgres.url(shared_dir, postgres.ADMIN))
    assert owner.poll() is None
