"""What the screens of `./todo chat` show of an answer: a text that is withdrawn, progress, what was changed."""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO, cast

import pytest

from cli.chat.answer import Answer
from cli.chat.approvals import PendingApprovals
from cli.chat.connection import Connection
from cli.chat.live_screen import LiveScreen
from cli.chat.screen import PlainScreen, Screen
from common.changes import CORRECTION
from todo_client.connection import ApiError
from todo_client.reading import Reading
from todo_client.runs import RunEvent

PLACES = [{"task_id": 7, "title": "milk", "change": "added"}]


async def show(screen: Screen, *claim: str) -> None:
    """Shows an answer whose first text, in these pieces, is withdrawn."""
    await follow(
        screen,
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
    )


async def follow(screen: Screen, *events: tuple[str, dict[str, Any]]) -> list[str]:
    """Shows events; returns the status that stands on the screen after each of them."""
    statuses: list[str] = []

    async def read(_: Reading) -> AsyncIterator[RunEvent]:
        for name, data in (("interaction_started", {"interaction_id": "run_1", "chat_id": "groceries"}), *events):
            yield RunEvent(None, name, data)
            statuses.append(screen.describe_status().split(" · ")[-1])

    async def get_interaction(*_: Any, **__: Any) -> None:
        raise ApiError(404, "not needed")

    connection = cast(Connection, SimpleNamespace(events=read, runs=SimpleNamespace(get_interaction=get_interaction)))
    await Answer(screen, connection, Reading("groceries", "run_1"), PendingApprovals(screen, connection)).follow()
    return statuses


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


def _numbered(template: str, *, begin: str = "", chars: int = 30_000) -> str:
    lines = list[str]()
    while sum(map(len, lines)) < chars:
        lines.append(template.format(len(lines)))
    return begin + "".join(lines)


@pytest.mark.long
@pytest.mark.parametrize("chunk_chars", [30_000, 40])
async def test_long_text_is_printed_in_parts(capsys: pytest.CaptureFixture[str], chunk_chars: int) -> None:
    """A text that is one block, which was rendered again with each line."""
    texts = {
        "lines": _numbered("line {}\n"),
        "list": _numbered("- entry {}\n"),
        "code": _numbered("x = {}\n", begin="```python\n") + "```\n",
        "table": _numbered("|r{}|\n", begin="|a|\n|-|\n"),
        "one line": _numbered("word{} "),
        "signs": "![" * 15_000,
    }
    for name, text in texts.items():
        pieces = [text[start : start + chunk_chars] for start in range(0, len(text), chunk_chars)]
        held, ended = list[float](), asyncio.Event()

        async def measure(held: list[float] = held, ended: asyncio.Event = ended) -> None:
            while not ended.is_set():
                begun = time.process_time()
                await asyncio.sleep(0)
                held.append(time.process_time() - begun)

        measuring = asyncio.create_task(measure())
        await follow(
            PlainScreen(),
            *(("answer_delta", {"content": piece}) for piece in pieces),
            ("answer", {"content": text}),
            ("interaction_complete", {"status": "COMPLETED", "changes": []}),
        )
        ended.set()
        await measuring
        printed = capsys.readouterr().out
        assert max(held) < 0.5, name  # of the processor
        words = re.findall(r"\d+", text) or ["!["]
        assert set(re.findall(r"\d+", printed) or [printed.strip()[:2]]) == set(words), name


async def test_links_show_where_they_lead(capsys: pytest.CaptureFixture[str]) -> None:
    links = {
        "[https://bank.example](https://evil.example/x)": "https://bank.example (https://evil.example/x)",
        "[a](https://bank.example@evil.example)": "a (https://bank.example@evil.example)",
        "[pay\u202epal](https://\u0430.example)": "paypal (https://xn--80a.example)",
        "[x](javascript:run)": "[x](javascript:run)",
    }
    await follow(
        PlainScreen(),
        ("answer_delta", {"content": "\n\n".join(links)}),
        ("interaction_complete", {"status": "COMPLETED", "changes": []}),
    )
    assert capsys.readouterr().out.strip().split("\n\n") == [*links.values()]


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    controlling, controlled = os.openpty()
    with os.fdopen(controlling), os.fdopen(controlled) as opened:
        yield opened


async def test_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, terminal: TextIO
) -> None:
    """Where a status line is shown, it is there until the next event; elsewhere it is a line beside the answer."""
    waiting = [
        ("turn_start", {}),
        ("progress", {"text": "The model is loading…"}),
        ("answer_delta", {"content": "Hi."}),
    ]
    complete = [("answer", {"content": "Hi."}), ("interaction_complete", {"status": "COMPLETED", "changes": []})]
    await follow(Screen(), *waiting, *complete)
    assert capsys.readouterr() == ("Hi.\n", "The model is loading…\n")
    await follow(PlainScreen(), *waiting, *complete)
    assert capsys.readouterr().out.split("\n\n") == ["The model is loading…", "Hi.\n"]
    monkeypatch.setattr("sys.stdin", terminal)
    statuses = await follow(LiveScreen(tmp_path / "history", colour=False), *waiting)
    assert statuses[1:] == ["thinking", "The model is loading…", "answering"]
    assert "loading" not in capsys.readouterr().out
