"""`./todo chat` at the stack whose assistant asks before it deletes a task."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.chatkit_client import ChatKit
from tests.cli.chat.terminal import Terminal
from tests.support.users import User

Start = Callable[..., Terminal]


@pytest.fixture
def stack_name() -> str:
    return "approvals"


@pytest.fixture
def served(user: User) -> ChatKit:
    return user.chatkit


@pytest.fixture
def start(user: User, tmp_path: Path) -> Start:
    """Sits down at a terminal in which it runs, signed in as the user."""

    def started(*arguments: str, environment: dict[str, str] | None = None, **options: Any) -> Terminal:
        signed_in = {"TODO_TOKEN": user.token, **(environment or {})}
        place = ("--url", user.url, "--data-dir", str(tmp_path))
        return Terminal(*place, *arguments, environment=signed_in, **options)

    return started
