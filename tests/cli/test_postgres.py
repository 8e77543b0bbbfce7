"""The PostgreSQL that `./todo` starts in its data directory."""

import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from cli.data_dir import is_traversable
from cli.database import postgres, postgres_binaries
from cli.database.postgres import Cluster
from cli.errors import CliError
from cli.processes import accounts
from tests.conftest import ROOT

pytestmark = pytest.mark.long
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be several accounts")
NOBODY = pwd.getpwnam("nobody").pw_uid
NORMAL = pwd.getpwnam("daemon").pw_uid
START = """
import sys
from cli.database.postgres import Cluster
with Cluster.start(sys.argv[1]) as cluster:
    print("started", flush=True)
    sys.stdin.read()
"""
# Python may be where only root can enter, so it becomes another user after it has loaded all modules.
START_AS_ANOTHER = f"""
import os, psycopg
from cli.database.postgres import Cluster
os.setgroups([])
os.setgid({NORMAL})
os.setuid({NORMAL})
{START}
"""
# The process is killed at this change of an owner.
START_AND_KILL = """
import itertools, os, signal
chown, count = os.chown, itertools.count()
def kill_or_chown(*arguments, **options):
    if next(count) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    chown(*arguments, **options)
os.chown = kill_or_chown
"""


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
        assert sockets.stat().st_uid == os.getuid()
        assert stat.S_IMODE(sockets.stat().st_mode) & 0o007 == 0
        account = get_account(cluster)
        assert account in accounts.NUMBERS if os.getuid() == 0 else account == os.getuid()
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


@as_root
class TestAccounts:
    def test_two_data_directories(self, shared_dir: Path) -> None:
        """Neither server can read the other's files; both keep their accounts."""
        a, b = shared_dir / "a", shared_dir / "b"
        with Cluster.start(a, durable=False) as one, Cluster.start(b, durable=False) as two:
            first, second = get_account(one), get_account(two)
            assert first != second
            for account in (first, NOBODY):
                files = two.data_dir / "postgres" / "PG_VERSION"
                assert run_as(account, "cat", str(files)).returncode != 0
        with Cluster.start(b, durable=False) as two:
            assert get_account(two) == second

    @pytest.mark.parametrize("account", ["nobody", "its own", "another installation's"])
    def test_others_cannot_log_in(self, shared_dir: Path, sockets: Path, account: str) -> None:
        """Not even if they reach the socket."""
        with Cluster.start(shared_dir, durable=False) as cluster:
            number = {"nobody": NOBODY, "its own": get_account(cluster), "another installation's": accounts.NUMBERS[-1]}
            sockets.chmod(0o777)
            for login in (postgres.ADMIN, postgres.OWNER, postgres.SERVICE):
                url = postgres.url(shared_dir, login)
                done = run_as(number[account], str(postgres_binaries.find().directory / "psql"), url)
                assert (done.returncode, "Peer authentication failed" in done.stderr) == (2, True), done.stderr

    @pytest.mark.skipif(not is_traversable(ROOT), reason="others cannot enter the checkout")
    def test_of_a_normal_user(self, shared_dir: Path, sockets: Path) -> None:
        """It runs as the user, who may log in as any role; others may not, except root."""
        (directory := shared_dir / "data").mkdir()
        os.chown(directory, NORMAL, NORMAL)
        url = postgres.url(directory, postgres.ADMIN)
        program = str(postgres_binaries.find().directory / "psql")
        with subprocess.Popen(
            [sys.executable, "-c", START_AS_ANOTHER, str(directory)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout
            assert process.stdout.readline() == "started\n"
            assert (directory / "postgres").stat().st_uid == NORMAL
            assert run_as(NORMAL, program, url).returncode == 0
            assert run_as(0, program, url).returncode == 0
            assert run_as(NOBODY, program, url).returncode == 2
            Path(url.partition("host=")[2]).chmod(0o777)
            done = run_as(NOBODY, program, url)
            assert (done.returncode, "Peer authentication failed" in done.stderr) == (2, True), done.stderr
            with pytest.raises(CliError, match="in use by process"):
                Cluster.start(directory)
            process.communicate("")
        with pytest.raises(CliError, match="as that user"):
            Cluster.start(directory)
        shutil.rmtree(Path(url.partition("host=")[2]), ignore_errors=True)


@as_root
class TestClusterOfVersion02:
    """It belongs to nobody, who may log in as a superuser."""

    @pytest.fixture
    def files(self, shared_dir: Path) -> Path:
        with Cluster.start(shared_dir) as cluster, psycopg.connect(cluster.admin_url) as connection:
            connection.execute("CREATE TABLE notes AS SELECT 'kept' AS text")
        return self.give_back(shared_dir / "postgres")

    @staticmethod
    def give_back(files: Path) -> Path:
        (files / "pg_hba.conf").write_text("local all all trust\n")
        for path in (files, *files.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        return files

    def check(self, files: Path) -> None:
        with Cluster.start(files.parent) as cluster, psycopg.connect(cluster.admin_url) as connection:
            assert connection.execute("SELECT text FROM notes").fetchall() == [("kept",)]
            account = get_account(cluster)
            assert account in accounts.NUMBERS
            root = {"pg_hba.conf", "pg_ident.conf"}
            owners = {path.lstat().st_uid for path in (files, *files.rglob("*")) if path.name not in root}
            assert owners == {account}
            assert "trust" not in (files / "pg_hba.conf").read_text()

    def test_taken_over_and_back_again(self, files: Path, sockets: Path) -> None:
        sockets.mkdir(mode=0o700)  # of a server that was killed
        os.chown(sockets, NOBODY, NOBODY)
        self.check(files)
        self.give_back(files)
        self.check(files)

    @pytest.mark.parametrize("part", [0, 0.3, 0.999, 1])
    def test_killed_meanwhile(self, files: Path, part: float) -> None:
        changes = len([*files.rglob("*")])  # the directory itself is the last one, after these
        program = START.replace("import sys\n", "import sys\n" + START_AND_KILL, 1)
        done = subprocess.run(
            [sys.executable, "-c", program, str(files.parent), str(int(changes * part))],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL
        assert files.stat().st_uid == NOBODY
        self.check(files)

    def test_links_of_its_owner_lead_nowhere(self, files: Path, shared_dir: Path) -> None:
        (victim := shared_dir / "victim").write_text("root's")
        (files / "hard").hardlink_to(victim)
        (files / "soft").symlink_to(victim)
        os.chown(files / "soft", NOBODY, NOBODY, follow_symlinks=False)
        for name in ("pg_hba.conf", "pg_ident.conf"):
            (files / name).unlink()
            (files / name).symlink_to(victim)
        with Cluster.start(shared_dir):
            assert (victim.stat().st_uid, victim.read_text()) == (0, "root's")


def get_account(cluster: Cluster) -> int:
    return Path(f"/proc/{cluster.process.pid}").stat().st_uid


def run_as(account: int, *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        user=account,
        group=account,
        extra_groups=[],
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
