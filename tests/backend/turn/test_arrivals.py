"""Messages that arrive around the end of an answer, at random: each is read once, or it is told that it is not."""

import asyncio
import itertools
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.backend.completions import check_pairs
from tests.backend.conftest import Backend, Rows
from tests.chatkit_client import Answer, ChatKit, text_of, user_input
from tests.scripted_model import ScriptedModel

AT_ONCE = 4  # conversations
FIRST = ("hello, for the {}th time", "add thing {}", "add thing {} and other {}")


@dataclass
class Told:
    """What became of the messages of one conversation, by their text."""

    thread: str = ""
    waits: dict[str, str] = field(default_factory=dict[str, str])  # ids
    answered: set[str] = field(default_factory=set[str])
    dropped: set[str] = field(default_factory=set[str])  # ids


async def arrive(chat: ChatKit, told: Told, text: str, mode: str, chance: random.Random) -> None:
    metadata = {"while_running": mode}
    arrived: Answer | None = None
    while arrived is None or (arrived.error and "still answering" in arrived.error["message"]):
        arrived = await chat.stream(
            "threads.add_user_message", thread_id=told.thread, input=user_input(text), metadata=metadata
        )
    assert arrived.error is None
    if arrived.events[0]["type"] != "client_effect":
        told.answered.add(text)
        return
    data = arrived.events[0]["data"]
    told.waits[text] = data["input_id"]
    told.dropped.update(data["overtaken"])
    if chance.random() < 0.2:
        kind = chance.choice(("drop_input", "send_input_now"))
        action = {"type": kind, "payload": {"input_id": data["input_id"]}}
        *_, event = (await chat.stream("threads.custom_action", thread_id=told.thread, action=action)).events
        if event.get("name") == "todo.dropped":
            told.dropped.add(data["input_id"])


async def converse(chats: list[ChatKit], number: int, chance: random.Random) -> Told:
    """One answer, and messages around its end: some from its beginning on, most right at its last words."""
    told, arrivals = Told(), list[asyncio.Task[None]]()

    async def later(after: float, place: int) -> None:
        await asyncio.sleep(after)
        mode = chance.choice(("steer", "follow_up"))
        await arrive(chance.choice(chats), told, f"message {number}.{place}", mode, chance)

    def arriving(longest: float) -> None:
        for _ in range(chance.randint(1, 3)):
            arrivals.append(asyncio.create_task(later(chance.uniform(0, longest), len(arrivals))))

    first = user_input(chance.choice(FIRST).format(number, number))
    async with chance.choice(chats).open("threads.create", input=first) as events:
        async for event in events:
            if event["type"] == "thread.created":
                told.thread = event["thread"]["id"]
                if chance.random() < 0.3:
                    arriving(0.3)
            if event.get("update", {}).get("type") == "assistant_message.content_part.done" and len(arrivals) < 6:
                arriving(chance.choice((0.01, 0.1)))
    await asyncio.gather(*arrivals)
    return told


@pytest.mark.long(seconds=15)
@pytest.mark.parametrize("seed", range(2))
async def test_a_message_around_the_end_of_an_answer_is_read_once_or_said_to_be_dropped(
    backend: Backend, model: ScriptedModel, rows: Rows, seed: int, often: int
) -> None:
    chance, told = random.Random(seed), list[Told]()
    async with backend(heartbeat_seconds=5.0) as one, backend(heartbeat_seconds=5.0) as two:
        while sum(len(each.waits) + len(each.answered) for each in told) < often // 2:
            numbers = range(len(told), len(told) + AT_ONCE)
            told += await asyncio.gather(*(converse([one, two], n, chance) for n in numbers))
        for each in told:
            while rows("SELECT 1 FROM runs WHERE conversation_id = %s AND status = 'running'", each.thread):
                await asyncio.sleep(0.01)
        requests = [request["body"]["messages"] for request in await model.finished_requests()]
        for each in told:
            await check(one, requests, rows, each)
    assert {row["outcome"] for row in rows("SELECT outcome FROM runs")} == {"completed"}
    assert [each for each in told if each.waits], f"seed {seed}: nothing arrived before the end"
    assert [each for each in told if each.answered], f"seed {seed}: nothing arrived after it"


async def check(chat: ChatKit, requests: list[list[dict[str, Any]]], rows: Rows, told: Told) -> None:
    inputs = rows("SELECT id, taken_at, dropped_at FROM run_inputs WHERE conversation_id = %s", told.thread)
    assert {row["id"] for row in inputs} == {*told.waits.values()}
    taken = {row["id"] for row in inputs if row["taken_at"]}
    assert {row["id"] for row in inputs if row["dropped_at"]} == told.dropped
    assert not taken & told.dropped
    assert taken | told.dropped == {*told.waits.values()}, "nothing is left, as no answer failed"
    shown = [item for item in await chat.items(told.thread) if item["type"] == "user_message"]
    texts = [text_of(item) for item in shown][1:]
    read = {text for text, waits in told.waits.items() if waits in taken}
    assert sorted(texts) == sorted(told.answered | read), "each is a row, once"
    assert {item["id"] for item in shown if text_of(item) in read} == taken, "the one that was told"
    first = text_of(shown[0])
    ours = [messages for messages in requests if any(message["content"] == first for message in messages)]
    for before, after in itertools.pairwise(ours):
        assert after[: len(before)] == before, "each request is the beginning of the next"
    check_pairs(ours[-1])
    said = [message["content"] for message in ours[-1] if message["role"] == "user"]
    assert [text for text in said if text.startswith("message ")] == texts, "in the order in which they are shown"
