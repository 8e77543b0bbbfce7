"""The PostgreSQL that `./todo` starts in its data directory."""

import os
import pwd
import stat
from pathlib import Path

import psycopg
import pytest

from cli.database import postgres
from cli.database.postgres import Cluster
from cli.errors import CliError

pytestmark = pytest.mark.long


@pytest.fixture
def sockets(shared_dir: Path) -> Path:
    return Path(postgres.url(shared_dir).partition("host=")[2])


def test_killed_server_keeps_what_was_committed(shared_dir: Path, sockets: Path) -> None:
    """It listens only in a directory that others cannot enter, and not as root."""
    with Cluster.start(shared_dir) as cluster:
        with psycopg.connect(cluster.admin_url) as connection:
            connection.execute("CREATE TABLE notes AS SELECT 'kept' AS text")
            connection.execute("CHECKPOINT")
            for name, value in (("listen_addresses", ""), ("fsync", "on"), ("server_encoding", "UTF8")):
                assert connection.execute("SELECT current_setting(%s)", [name]).fetchone() == (value,)
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
        account = pwd.getpwnam("nobody").pw_uid if os.getuid() == 0 else os.getuid()
        assert Path(f"/proc/{cluster.process.pid}").stat().st_uid == account
        cluster.process.kill()
        cluster.process.wait()
    with Cluster.start(shared_dir) as cluster, psycopg.connect(cluster.admin_url) as connection:
        assert connection.execute("SELECT text FROM notes").fetchall() == [("kept",)]
    assert not sockets.exists()
    for log in ("postgres.log", "postgres.log.old"):
        assert "checkpoint" not in (shared_dir / "logs" / log).read_text(), "the services' lines would be buried"


def test_directory_of_any_name(shared_dir: Path) -> None:
    directory = shared_dir / os.fsdecode(b"a $HOME `id` \"b\" 'c' \\ \r \xff")
    with Cluster.start(directory, durable=False) as cluster, psycopg.connect(cluster.admin_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_first_start_that_was_cut_short(shared_dir: Path) -> None:
    half = shared_dir / "postgres.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    with Cluster.start(shared_dir, durable=False) as cluster, psycopg.connect(cluster.admin_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_files_of_another_major_version(shared_dir: Path) -> None:
    files = shared_dir / "postgres"
    files.mkdir()
    (files / "PG_VERSION").write_text("9\n")
    with pytest.raises(CliError):
        Cluster.start(shared_dir)
    assert [path.name for path in files.iterdir()] == ["PG_VERSION"]


def test_socket_directory_of_somebody_else(shared_dir: Path, sockets: Path) -> None:
    sockets.mkdir()
    sockets.chmod(0o777)
    try:
        with pytest.raises(CliError):
            Cluster.start(shared_dir, durable=False)
    finally:
        sockets.rmdir()
