import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import find_memory
from workspace.files.folder import Folder, Store
from workspace.files.quota import Quota


@pytest.fixture
def store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory(prefix="todo-files-", dir=find_memory()) as root:
        made = Store(Path(root), Quota(bytes=200_000_000, files=20_000))
        made.prepare()
        yield made


@pytest.fixture
def folder(store: Store) -> Iterator[Folder]:
    with store.open_folder("alice", "cnv_1") as opened:
        yield opened
    assert not list((store.root / ".incoming").iterdir()), "what was half written stays nowhere"
