import os
import pwd
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from cli.database import postgres, postgres_binaries
from cli.database.postgres import Cluster
from cli.errors import CliError
from cli.processes.ownership import InUseError

pytestmark = pytest.mark.long

OWNER = """
import signal, sys
from cli.database.postgres import Cluster
cluster = Cluster.start(sys.argv[1])
print(cluster.process.pid, flush=True)
signal.pause()
"""


def write(url: str, text: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS notes (text text)")
        connection.execute("INSERT INTO notes VALUES (%s)", [text])


def read(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [text for (text,) in connection.execute("SELECT text FROM notes").fetchall()]


@pytest.fixture
def sockets(shared_dir):
    return Path(postgres.url(shared_dir).partition("host=")[2])


def test_a_second_start_finds_what_the_first_wrote(shared_dir, sockets):
    with Cluster.start(shared_dir) as cluster:
        write(cluster.admin_url, "kept")
    assert not sockets.exists()
    with Cluster.start(shared_dir) as cluster:
        assert read(cluster.admin_url) == ["kept"]


def test_it_listens_only_in_a_directory_that_others_cannot_enter(shared_dir, sockets):
    with Cluster.start(shared_dir, durable=False) as cluster, psycopg.connect(cluster.admin_url) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
        assert connection.execute("SELECT current_user, current_database()").fetchone() == ("app", "todo")
        assert connection.execute("SHOW server_encoding").fetchone() == ("UTF8",)


@pytest.mark.parametrize(("durable", "setting"), [(True, "on"), (False, "off")])
def test_only_a_cluster_that_may_be_lost_goes_without_fsync(shared_dir, durable, setting):
    with Cluster.start(shared_dir, durable=durable) as cluster, psycopg.connect(cluster.admin_url) as connection:
        for name in ("fsync", "full_page_writes", "synchronous_commit"):
            assert connection.execute("SELECT current_setting(%s)", [name]).fetchone() == (setting,)


def test_a_killed_server_keeps_what_was_committed(shared_dir):
    with Cluster.start(shared_dir) as cluster:
        write(cluster.admin_url, "kept")
        cluster.process.kill()
        cluster.process.wait()
    with Cluster.start(shared_dir) as cluster:
        assert read(cluster.admin_url) == ["kept"]


def test_it_starts_again_each_time_where_nobody_waits_for_the_killed(shared_dir, never_waits, tmp_path, eventually):
    output = tmp_path / "output"
    for number in range(1, 4):
        never_waits.start("-c", OWNER, str(shared_dir), output=output)
        eventually(lambda n=number: output.exists() and output.read_text().count("\n") == n)
        write(postgres.url(shared_dir, postgres.ADMIN), f"kept {number}")
        never_waits.kill_everything()
        assert int(output.read_text().split()[-1]) in never_waits.zombies(), "its process id still exists"
    with Cluster.start(shared_dir) as cluster:
        assert read(cluster.admin_url) == ["kept 1", "kept 2", "kept 3"]


def test_locks_with_the_process_id_of_another_program_are_no_servers(shared_dir, sockets, never_waits, tmp_path):
    output = tmp_path / "output"
    never_waits.start("-c", OWNER, str(shared_dir), output=output)
    while not output.exists() or not output.read_text().endswith("\n"):
        time.sleep(0.02)
    never_waits.kill_everything()
    user = "nobody" if os.getuid() == 0 else None  # a process of PostgreSQL's own user: others it leaves out by itself
    with subprocess.Popen(["sleep", "60"], user=user) as program:
        for lock in (shared_dir / "postgres" / "postmaster.pid", sockets / ".s.PGSQL.5432.lock"):
            _, *rest = lock.read_text().splitlines()
            lock.write_text("\n".join([str(program.pid), *rest]) + "\n")
        try:
            with Cluster.start(shared_dir) as cluster, psycopg.connect(cluster.admin_url) as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)
        finally:
            program.kill()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_server_goes_with_its_owner(shared_dir, start, eventually, is_running, number):
    owner = start("-c", OWNER, str(shared_dir))
    server = int(owner.stdout.readline())
    write(postgres.url(shared_dir, postgres.ADMIN), "kept")
    with psycopg.connect(postgres.url(shared_dir, postgres.ADMIN)):  # a session that is open does not hold it up
        owner.send_signal(number)
        owner.wait()
        eventually(lambda: not is_running(server))
    with Cluster.start(shared_dir) as cluster:
        assert read(cluster.admin_url) == ["kept"]


def test_a_start_right_after_the_owner_was_killed_waits_for_the_old_server(shared_dir, start):
    owner = start("-c", OWNER, str(shared_dir))
    owner.stdout.readline()
    owner.kill()
    owner.wait()
    with Cluster.start(shared_dir) as cluster:
        assert cluster.process.poll() is None


def test_a_second_owner_is_told_who_the_first_is(shared_dir, start):
    owner = start("-c", OWNER, str(shared_dir))
    owner.stdout.readline()
    with pytest.raises(InUseError, match=rf"^The data directory {shared_dir} is in use by process {owner.pid}\.$"):
        Cluster.start(shared_dir)


def test_a_first_start_that_was_cut_short_is_begun_again(shared_dir):
    half = shared_dir / "postgres.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    with Cluster.start(shared_dir, durable=False) as cluster, psycopg.connect(cluster.admin_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_files_of_another_major_version_are_refused(shared_dir):
    files = shared_dir / "postgres"
    files.mkdir()
    (files / "PG_VERSION").write_text("9\n")
    with pytest.raises(CliError, match=r"made by PostgreSQL 9 and cannot be opened by PostgreSQL \d\d"):
        Cluster.start(shared_dir)


def test_a_socket_directory_that_others_can_enter_is_refused(shared_dir, sockets):
    sockets.mkdir()
    sockets.chmod(0o777)
    try:
        with pytest.raises(CliError, match="belongs to somebody else"):
            Cluster.start(shared_dir, durable=False)
    finally:
        sockets.rmdir()


def test_a_failed_start_lets_the_directory_go_and_shows_the_log(shared_dir):
    with Cluster.start(shared_dir, durable=False):
        pass
    settings = shared_dir / "postgres" / "postgresql.conf"
    good = settings.read_text()
    settings.write_text("no_such_setting = 1\n")
    with pytest.raises(CliError, match=r"PostgreSQL did not start; [\s\S]*no_such_setting"):
        Cluster.start(shared_dir, durable=False)
    settings.write_text(good)
    with Cluster.start(shared_dir, durable=False) as cluster:
        assert cluster.process.poll() is None


@pytest.mark.skipif(os.getuid() != 0, reason="only root is somebody else's choice of user")
class TestRoot:
    def test_the_server_runs_as_nobody(self, shared_dir):
        with Cluster.start(shared_dir, durable=False) as cluster:
            owner = Path(f"/proc/{cluster.process.pid}").stat().st_uid
        assert owner == pwd.getpwnam("nobody").pw_uid

    def test_a_directory_that_nobody_cannot_reach_is_refused_and_left_as_it_is(self, shared_dir):
        closed = shared_dir / "closed"
        closed.mkdir(mode=0o700)
        with pytest.raises(CliError, match=r"not run as root but as nobody, who cannot reach .*: choose another"):
            Cluster.start(closed / "data")
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700

    def test_another_user_runs_their_own(self, shared_dir):
        os.chown(shared_dir, pwd.getpwnam("nobody").pw_uid, -1)
        assert as_nobody(lambda: start_and_stop(shared_dir)) == "ran as nobody"

    def test_another_user_cannot_write_what_is_roots(self, shared_dir):
        answer = as_nobody(lambda: start_and_stop(shared_dir / "data"))
        assert answer == f"The data directory {shared_dir}/data cannot be written: Permission denied."


def start_and_stop(directory: Path) -> str:
    with Cluster.start(directory, durable=False) as cluster:
        return "ran as " + pwd.getpwuid(Path(f"/proc/{cluster.process.pid}").stat().st_uid).pw_name


def as_nobody(action: Callable[[], str]) -> str:
    """In a fork, because the interpreter of the tests may lie where nobody else can start it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        nobody = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)
        try:
            os.write(writer, action().encode())
        except CliError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


def test_a_file_is_no_data_directory(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CliError, match=r"cannot be written: (Not a directory|File exists)\.$"):
        Cluster.start(tmp_path / "file")


def test_pg_bin_is_taken_first_and_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("PG_BIN", str(tmp_path))
    with pytest.raises(CliError, match="No PostgreSQL was found"):
        postgres_binaries.find(None)
    found = postgres_binaries.wheel()
    if found is None:
        pytest.skip("there is no wheel for this platform")
    for name in ("initdb", "postgres"):
        (tmp_path / name).symlink_to(found / name)
    assert postgres_binaries.find(None).directory == tmp_path.resolve()


def test_copied_binaries_run(tmp_path):
    found = postgres_binaries.wheel()
    if found is None:
        pytest.skip("there is no wheel for this platform")
    copied = postgres_binaries.copy(found, tmp_path)
    initdb = subprocess.run([copied / "initdb", "--version"], capture_output=True, text=True, check=True)
    assert initdb.stdout.startswith("initdb (PostgreSQL)")
    shutil.rmtree(copied / "..", ignore_errors=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [copied.relative_to(tmp_path).parts[0]]
