"""Answers that are stopped, or end before their time: what was shown is kept, and the conversation says so."""

import asyncio
import json
import re
import socket
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from tests.chatkit_client import text_of
from tests.scripted_model import ScriptedModel
from tests.support.answers import HANGS, list_texts, start_run
from tests.support.model_requests import requests_to
from tests.support.script import call, calls, says
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.chatkit import request, user_input
from todo_client.connection import ApiError

CHAT = "groceries"
WORDS = "one two three four five six seven eight nine ten eleven twelve"


async def ending(user: User, thread: str) -> list[str] | None:
    """What the user can do about the conversation's last item, if that says how an answer ended."""
    return (await user.chatkit.items(thread))[-1].get("actions")


async def ended(user: User, stored: Stored) -> str:
    """The conversation of the user's newest run, as soon as that has ended."""
    await until(lambda: stored.runs(user.name) and not {"running", "waiting"} & {*stored.run_statuses(user.name)})
    return stored.conversations(user.name)[-1]


async def leave_in_chatkit(user: User, text: str, *, at: str) -> str:
    """What was shown when the stream was closed, at the first event of this kind; that stops the answer."""
    shown = ""
    async with user.chatkit.open("threads.create", input=user_input(text)) as events:
        async for event in events:
            if event["type"] == "thread.item.updated" and "delta" in event["update"]:
                shown += event["update"]["delta"]
            if event["type"] == at and (at != "thread.item.updated" or shown):
                break
    return shown


async def test_closing_the_stream_stops_the_answer(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(HANGS, says("Going on."))
    shown = await leave_in_chatkit(user, "count", at="thread.item.updated")
    thread = await ended(user, stored)
    assert stored.run_statuses(user.name) == ["cancelled"]
    assert [request["outcome"] for request in await model.finished_requests()] == ["client_closed"]
    kept = [text_of(item) for item in await user.chatkit.items(thread) if item["type"] == "assistant_message"]
    assert len(kept) == 1
    assert kept[0].startswith(shown)
    assert await ending(user, thread) == ["continue"]
    await user.chatkit.say("go on", thread)
    messages = (await requests_to(model))[-1]["messages"]
    assert kept[0] in [message["content"] for message in messages]
    assert await ending(user, thread) is None


async def test_stop_lets_a_running_task_tool_finish(user: User, model: ScriptedModel, stored: Stored) -> None:
    """Calls that have not begun are not made, and the model is asked nothing more."""
    await model.script(calls(call("add_task", title="milk"), call("add_task", title="bread")), says("Never."))
    with stored.lock_table("tasks"):
        run = await start_run(user, CHAT, "add both", until="tool_call")
        await until(stored.has_waiting_statements)
        await user.runs.cancel(CHAT, run)
    thread = await ended(user, stored)
    assert stored.titles(user.name) == ["milk"]
    assert stored.run_statuses(user.name) == ["cancelled"]
    assert len(await model.requests()) == 1
    assert await ending(user, thread) == ["continue"]
    await model.reset()
    await model.script(says("Hello."))
    await user.runs.say(CHAT, "hello")
    outputs = [one["content"] for one in (await requests_to(model))[-1]["messages"] if one["role"] == "tool"]
    assert len(outputs) == 2, "each call has an output"
    assert "milk" in outputs[0]


@pytest.mark.long
async def test_stop_around_the_end_of_a_tool(user: User, model: ScriptedModel, stored: Stored) -> None:
    """Whenever it comes, no call begins after its response, and whatever was done is recorded."""
    for number in range(8):
        chat, titles = f"chat-{number}", [f"task {number}.{part}" for part in range(4)]
        await model.reset()
        await model.script(calls(*(call("add_task", title=title) for title in titles)), says("Added."))
        run = await start_run(user, chat, "add all", until="tool_call")
        await asyncio.sleep(number * 0.01)
        with suppress(ApiError):
            await user.runs.cancel(chat, run)
        before = len(stored.titles(user.name))
        events = await user.runs.read(chat, run)
        assert len(stored.titles(user.name)) <= before + 1
        added = [title for title in stored.titles(user.name) if title in titles]
        results = [event.data["tool_output"] for event in events if event.name == "tool_result"]
        assert len(added) == len(results)
        assert all(title in output for title, output in zip(added, results, strict=True))


@pytest.mark.parametrize("share", [0, 0.1, 0.3, 0.55, 1])
async def test_connection_that_breaks_at_any_byte(
    share: float, user: User, model: ScriptedModel, stored: Stored
) -> None:
    """A raw socket that is reset with unread data in it: the answer stops, and what was shown is stored."""
    await model.script({"text": WORDS, "chunk_chars": 3, "token_delay": 0.004})
    received = await read_bytes(user, stored, count=int(share * 6_500))
    await ended(user, stored)
    shown = "".join(re.findall(r'"delta":"([^"]*)"', received.decode(errors="ignore")))
    for conversation in stored.conversations(user.name):
        said, *answer = await list_texts(user, conversation)
        assert said == "count"
        assert "".join(answer).startswith(shown)
        assert WORDS.startswith("".join(answer))
    assert stored.conversations(user.name) or b'"user_message"' not in received


async def test_connection_that_breaks_before_the_run_starts(
    stack: Stack, user: User, model: ScriptedModel, stored: Stored
) -> None:
    """The run starts all the same, and stops."""
    await model.script(HANGS)
    with stored.lock_table("conversations"):
        _, writer = await send_message(user)
        await until(stored.has_waiting_statements)
        served = stack.backends[0].find_socket(writer.get_extra_info("sockname")[1])
        assert stack.backends[0].has_open(served)
        reset(writer)
        await until(lambda: not stack.backends[0].has_open(served))  # the server knows
    thread = await ended(user, stored)
    assert stored.run_statuses(user.name) == ["cancelled"]
    assert await list_texts(user, thread) == ["count"]


async def read_bytes(user: User, stored: Stored, *, count: int) -> bytes:
    """The first bytes of an answer; then the connection is reset, when the run has started."""
    reader, writer = await send_message(user)
    received = b""
    while len(received) < count and (more := await reader.read(count - len(received))):
        received += more
    await until(lambda: stored.runs(user.name))
    reset(writer)
    return received


async def send_message(user: User) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    url = urlsplit(user.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    body = json.dumps(request("threads.create", input=user_input("count"))).encode()
    head = (
        "POST /chatkit HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {user.token}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    return reader, writer


def reset(writer: asyncio.StreamWriter) -> None:
    linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")  # reset instead of an orderly end
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.close()


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_answer_cut_short_by_the_provider(reason: str, user: User, model: ScriptedModel) -> None:
    await model.script({"text": "One, two, thr", "finish_reason": reason})
    answer = await user.chatkit.say("count")
    [notice] = answer.of("notice")
    assert answer.text == "One, two, thr"
    assert (await user.chatkit.items(answer.thread_id))[-1]["task"]["title"] == notice["message"]
