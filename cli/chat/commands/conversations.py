"""Commands about conversations and their messages."""

from collections.abc import Sequence
from typing import Any

from cli.chat import rendering
from cli.chat.connection import Connection
from cli.chat.session import ChatSession
from cli.terminal import clean


async def list_threads(chat: ChatSession, _: str) -> None:
    chats = await _load_chats(chat)
    if not chats:
        await chat.screen.note("There are no conversations yet.")
        return
    await chat.screen.show(rendering.render_chats(chats, chat.chat_id))


async def open_thread(chat: ChatSession, which: str) -> None:
    chat_id = _find(chat.chats or await _load_chats(chat), which)
    if chat_id is None:
        await chat.screen.fail(f"There is no conversation {which}. See /threads.")
    else:
        await chat.open(chat_id)


async def clear(chat: ChatSession, _: str) -> None:
    chat.clear()
    await chat.screen.note("Your next message starts a new conversation.")


async def show_log(chat: ChatSession, _: str) -> None:
    for line in await chat.connection.runs.get_log(chat.require_chat_id()):
        await chat.screen.show_line(line)


async def compact(chat: ChatSession, _: str) -> None:
    done = await chat.connection.runs.compact(chat.require_chat_id())
    await chat.screen.note(f"{done['status'].capitalize()}: {done['messages']} messages.")


async def retry(chat: ChatSession, _: str) -> None:
    chat.follow(await chat.connection.retry(chat.require_chat_id()))


async def edit(chat: ChatSession, text: str) -> None:
    last = await chat.connection.last(chat.require_chat_id())
    if last is None:
        await chat.screen.fail("There is no message to edit.")
        return
    chat.edit(last["id"], "" if text else clean(last["user_message"] or ""))
    if text:
        await chat.say(text)


async def show_version(chat: ChatSession, number: str) -> None:
    chat_id = chat.require_chat_id()
    last = await chat.connection.last(chat_id)
    versions = last["siblings"] if last is not None else []
    if not (number.isascii() and number.isdigit() and 0 < int(number) <= len(versions)):
        problem = f"Choose a version from 1 to {len(versions)}." if versions else "There is no message yet."
        await chat.screen.fail(problem)
        return
    await chat.connection.runs.branch(chat_id, versions[int(number) - 1])
    await chat.open(chat_id)


async def choose_model(chat: ChatSession, name: str) -> None:
    connection = chat.connection
    models = await list_models(connection)
    if name and name not in models:
        await chat.screen.fail(f"There is no model {name}. Choose one of these: {', '.join(models)}.")
        return
    connection.model = name or connection.model
    if name and (left_out := await connection.check_temperature()):
        await chat.screen.note(left_out)
    chosen = connection.model or models[0]
    await chat.screen.show(*(f"{'●' if one == chosen else ' '} {one}" for one in models))


async def show_agents(chat: ChatSession, _: str) -> None:
    run = chat.answer.reading.run_id if chat.answer is not None else chat.last_run
    steps = await chat.connection.steps(chat.chat_id, run) if chat.chat_id and run else []
    if steps:
        await chat.screen.show(*map(rendering.render_step, steps))
    else:
        await chat.screen.note("No agent worked on the last message.")


async def list_titles(connection: Connection) -> Sequence[str]:
    return [clean(chat["title"]) for chat in (await connection.runs.get_chats(limit=20))["chats"] if chat["title"]]


async def list_models(connection: Connection) -> Sequence[str]:
    return list((await connection.runs.ready()).get("model", {}).get("models", ()))


async def _load_chats(chat: ChatSession) -> list[dict[str, Any]]:
    chat.chats = (await chat.connection.runs.get_chats(limit=20))["chats"]
    return chat.chats


def _find(chats: list[dict[str, Any]], which: str) -> str | None:
    """Returns the conversation of a listed number, title or id, or an id or name that is not listed. A number that is
    not listed is none.
    """
    is_number = which.isascii() and which.isdigit()
    if is_number and 0 < int(which) <= len(chats):
        return chats[int(which) - 1]["id"]
    named = [one["id"] for one in chats if which in (one["id"], one["name"], clean(one["title"] or ""))]
    if named or is_number:
        return named[0] if named else None
    return which if which and all(one.isascii() and (one.isalnum() or one in "._-") for one in which) else None
