"""What `./todo up` keeps in its data directory."""

import errno
import os
from pathlib import Path

import pytest

from cli import data_dir
from cli.database.postgres import Cluster
from cli.errors import CliError
from cli.services import running


@pytest.mark.parametrize("left", [b"", b"0" * 10, b"\0" * 64, b"\xff" * 64])
def test_secret_that_a_power_failure_has_damaged(tmp_path: Path, left: bytes) -> None:
    """With an empty one, the services would not sign their calls."""
    (tmp_path / data_dir.TOKEN_SECRET).write_bytes(left)
    assert data_dir.read_secret(tmp_path, data_dir.TOKEN_SECRET) is None
    created = data_dir.secret(tmp_path, data_dir.TOKEN_SECRET)
    assert len(created) == 64
    assert data_dir.secret(tmp_path, data_dir.TOKEN_SECRET) == created
    assert data_dir.read_secret(tmp_path, data_dir.TOKEN_SECRET) == created
    assert [path.name for path in tmp_path.iterdir()] == [data_dir.TOKEN_SECRET]


def test_full_disk_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", fail)
    with pytest.raises(CliError) as caught, running.claimed(tmp_path):
        pass
    assert str(caught.value) == (
        f"The data directory {tmp_path} cannot be written: No space left on device. "
        "Make space on that disk, and try again."
    )


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("FATAL: could not write: No space left on device", "PostgreSQL did not start: no space is left on the disk"),
        ("", "is empty. Check whether its disk has space"),
    ],
)
def test_full_disk_of_postgres(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, sentence: str) -> None:
    def fail(cluster: Cluster) -> None:
        cluster.log.write_text(log)
        raise cluster.create_error("PostgreSQL did not start")

    monkeypatch.setattr(Cluster, "run", fail)
    data_dir.prepare(tmp_path)
    with pytest.raises(CliError) as caught:
        Cluster.start(tmp_path)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_services_of_another_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`./todo down` alone would stop another installation."""
    monkeypatch.setattr(data_dir, "default", lambda: tmp_path / "default")
    assert data_dir.get_option(tmp_path / "default") == ""
    assert data_dir.get_option(tmp_path / "a b") == f" --data-dir '{tmp_path}/a b'"
