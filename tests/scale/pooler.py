"""PgBouncer as `deploy/pgbouncer.ini` sets it up, before a test's own PostgreSQL."""

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from psycopg.conninfo import conninfo_to_dict

from cli.database import postgres
from cli.processes.children import die_with_parent
from tests.conftest import ROOT, find_free_port
from tests.logins import as_admin, password

PROGRAM = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
_START_SECONDS = 20
_LOGINS = (postgres.SERVICE, postgres.OWNER)


class Pooler:
    """Keeps its port over restarts. `settings` come instead of those of the file."""

    def __init__(self, database_url: str, directory: Path, **settings: object) -> None:
        self.port = find_free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._database_url = database_url
        self._log = directory / "pgbouncer.log"
        self._configuration = directory / "pgbouncer.ini"
        users = directory / "userlist.txt"
        users.write_text("".join(f'"{login}" "{password() or ""}"\n' for login in _LOGINS))
        own = {
            "todo": self._place,
            "listen_addr": "127.0.0.1",
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": users,
        }
        self._configuration.write_text(_with({**own, **settings}))

    @property
    def url(self) -> str:
        """The address of the same database and login by way of it."""
        login = urlsplit(self._database_url).netloc.rpartition("@")[0]
        return urlunsplit(("postgresql", f"{login}@127.0.0.1:{self.port}", "/todo", "", ""))

    @property
    def _place(self) -> str:
        known = conninfo_to_dict(as_admin(self._database_url))
        return " ".join(f"{name}={known[name]}" for name in ("host", "port", "dbname") if name in known)

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen[bytes](
                [PROGRAM, str(self._configuration)],
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent(signal.SIGKILL),
                **_account(),
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            assert self.process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.02)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def end(self, request: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(request)
            self.process.wait(20)


def _account() -> dict[str, Any]:
    """It refuses to be root; where it became another by itself, it would live on without us."""
    if os.getuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@contextmanager
def pooled(database_url: str, **settings: object) -> Iterator[str]:
    """The address of the same database and login by way of a pooler of its own."""
    with tempfile.TemporaryDirectory(prefix="todo-pooler-") as directory:
        Path(directory).chmod(0o711)  # it may run as another user than we do
        pooler = Pooler(database_url, Path(directory), **settings)
        pooler.start()
        try:
            yield pooler.url
        finally:
            pooler.end()


def _with(settings: Mapping[str, object]) -> str:
    """The file, with other values for these settings, and with those that it does not have."""
    text = (ROOT / "deploy" / "pgbouncer.ini").read_text()
    for name, value in settings.items():
        text, found = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value}", text)
        text += "" if found else f"{name} = {value}\n"
    return text
