"""Runs PgBouncer with `deploy/pgbouncer.ini` in front of the PostgreSQL of a test."""

import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from psycopg.conninfo import conninfo_to_dict

from cli.database import postgres
from common.database import Database
from tests import logins
from tests.conftest import ROOT, find_free_port
from tests.processes import Program

PROGRAM = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
_LOGINS = (postgres.SERVICE, postgres.OWNER)


class PgBouncer(Program):
    """Keeps its port when it is restarted. `settings` replace those of the file."""

    def __init__(self, database_url: str, directory: Path, **settings: object) -> None:
        super().__init__(directory / "pgbouncer.log")
        self.port = find_free_port()
        self._database_url = database_url
        self._configuration = directory / "pgbouncer.ini"
        users = directory / "userlist.txt"
        users.write_text("".join(f'"{login}" "{logins.password() or ""}"\n' for login in _LOGINS))
        defaults = {
            "todo": self._database,
            "listen_addr": "127.0.0.1",
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": users,
        }
        self._configuration.write_text(_render_configuration({**defaults, **settings}))

    @property
    def url(self) -> str:
        """The URL of the same database and login through PgBouncer."""
        login = urlsplit(self._database_url).netloc.rpartition("@")[0]
        return urlunsplit(("postgresql", f"{login}@127.0.0.1:{self.port}", "/todo", "", ""))

    @property
    def _database(self) -> str:
        parts = conninfo_to_dict(logins.as_admin(self._database_url))
        return " ".join(f"{name}={parts[name]}" for name in ("host", "port", "dbname") if name in parts)

    def start(self) -> None:
        # It refuses to run as root, who alone may log in to a database that root runs: here it does not see that it is.
        as_another = ["unshare", "--map-user=1", "--map-group=1"] if os.geteuid() == 0 else []
        self.launch([*as_another, PROGRAM, str(self._configuration)])
        self.wait_until(self._is_listening)

    def _is_listening(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def run_pgbouncer(database_url: str, **settings: object) -> Iterator[str]:
    """Starts a PgBouncer; yields the URL of the same database and login through it."""
    with tempfile.TemporaryDirectory(prefix="todo-pooler-") as directory:
        Path(directory).chmod(0o711)  # it may run as another user than we do
        pooler = PgBouncer(database_url, Path(directory), **settings)
        pooler.start()
        try:
            yield pooler.url
        finally:
            pooler.end()


@contextmanager
def pool_all_tests(database_url: str) -> Iterator[str]:
    """Runs PgBouncer for `pytest --pooled`; yields its URL, and sets what databases and services need behind it."""
    defaults = Database.__init__.__kwdefaults__
    assert defaults is not None
    with run_pgbouncer(database_url) as pooled_url, pytest.MonkeyPatch.context() as patch:
        patch.setitem(logins.DIRECT_URLS, logins.host_of(pooled_url), database_url)
        patch.setitem(defaults, "prepared", False)
        patch.setenv("LISTEN_DATABASE_URL", database_url)
        patch.setenv("DATABASE_PREPARED", "off")
        yield pooled_url


def _render_configuration(settings: Mapping[str, object]) -> str:
    """Returns the file with these settings replaced or added."""
    text = (ROOT / "deploy" / "pgbouncer.ini").read_text()
    for name, value in settings.items():
        text, replaced = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value}", text)
        text += "" if replaced else f"{name} = {value}\n"
    return text
