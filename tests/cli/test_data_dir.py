"""What `./todo up` keeps in its data directory."""

from pathlib import Path

import pytest

from cli import data_dir


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
