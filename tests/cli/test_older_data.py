"""A data directory that an older version made: its first superuser owned everything, and the services were it."""

import os
import pwd
import subprocess
from pathlib import Path

import psycopg
import pytest
from alembic import command

from cli.database import postgres, postgres_binaries
from cli.database.postgres import Cluster
from migrations.schema import alembic_config
from tests.conftest import migrate
from tests.migrations.older_rows import add_rows, contents

OLD_REVISION = "0004"


@pytest.fixture
def older(shared_dir: Path) -> dict[str, list[dict[str, object]]]:
    """What is in it: made with that version's initdb and its migrations, as the superuser `app`, and stopped."""
    account = pwd.getpwnam("nobody") if os.getuid() == 0 else None
    become = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}
    binaries = postgres_binaries.find(account).directory
    files, sockets = shared_dir / "postgres", shared_dir / "sockets"
    for directory in (files, sockets):
        directory.mkdir(mode=0o700)
        if account:
            os.chown(directory, account.pw_uid, account.pw_gid)
    locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    options = ["--username", "app", "--auth=trust", "--encoding=UTF8", "--no-instructions", "--no-sync", *locale]
    subprocess.run([binaries / "initdb", "-D", files, *options], check=True, capture_output=True, cwd="/", **become)
    subprocess.run(
        [binaries / "postgres", "--single", "-D", files, "postgres"],
        input=b"CREATE DATABASE todo\n",
        check=True,
        capture_output=True,
        cwd="/",
        **become,
    )
    server = ["-D", str(files), "-c", "listen_addresses=", "-c", f"unix_socket_directories={sockets}"]
    process = subprocess.Popen([binaries / "postgres", *server], cwd="/", stderr=subprocess.DEVNULL, **become)
    url = f"postgresql://app@/todo?host={sockets}"
    try:
        while postgres._ready_pid(files) != process.pid:
            assert process.poll() is None
        command.upgrade(alembic_config(url), OLD_REVISION)
        add_rows(url, "old")
        found = contents(url)
    finally:
        process.terminate()
        process.wait()
    return found


def test_older_data_directory(shared_dir: Path, older: dict[str, list[dict[str, object]]]) -> None:
    last = max(int(str(row["id"])) for row in older["tasks"] if row["user_id"] == "alice")
    with Cluster.start(shared_dir, durable=False) as cluster:
        migrate(cluster.url)
        for table, rows in contents(cluster.admin_url).items():
            for row, old in zip(rows, older.get(table, rows), strict=True):
                assert old.items() <= row.items(), table
        with psycopg.connect(cluster.url) as service:
            login = "SELECT session_user, rolsuper FROM pg_roles WHERE rolname = session_user"
            assert service.execute(login).fetchone() == ("todo_service", False)
            service.execute("SET ROLE todo_app; SET todo.user_id = 'alice'")
            assert service.execute("SELECT user_id, last_task_id FROM people").fetchall() == [("alice", last)]
            seen = service.execute("SELECT DISTINCT user_id FROM tasks").fetchall()
            assert seen == [("alice",)]
        with psycopg.connect(cluster.admin_url) as admin:
            owners = "SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            assert admin.execute(owners.encode()).fetchall() == [("todo_owner",)]
            assert admin.execute("SELECT type FROM pg_hba_file_rules").fetchall() == [("local",)]
    with Cluster.start(shared_dir, durable=False) as cluster:
        assert len(contents(cluster.admin_url)["tasks"]) == len(older["tasks"])
