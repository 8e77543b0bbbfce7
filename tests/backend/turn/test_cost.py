"""What a turn costs: how often it reads its history, and what it used."""

from typing import Any

import pytest

from backend.conversation import reading
from service.database import Pipeline, Statement
from tests.backend.conftest import Backend, Rows
from tests.backend.consent import call, calls
from tests.backend.slow_turns import SLOW, read_text
from tests.chatkit_client import ChatKit, user_input
from tests.scripted_model import ScriptedModel

READING = (reading._NEWEST, reading._NEWEST_AS_TURN)


class Sent(list[tuple[Statement, Any]]):
    """The statements that were sent in pipelines, and their results."""

    @property
    def rows_read(self) -> list[int]:
        return [result.rowcount for statement, result in self if statement in READING]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    seen = Sent()
    send = Pipeline.send

    async def seeing(self: Pipeline, statement: Statement, **parameters: Any) -> Any:
        result = await send(self, statement, **parameters)
        seen.append((statement, result))
        return result

    monkeypatch.setattr(Pipeline, "send", seeing)
    return seen


async def test_a_turn_reads_its_history_once(chat: ChatKit, sent: Sent) -> None:
    thread = (await chat.say("add milk today and bread")).thread_id
    assert sent.rows_read == [2], "the message, and the note of its time"
    sent.clear()
    await chat.say("show all", thread)
    assert sent.rows_read == [8], "note and message, the calls, two outputs, the answer, and note and new message"
    sent.clear()
    asked = (await chat.items(thread))[0]["id"]
    await chat.stream("threads.retry_after_item", thread_id=thread, item_id=asked)
    assert len(sent.rows_read) == 1


async def test_a_refused_message_reads_no_history(chat: ChatKit, model: ScriptedModel, sent: Sent) -> None:
    await model.script(SLOW)
    async with chat.open("threads.create", input=user_input("count")) as events:
        thread = next(event["thread"]["id"] for event in [await anext(events)])
        await read_text(events, at_least=4)
        sent.clear()
        answer = await chat.say("and this?", thread)
        assert "still answering" in (answer.error or {})["message"]
        assert set(sent.rows_read) == {0}


async def test_a_summary_counts_as_used_by_the_turn_that_asked_for_it(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    def used() -> dict[str, int]:
        usages = [row["usage"] for row in rows("SELECT usage FROM runs")]
        return {name: sum(usage[name] for usage in usages) for name in ("requests", "input_tokens", "output_tokens")}

    async with backend(history_tokens=1) as chat:
        thread = (await chat.say("hello")).thread_id
        before = used()
        assert before["requests"] == 1
        await chat.say("hello again", thread)
        await chat.app.state.parts.turns.finish_background_work()  # pyright: ignore[reportAttributeAccessIssue]
    asked = [request for request in await model.finished_requests() if "tools" not in request["body"]]
    after = used()
    assert asked
    assert after["requests"] == 2 + len(asked)
    assert after["input_tokens"] > before["input_tokens"] * 2


async def test_what_each_request_took_stands_on_the_row_that_came_of_it(
    chat: ChatKit, model: ScriptedModel, rows: Rows, sent: Sent
) -> None:
    thought = {"completion_tokens_details": {"reasoning_tokens": 7}}
    usage = [{"prompt_tokens": n, "completion_tokens": n + 1, "total_tokens": 2 * n + 1} | thought for n in (100, 200)]
    step = calls(call("list_tasks"), text="I look.") | {"usage": usage[0], "delay": 0.05}
    await model.script(step, {"reasoning": "Hm.", "text": "Nothing there.", "usage": usage[1]})
    await chat.say("what is there?")
    found = rows("SELECT kind, usage FROM messages WHERE usage IS NOT NULL ORDER BY seq")
    seconds = [row["usage"].pop("seconds") for row in found]
    assert 0.05 <= seconds[0] < 5
    assert found == [
        {"kind": kind, "usage": {"model": "offline-rules", "input_tokens": n, "output_tokens": n + 1} | told}
        for kind, n, told in (
            ("tool_calls", 100, {"reasoning_tokens": 7}),
            ("assistant_message", 200, {"reasoning_tokens": 7}),
        )
    ]
    [run] = rows("SELECT usage FROM runs")
    assert run["usage"] == {
        "model": "offline-rules",
        **{"requests": 2, "input_tokens": 300, "output_tokens": 302, "reasoning_tokens": 14},
    }
