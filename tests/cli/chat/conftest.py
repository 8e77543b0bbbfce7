from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.backend.conftest import Backend, backend, mcp_url, model, rows, settings, with_agents, workspace
from tests.chatkit_client import ChatKit
from tests.cli.chat.terminal import Terminal

__all__ = ["backend", "mcp_url", "model", "rows", "settings", "with_agents", "workspace"]

Start = Callable[..., Terminal]


@pytest.fixture
async def served(backend: Backend) -> AsyncIterator[ChatKit]:
    """A backend whose assistant asks before it deletes a task."""
    async with backend(approvals=("delete_task",), llm_models=("large",)) as client:
        yield client


@pytest.fixture
def start(served: ChatKit, tmp_path: Path) -> Start:
    """Sits down at a terminal in which it runs."""

    def started(*arguments: str, **options: Any) -> Terminal:
        return Terminal("--url", served.base_url, "--data-dir", str(tmp_path), *arguments, **options)

    return started
