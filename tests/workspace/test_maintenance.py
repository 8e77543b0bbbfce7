"""A person's files as an archive, and their end."""

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.commands import EXIT_NOTHING_STORED
from tests.conftest import ROOT
from tests.workspace.running import ACCOUNT, directory
from workspace.files import writing
from workspace.files.folder import Store
from workspace.files.quota import Quota

pytestmark = pytest.mark.long


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    variables = {"WORKSPACE_DIR": str(root), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-m", "workspace", *arguments]
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, timeout=240)


@pytest.fixture
def root() -> Iterator[Path]:
    """As the workspace left it: all of it belongs to its account."""
    with directory() as root:
        owner = root.stat().st_uid
        os.chown(root, os.geteuid(), -1)
        store = Store(root, Quota(bytes=1_000_000, files=1_000))
        store.prepare()
        for person, text in (("alice", "hers"), ("bob", "his")):
            with store.open_folder(person, "cnv_1") as folder:
                writing.write_file(folder, "notes/plan.md", text)
                (folder.path / "odd\nname").write_text(text)
                (folder.path / "empty").mkdir()
                (folder.path / "link").symlink_to("/etc/passwd")
                os.mkfifo(folder.path / "pipe")
                for locked in ("odd\nname", "notes", "."):
                    (folder.path / locked).chmod(0)
        with store.open_folder("alice", "cnv_2"):
            pass
        for path in (root, *root.rglob("*"), *root.glob("*/cnv_1/notes/*")):
            os.chown(path, owner, owner if ACCOUNT else -1, follow_symlinks=False)
        yield root


def test_an_archive_has_all_files_of_one_person_and_nothing_that_leads_elsewhere(root: Path) -> None:
    done = run(root, "export", "--user=alice")
    assert (done.returncode, done.stderr) == (0, b"")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        assert [member.name for member in archive] == [
            *("cnv_1", "cnv_1/empty", "cnv_1/notes", "cnv_1/notes/plan.md", "cnv_1/odd\nname", "cnv_2")
        ]
        assert {oct(member.mode & 0o700) for member in archive if member.isdir()} == {"0o700"}
        for name in ("cnv_1/notes/plan.md", "cnv_1/odd\nname"):
            content = archive.extractfile(name)
            assert content
            assert content.read() == b"hers"


def test_an_archive_of_a_deep_folder(root: Path) -> None:
    (folder,) = root.glob("[0-9a-f]*/cnv_2")
    here = os.open(folder, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("d", dir_fd=here)
        os.chown("d", root.stat().st_uid, -1, dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    done = run(root, "export", "--user=alice")
    assert (done.returncode, done.stderr) == (0, b"")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        assert max(member.name.count("/") for member in archive) == 3_000
    assert run(root, "forget", "--user=alice").returncode == 0


def test_a_person_who_is_forgotten_has_no_files_and_others_have_theirs(root: Path) -> None:
    assert run(root, "forget", "--user=alice").stdout == b"Deleted for good: folders 2.\n"
    for command in ("forget", "export"):
        done = run(root, command, "--user=alice")
        assert (done.returncode, done.stdout) == (EXIT_NOTHING_STORED, b"")
        assert done.stderr == b"There is no data of alice. Check the name.\n"
    assert len(list(root.glob("[0-9a-f]*"))) == 1
    assert run(root, "export", "--user=bob").returncode == 0


def test_what_cannot_be_is_one_sentence(root: Path) -> None:
    done = run(Path("here"), "export", "--user=alice")
    assert done.stderr == b"WORKSPACE_DIR must be the full path of a directory, such as /var/lib/workspace.\n"
    assert run(root / "none", "export", "--user=alice").returncode == EXIT_NOTHING_STORED
    unknown = run(root, "unknown").stderr
    assert b"workspace has no command unknown. Use adopt, backup, check, export, forget or restore" in unknown
