"""How much is rendered for the readers of a run with many tool calls."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from backend.cards import render
from backend.cards.service import CardService, CardStream
from backend.cards.widget import Card, Json
from backend.conversations.records import Entry, Event, ToolCall

AT = datetime(2026, 11, 28, tzinfo=UTC)


def add_tasks(count: int) -> list[Event]:
    """Returns the events of a run that has added tasks one by one."""
    events: list[Event] = []
    for number in range(1, count + 1):
        details = {"id": number, "title": f"task {number}", "status": "pending", "also": []}
        call = ToolCall(
            "run_1", f"call_{number}", number, "add_task", "{}", "running", "key", seq=number, created_at=AT
        )
        done = replace(call, state="done", details=details, result_seq=number)
        events += [Event("call_requested", call, number), Event("call_completed", done, number)]
    changes = [{"task_id": number, "title": f"task {number}", "change": "added"} for number in range(1, count + 1)]
    total = Entry("run_1", "ent_1", "changes", details={"changes": changes}, last_seq=count + 1, created_at=AT)
    return [*events, Event("entry_completed", total, count + 1), Event("run_ended", number=count + 2)]


async def test_each_of_many_calls_renders_its_own_card(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[str] = []
    render_task_card = render.render_task_card

    def count(*args: Any, **options: Any) -> Json:
        rendered.append("card")
        return render_task_card(*args, **options)

    monkeypatch.setattr(render, "render_task_card", count)
    counts: list[int] = []
    for calls in (20, 40):
        rendered.clear()
        service = CardService(cast(Any, None), cast(Any, None), lambda: AT, "UTC")
        stream = CardStream(service, "user", "thr_1")
        latest = dict[str, Card]()
        for event in add_tasks(calls):
            latest |= {card.id: card for card, _ in await stream.apply_event(event)}
        assert len(latest) == calls + 1
        assert [card.id for card in latest.values() if card.offers_undo] == ["wid_0_ent_1"]
        counts.append(len(rendered))
    assert counts[1] < 2.2 * counts[0]
