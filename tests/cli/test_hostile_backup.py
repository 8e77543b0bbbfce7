"""A backup that somebody else has made: `./todo restore` does nothing outside of the database and the files with it."""

import copy
import io
import json
import os
import re
import shutil
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cli import terminal
from cli.commands import backup, dump
from cli.commands.backup import DESCRIPTION, FILES
from cli.commands.stored_data import Installation
from cli.database import postgres_binaries
from cli.database.postgres import Cluster
from cli.errors import CliError
from tests.chaos.system import reachable_directory
from tests.support.commands import read_sentences, todo

pytestmark = pytest.mark.long(seconds=60)

Content = dict[str, bytes]
# `{trace}` is a file that must not come into being.
STATEMENTS = {
    "program": "COPY public.tasks FROM PROGRAM 'touch {trace}'; ",
    "program of the login before": "RESET ROLE; RESET SESSION AUTHORIZATION; "
    "COPY public.tasks FROM PROGRAM 'touch {trace}'; ",
    "file": "COPY public.alembic_version TO '{trace}'; ",
    "command of psql": "\\! touch {trace}\n",
    "command of psql after a statement": "SELECT 1 \\! touch {trace}\n",
    "program for a result": "SELECT 1 \\g |touch {trace}\n",
    "end of the restriction": "\\unrestrict key\n\\! touch {trace}\n",
    "setting": "ALTER SYSTEM SET archive_command = 'touch {trace}'; ",
    "function in C": "CREATE FUNCTION public.evil(text) RETURNS int LANGUAGE c AS 'libc.so.6', 'system'; ",
    "function of the superuser": "CREATE FUNCTION public.evil() RETURNS void LANGUAGE sql SECURITY DEFINER AS ''; "
    "ALTER FUNCTION public.evil() OWNER TO app; ",
    "event trigger": "CREATE FUNCTION public.evil() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'; "
    "CREATE EVENT TRIGGER evil ON ddl_command_end EXECUTE FUNCTION public.evil(); ",
    "extension": "CREATE EXTENSION file_fdw; ",
    "role": "CREATE ROLE evil SUPERUSER; ",
    "membership": "GRANT pg_execute_server_program TO todo_owner; ",
}

AFTER_THE_TRANSACTION = (
    "COMMIT; COPY pg_catalog.pg_class TO PROGRAM 'touch {trace}'; ",
    "COMMIT; ALTER SYSTEM SET archive_command = 'touch {trace}'; ",
)


@dataclass
class Usage:
    free: int


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with reachable_directory() as directory:
        data_dir = directory / "data"
        done = todo("migrate", "--data-dir", str(data_dir))
        assert done.returncode == 0, done.stderr
        with Cluster.start(data_dir) as cluster:
            yield cluster


