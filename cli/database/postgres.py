"""PostgreSQL as a child process: no installation, no TCP port, no account added to the machine.

Root runs it as an account that no other data directory has; whoever runs `./todo` logs in as any role, nobody else.
"""

import errno
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from cli import data_dir
from cli.data_dir import CHECKOUT
from cli.database import cluster_files, postgres_binaries
from cli.errors import CliError, explain_os_error
from cli.processes import accounts, ownership
from cli.processes.children import create_log, die_with_parent, read_last_lines
from cli.processes.ownership import InUseError, Ownership

ADMIN, OWNER, SERVICE = "app", "todo_owner", "todo_service"
DATABASE = "todo"
ROLES = CHECKOUT / "common" / "database" / "roles.sql"
START_SECONDS, STOP_SECONDS = 60, 30
BUILTIN_LOCALES_SINCE = 17
SOCKETS = Path("/tmp")  # noqa: S108 - what is made there is checked to be ours
ENVIRONMENT = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PATH": os.defpath}
# Of a throwaway cluster, which many services share: their pools keep more than the usual 100 connections open.
NOT_DURABLE = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "max_connections": "300"}


class Cluster:
    """PostgreSQL in a data directory; while it runs, this process owns it. Start it from the main thread."""

    def __init__(self, directory: Path, *, durable: bool) -> None:
        self.data_dir = directory
        self.log = data_dir.logs(directory) / "postgres.log"
        self._files = directory / "postgres"
        self._sockets = _create_socket_dir(directory)
        self._account: int | None = None
        """Of root's; others run it themselves."""
        self._binaries = postgres_binaries.find(for_others=_is_root())
        if not exists(directory):
            postgres_binaries.check_usable_by_initdb(self._binaries.directory)
        self._durable = durable
        self._ownership: Ownership | None = None

    @classmethod
    def start(cls, directory: str | Path, *, durable: bool = True) -> Self:
        """Creates the cluster if there is none. `durable=False` trades safety in a crash for speed."""
        return cls(Path(directory).resolve(), durable=durable).run()

    def run(self) -> Self:
        self._own_data_dir()
        self._run_server()
        return self

    def restart(self) -> None:
        """After its death: what was committed is there again, at the same address."""
        self.stop()
        self._own_data_dir(again=True)  # what is left of the killed server still holds the lock, and is waited for
        self._run_server()

    def _run_server(self) -> None:
        try:
            self._account = accounts.claim(self.data_dir) if _is_root() else None
            if exists(self.data_dir):
                self._check_version()
            else:
                self._create()
            if self._account:
                cluster_files.take_over(self._files, self._account)
            self._launch()
        except BaseException:
            self._release()
            raise

    @property
    def url(self) -> str:
        return url(self.data_dir, SERVICE)

    @property
    def owner_url(self) -> str:
        return url(self.data_dir, OWNER)

    @property
    def admin_url(self) -> str:
        return url(self.data_dir, ADMIN)

    def stop(self) -> None:
        """Ends all sessions and shuts down cleanly; does nothing the second time."""
        if self._ownership is None:
            return
        for request in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):  # fast, immediate, gone
            self.process.send_signal(request)
            try:
                self.process.wait(STOP_SECONDS)
                break
            except subprocess.TimeoutExpired:
                continue
        shutil.rmtree(self._sockets, ignore_errors=True)
        self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _release(self) -> None:
        if self._ownership is not None:
            self._ownership.release()
            self._ownership = None

    def _own_data_dir(self, *, again: bool = False) -> None:
        data_dir.prepare(self.data_dir)
        if _is_root() and not data_dir.is_traversable(self.data_dir):
            raise CliError(
                f"PostgreSQL does not run as root, and other accounts cannot reach {self.data_dir}: "
                "choose another --data-dir."
            )
        with data_dir.explain_write_error(self.data_dir):
            self._ownership = ownership.take(self.data_dir, leftover=lambda: cluster_files.read_ready_pid(self._files))
            if not again:
                create_log(self.log)

    def _check_version(self) -> None:
        found = (self._files / "PG_VERSION").read_text().strip()
        if found != str(major := self._binaries.major):
            raise CliError(
                f"{self._files} was made by PostgreSQL {found} and cannot be opened by PostgreSQL {major}: "
                f"set PG_BIN to the binaries of {found}, or move its data with pg_dump or pg_upgrade."
            )

    def _create(self) -> None:
        """Built beside its place and renamed, so that a first start cut short leaves nothing half made.

        initdb needs an account that has a name. Root runs it as nobody with the group of ours, which alone can enter:
        neither the files nor the process can be reached by what else runs as nobody.
        """
        private = self._files.with_name("postgres.new")
        shutil.rmtree(private, ignore_errors=True)
        private.mkdir(mode=0o700)
        (fresh := private / "postgres").mkdir(mode=0o700)
        user = None
        if self._account:
            os.chown(fresh, user := accounts.get_nobody(), self._account)
            os.chown(private, -1, self._account)
            private.chmod(0o710)
        builtin = self._binaries.major >= BUILTIN_LOCALES_SINCE
        collation = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if builtin else ["--no-locale"]
        access = ["--auth-local=peer", "--auth-host=reject"]
        options = ["--username", ADMIN, *access, "--encoding=UTF8", "--no-instructions", *collation]
        if not self._durable:
            options.append("--no-sync")
        self._run("initdb", "-D", str(fresh), *options, user=user)
        create_database = f"CREATE DATABASE {DATABASE}\n".encode()
        options = ["-D", str(fresh), "-c", "log_checkpoints=off"]
        self._run("postgres", "--single", *options, "postgres", user=user, input=create_database)
        if self._account:
            cluster_files.take_over(fresh, self._account)
        fresh.rename(self._files)
        private.rmdir()

    def _run(self, program: str, *arguments: str, user: int | None, input: bytes = b"") -> None:
        command = [self._binaries.directory / program, *arguments]
        with self.log.open("ab") as log:
            options = self._child_options(signal.SIGKILL, user)
            done = subprocess.run(command, input=input, stdout=log, stderr=log, check=False, **options)
        if done.returncode:
            raise self.create_error(f"{program} failed")

    def _launch(self) -> None:
        self._prepare_sockets()
        # We hold the lock, which every process of a server holds too: whatever these files say is over, even if the
        # process ids in them are a zombie's or somebody else's by now.
        for leftover in (self._files / "postmaster.pid", *self._sockets.glob(".s.PGSQL.*")):
            leftover.unlink(missing_ok=True)
        cluster_files.write_access(self._files)
        options = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._sockets),
            # A start after crashes on a full disk can miss its checkpoint, and waits for the next one (PostgreSQL 18).
            "checkpoint_timeout": "30s",
            "log_checkpoints": "off",
        }
        if not self._durable:
            options |= NOT_DURABLE
        command = [str(self._binaries.directory / "postgres"), "-D", str(self._files)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen[bytes](
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._child_options(signal.SIGINT, self._account),
            )
        try:
            self._prepare_roles()
        except BaseException:
            self.stop()
            raise

    def _prepare_roles(self) -> None:
        """At each start, because an older version's cluster has none: there the first superuser owns everything."""
        import psycopg  # while the server starts, which takes as long

        self._wait_until_ready()
        try:
            with psycopg.connect(self.admin_url, autocommit=True) as connection:
                connection.execute(ROLES.read_bytes())
        except psycopg.Error as error:
            raise self.create_error(f"The database's roles could not be prepared ({error})") from error

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while cluster_files.read_ready_pid(self._files) != self.process.pid:
            if self.process.poll() is not None:
                raise self.create_error("PostgreSQL did not start")
            if time.monotonic() > deadline:
                raise self.create_error(f"PostgreSQL did not answer within {START_SECONDS} seconds")
            time.sleep(0.01)

    def _prepare_sockets(self) -> None:
        """The name is predictable and /tmp is everybody's: the directory must be ours, and closed to others."""
        with suppress(FileNotFoundError):
            if _is_root() and self._sockets.lstat().st_uid in cluster_files.list_previous_accounts():
                shutil.rmtree(self._sockets, ignore_errors=True)  # left by an older version's server that was killed
        with suppress(FileExistsError):
            self._sockets.mkdir(mode=0o700)
        found = self._sockets.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o007:
            raise CliError(f"{self._sockets} belongs to another user: remove it, or choose another --data-dir.")
        if self._account:
            os.chown(self._sockets, -1, self._account)
            self._sockets.chmod(0o770)

    def _child_options(self, on_parent_death: signal.Signals, user: int | None) -> dict[str, Any]:
        assert self._ownership is not None
        options: dict[str, Any] = {
            "cwd": "/",
            "env": ENVIRONMENT,
            "start_new_session": True,  # Ctrl-C is for us, who stop things in order
            "pass_fds": [self._ownership.lock],  # so that the lock outlives us for as long as a server does
            "preexec_fn": die_with_parent(on_parent_death),
        }
        if self._account:
            options |= {"user": user, "group": self._account, "extra_groups": []}
        return options

    def create_error(self, what: str) -> CliError:
        lines = read_last_lines(self.log)
        if os.strerror(errno.ENOSPC) in lines:
            return CliError(f"{what}: no space is left on the disk of {self.data_dir}. Make space, and try again.")
        if not lines:
            return CliError(f"{what}, and {self.log} is empty. Check whether its disk has space, and try again.")
        return CliError(f"{what}; the end of {self.log}:\n{lines}")


def exists(directory: Path) -> bool:
    with explain_os_error(f"The data directory {directory} cannot be read"):
        return (directory / "postgres" / "PG_VERSION").exists()


def url(directory: str | Path, login: str = SERVICE) -> str:
    return f"postgresql://{login}@/{DATABASE}?host={_create_socket_dir(Path(directory).resolve())}"


def is_migrated(directory: Path) -> bool:
    """Whether the running cluster has the newest tables, so that no process needs to be started to migrate them."""
    import psycopg

    from common.revision import REVISION, read_revision

    try:
        return read_revision(url(directory, OWNER)) == REVISION
    except psycopg.Error:  # the migration says what is wrong
        return False


@contextmanager
def owner_environment(
    environment: Mapping[str, str], directory: Path, *, create: bool = False
) -> Iterator[dict[str, str]]:
    """The environment with the owner's address: its own, else of the cluster in `directory`, started unless it runs."""
    with ExitStack() as stack:
        variables = dict(environment)
        if not variables.keys() & {"DATABASE_URL", "MIGRATION_DATABASE_URL"}:
            if not create and not exists(directory):
                raise CliError(
                    f"There is no database in {directory} yet. Create one with ./todo up, or set DATABASE_URL."
                )
            with suppress(InUseError):  # `up` runs there: work on what it runs
                stack.enter_context(Cluster.start(directory))
            variables["MIGRATION_DATABASE_URL"] = url(directory, OWNER)
        yield variables


def _create_socket_dir(directory: Path) -> Path:
    """Not in the data directory: the path of a Unix socket has at most 107 bytes."""
    return SOCKETS / f"todo-pg-{hashlib.sha256(os.fsencode(directory)).hexdigest()[:12]}"


def _is_root() -> bool:
    return os.geteuid() == 0
