"""A text that is withdrawn, and what an answer has changed, on the screens of `./todo chat`."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cli.chat.answer import Answer
from cli.chat.approvals import PendingApprovals
from cli.chat.connection import Connection
from cli.chat.screen import PlainScreen, Screen
from common.changes import CORRECTION
from todo_client.connection import ApiError
from todo_client.reading import Reading
from todo_client.runs import RunEvent

PLACES = [{"task_id": 7, "title": "milk", "change": "added"}]


async def show(screen: Screen, *claim: str) -> None:
    """Shows an answer whose first text, in these pieces, is withdrawn."""
    events = [
        ("interaction_started", {"interaction_id": "run_1", "chat_id": "groceries"}),
        ("turn_start", {}),
        *(("answer_delta", {"content": piece}) for piece in claim),
        ("withdrawn", {}),
        ("turn_end", {}),
        ("turn_start", {}),
        ("answer_delta", {"content": "Not yet."}),
        ("turn_end", {}),
        ("answer", {"type": "ANSWER", "content": "Not yet."}),
        ("notice", {"text": "It says more.", "code": "nothing_changed"}),
        ("interaction_complete", {"status": "COMPLETED", "changes": PLACES, "named": 2}),
    ]

    async def read(_: Reading) -> AsyncIterator[RunEvent]:
        for name, data in events:
            yield RunEvent(None, name, data)

    async def get_interaction(*_: Any, **__: Any) -> None:
        raise ApiError(404, "not needed")

    connection = cast(Connection, SimpleNamespace(events=read, runs=SimpleNamespace(get_interaction=get_interaction)))
    await Answer(screen, connection, Reading("groceries", "run_1"), PendingApprovals(screen, connection)).follow()


AFTER = "Not yet.\n\nIt says more.\n\nAdded 1 · Changed: 1 of the 2 named\n"


async def test_what_was_printed_is_corrected(capsys: pytest.CaptureFixture[str]) -> None:
    await show(Screen(), "I have ", "added milk.")
    assert capsys.readouterr().out == f"I have added milk.\n{CORRECTION}\n\n{AFTER}"
    await show(PlainScreen(), "# Done\n\nI have\n\nadded", " milk.")
    assert capsys.readouterr().out.split() == f"Done {CORRECTION} {AFTER}".split()


async def test_what_was_not_printed_yet_disappears(capsys: pytest.CaptureFixture[str]) -> None:
    await show(PlainScreen(), "I have ", "added milk.")
    assert capsys.readouterr().out == AFTER
    await show(Screen())
    assert capsys.readouterr().out == AFTER