@pytest.fixture(scope="module")
def original(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Content:
    """The members of a backup of one task."""
    directory = tmp_path_factory.mktemp("original")
    (directory / "todo.txt").write_text("milk")
    for command in (("import", str(directory / "todo.txt"), "--user=local"), ("backup", str(directory / "backup"))):
        done = todo(*command, "--data-dir", str(cluster.data_dir))
        assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(directory / "backup") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def trace() -> Iterator[Path]:
    """A file in a directory in which everybody could create it."""
    with reachable_directory() as directory:
        directory.chmod(0o777)
        yield directory / "trace"


@pytest.fixture
def restore(cluster: Cluster, tmp_path: Path) -> Callable[..., str]:
    """Restores such members and returns the message; what is stored must be as before."""

    def run(content: Content) -> str:
        before = read_stored(cluster)
        write(tmp_path / "hostile", content)
        done = todo("restore", str(tmp_path / "hostile"), "--replace", "--data-dir", str(cluster.data_dir))
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        assert len(read_sentences(done.stderr)) == 1, done.stderr
        assert "Nothing was changed." in done.stderr
        assert read_stored(cluster) == before
        return done.stderr

    return run


def write(file: Path, content: Content, compression: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, text in content.items():
            archive.writestr(name, text)


def read_stored(cluster: Cluster) -> Any:
    """Tables, functions, extensions, roles and settings, and who was the first to see the tasks."""
    with psycopg.connect(cluster.admin_url) as connection:
        return [
            connection.execute(query).fetchall()
            for query in (
                "SELECT oid, relname, relowner FROM pg_class ORDER BY oid",
                "SELECT oid, proname, proowner, prosecdef FROM pg_proc ORDER BY oid",
                "SELECT extname FROM pg_extension ORDER BY oid",
                "SELECT rolname, rolsuper, rolconfig FROM pg_roles ORDER BY oid",
                "SELECT roleid, member FROM pg_auth_members ORDER BY 1, 2",
                "SELECT setdatabase, setrole, setconfig FROM pg_db_role_setting ORDER BY 1, 2",
                "SELECT name, setting FROM pg_file_settings ORDER BY seqno",
                "SELECT user_id, id, title FROM tasks ORDER BY 1, 2",
            )
        ]


def with_statement(content: Content, statement: str) -> Content:
    """Puts the statement in the place of one that creates a function: a dump has them as they are."""
    command = [postgres_binaries.find().directory / "pg_restore", "--format=custom", "--file=-"]
    text = subprocess.run(command, input=content[dump.MEMBER], capture_output=True, check=True).stdout
    found = re.search(rb"CREATE FUNCTION public\.count_request\(.*? AS \$\$.*?\$\$;\n", text, re.DOTALL)
    assert found
    assert content[dump.MEMBER].count(found[0]) == 1
    fitting = statement.encode().ljust(len(found[0]))
    return {**content, dump.MEMBER: content[dump.MEMBER].replace(found[0], fitting)}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements(original: Content, restore: Callable[..., str], trace: Path, name: str) -> None:
    statement = STATEMENTS[name].format(trace=trace)
    message = restore(with_statement(original, statement))
    assert ("contains commands of psql" if "\\" in statement else "PostgreSQL says: ") in message
    assert not trace.exists()


@pytest.mark.parametrize("statement", AFTER_THE_TRANSACTION)
def test_statements_after_the_transaction(
    cluster: Cluster, original: Content, tmp_path: Path, trace: Path, statement: str
) -> None:
    """They may replace the database, as any backup does, and no more."""
    for name, content in (
        ("hostile", with_statement(original, statement.format(trace=trace))),
        ("original", original),
    ):
        write(tmp_path / name, content)
        done = todo("restore", str(tmp_path / name), "--replace", "--data-dir", str(cluster.data_dir))
        assert done.returncode == (1 if name == "hostile" else 0), done.stderr
    assert not trace.exists()
    with psycopg.connect(cluster.admin_url) as connection:
        assert connection.execute(
            "SELECT count(*) FROM pg_file_settings WHERE name = 'archive_command'"
        ).fetchone() == (0,)


@pytest.mark.parametrize("layout", ["plain", "tar"])
def test_other_formats_of_dumps(
    cluster: Cluster, original: Content, restore: Callable[..., str], trace: Path, layout: str
) -> None:
    program = postgres_binaries.find().directory / "pg_dump"
    done = subprocess.run([program, f"--format={layout}", cluster.admin_url], capture_output=True, check=True)
    text = f"\\! touch {trace}\n".encode() if layout == "plain" else b""
    assert "The dump of the backup cannot be read" in restore({**original, dump.MEMBER: text + done.stdout})
    assert not trace.exists()


def test_login_that_may_do_more(cluster: Cluster, original: Content, tmp_path: Path) -> None:
    write(tmp_path / "backup", original)
    with psycopg.connect(cluster.admin_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE writer LOGIN IN ROLE pg_write_server_files")
        connection.execute("GRANT CONNECT ON DATABASE todo TO writer")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO writer")
        for login in ("app", "writer"):
            url = cluster.admin_url.replace("app@", f"{login}@")
            settings = {"MIGRATION_DATABASE_URL": url, "WORKSPACE_DIR": str(tmp_path)}
            done = todo("restore", str(tmp_path / "backup"), "--replace", **settings)
            assert (done.returncode, "the login todo_owner" in done.stderr) == (1, True), done.stderr
        connection.execute("DROP OWNED BY writer; DROP ROLE writer")


def test_programs_without_restricted_mode(cluster: Cluster, original: Content, tmp_path: Path) -> None:
    """Their psql would obey commands in a dump."""
    write(tmp_path / "backup", original)
    (programs := tmp_path / "bin").mkdir()
    (programs / "psql").symlink_to(postgres_binaries.find().directory / "psql")
    (programs / "pg_restore").write_text("""#!/bin/sh
        case "$*" in *--restrict-key=*) echo "pg_restore: unrecognized option '--restrict-key'" >&2; exit 1; esac
        """)
    (programs / "pg_restore").chmod(0o755)
    before = read_stored(cluster)
    settings = {"MIGRATION_DATABASE_URL": cluster.owner_url, "WORKSPACE_DIR": str(tmp_path), "PG_BIN": str(programs)}
    done = todo("restore", str(tmp_path / "backup"), "--replace", **settings)
    assert (done.returncode, "programs are too old" in done.stderr) == (1, True), done.stderr
    assert read_stored(cluster) == before


def test_descriptions(original: Content, restore: Callable[..., str], trace: Path) -> None:
    said = json.loads(original[DESCRIPTION])
    descriptions: list[Any] = [
        [],
        {},
        {**said, "revision": 26},
        {**said, "postgres": "18"},
        {**said, "created_at": "\x1b[2J"},
        {**said, "rows": []},
        {**said, "rows": {"public.tasks": "1"}},
        {**said, "rows": {f"public.tasks\n\\! touch {trace}\n": 1}},
        {**said, "rows": {"public.tasks": 1} | {f"public.t{n}": n for n in range(100_000)}},
    ]
    for description in descriptions:
        assert "damaged" in restore({**original, DESCRIPTION: json.dumps(description).encode()})
    assert not trace.exists()


def test_fewer_rows_than_are_named(original: Content, restore: Callable[..., str]) -> None:
    said = json.loads(original[DESCRIPTION])
    said["rows"]["public.tasks"] += 1
    assert "its 2 rows of public.tasks" in restore({**original, DESCRIPTION: json.dumps(said).encode()})


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions(cluster: Cluster, original: Content, tmp_path: Path, compression: int) -> None:
    write(tmp_path / "hostile", original, compression)
    done = todo("restore", str(tmp_path / "hostile"), "--replace", "--data-dir", str(cluster.data_dir))
    assert (done.returncode, "damaged" in done.stderr) == (1, True), done.stderr


def entry(name: str, kind: bytes = tarfile.REGTYPE, **values: Any) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.mode = kind, 0o777
    for key, value in values.items():
        setattr(member, key, value)
    return member


FOLDER = [entry("u", tarfile.DIRTYPE), entry("u/c", tarfile.DIRTYPE)]


@pytest.mark.parametrize(
    "members",
    [
        [entry("../trace")],
        [entry("{trace}")],
        [*FOLDER, entry("u/c/a", tarfile.DIRTYPE), entry("u/c/a/../../../../trace")],
        [*FOLDER, entry("u/c/a", tarfile.LNKTYPE, linkname="{trace}")],
        [*FOLDER, entry("u/c/a", tarfile.CHRTYPE, devmajor=1, devminor=3)],
        [*FOLDER, entry("u/c/a", tarfile.BLKTYPE, devmajor=8)],
        [*FOLDER, entry("u/c/a", tarfile.FIFOTYPE)],
        [*FOLDER, entry("u/c/a", tarfile.SYMTYPE, linkname="{directory}"), entry("u/c/a/trace")],
        # Nothing is created for the first one, and its mode would be that of what the link names.
        [
            *FOLDER,
            entry("u/c/a", tarfile.LNKTYPE, linkname="b"),
            entry("u/c/a", tarfile.SYMTYPE, linkname="{directory}/victim"),
        ],
        [*FOLDER, entry("u/c/a", tarfile.FIFOTYPE), entry("u/c/a", tarfile.SYMTYPE, linkname="{directory}/victim")],
        [*FOLDER, entry("u/c/a", pax_headers={"mtime": "inf"})],
        [*FOLDER, entry("u/c/" + "a" * 300)],
        # The workspace deletes what is in the first two, and looks for folders in the others.
        [entry(".incoming", tarfile.SYMTYPE, linkname="{directory}")],
        [entry(".answers", tarfile.SYMTYPE, linkname="{directory}")],
        [entry(".incoming", tarfile.DIRTYPE)],
        [entry("./.removed", tarfile.DIRTYPE)],
        [entry("u", tarfile.SYMTYPE, linkname="{directory}")],
        [entry("u", tarfile.DIRTYPE), entry("u/c", tarfile.SYMTYPE, linkname="{directory}")],
        [
            entry(".uploads", tarfile.DIRTYPE),
            entry(".uploads/u", tarfile.DIRTYPE),
            entry(".uploads/u/c", tarfile.DIRTYPE),
            entry(".uploads/u/c/a.json", tarfile.SYMTYPE, linkname="{directory}/victim"),
        ],
        [entry(".answers")],
    ],
    ids=lambda members: "+".join(f"{member.name[:20]}({member.type.decode()})" for member in members),
)
def test_files(original: Content, restore: Callable[..., str], trace: Path, members: list[tarfile.TarInfo]) -> None:
    (victim := trace.parent / "victim").touch(mode=0o600)
    os.chown(victim, 61_003 if os.getuid() == 0 else -1, -1)  # it belongs to the account that unpacks
    with tarfile.open(fileobj=(content := io.BytesIO()), mode="w") as archive:
        for member in map(copy.copy, members):
            for key in ("name", "linkname"):
                text = getattr(member, key).format(trace=trace, directory=trace.parent)
                setattr(member, key, text)
            archive.addfile(member)
    restore({**original, FILES: content.getvalue()})
    assert not trace.exists()
    assert stat.S_IMODE(victim.stat().st_mode) == 0o600


def test_file_with_a_hole(original: Content, restore: Callable[..., str], tmp_path: Path) -> None:
    """Of a terabyte, in a few bytes."""
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(1024**4)
    command = ["tar", "--create", "--sparse", "--format=gnu", "--directory", str(tmp_path), "hole"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert "neither a file" in restore({**original, FILES: done.stdout})


def test_mode_of_files(cluster: Cluster, original: Content, tmp_path: Path) -> None:
    with tarfile.open(fileobj=(content := io.BytesIO()), mode="w") as archive:
        for name in ("0" * 32, "0" * 32 + "/cnv_1"):
            archive.addfile(entry(name, tarfile.DIRTYPE))
        archive.addfile(entry(f"{name}/a", mode=0o6755))
    write(tmp_path / "backup", {**original, FILES: content.getvalue()})
    done = todo("restore", str(tmp_path / "backup"), "--replace", "--data-dir", str(cluster.data_dir))
    assert done.returncode == 0, done.stderr
    [path] = (cluster.data_dir / "workspaces").glob("*/*/a")
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_more_than_fits(cluster: Cluster, original: Content, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files have 10,240 bytes, the statements of the dump more than 30,000."""
    write(tmp_path / "backup", original)
    before = read_stored(cluster)
    programs = postgres_binaries.find().directory
    installation = Installation((), cluster.owner_url, ("false",), os.environ, programs, tmp_path, tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(free=10_000))
    with zipfile.ZipFile(tmp_path / "backup") as archive, terminal.Progress() as progress:
        with pytest.raises(CliError, match="files of the backup need"):
            backup.unpack_files(archive, installation, progress, replace=True)
        with pytest.raises(CliError, match="database of the backup needs more"):
            dump.replace_database(archive, installation, {}, progress)
    assert read_stored(cluster) == before
