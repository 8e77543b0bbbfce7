"""The conversations of the page, and this one as a whole."""

from typing import TYPE_CHECKING, Any

from cli.chat.screens import drawing
from cli.chat.screens.text import clean

if TYPE_CHECKING:
    from cli.chat.talk import Talk


async def show_all(talk: "Talk", _: str) -> None:
    threads = await talk.learned.list_threads()
    style, width = talk.screen.style, talk.screen.size[0]
    current = await talk.connection.thread(talk.chat_id) if talk.chat_id and talk.last_run else talk.chat_id
    lines = [
        drawing.thread_line(style, number, one, width, current=one["id"] == current)
        for number, one in enumerate(threads, 1)
    ]
    await talk.screen.show(*(lines or [style.dim("There are no conversations yet.")]))


async def open(talk: "Talk", which: str) -> None:
    if talk.answer is not None:
        await talk.screen.fail("The assistant is still answering. Wait, or stop it with /stop.")
        return
    threads = talk.learned.threads or await talk.learned.list_threads()
    chat_id = _find(threads, which)
    if chat_id is None:
        await talk.screen.fail(f"There is no conversation {which}. See /threads.")
        return
    await talk.open(chat_id)


async def clear(talk: "Talk", _: str) -> None:
    if talk.answer is not None:
        await talk.screen.fail("The assistant is still answering. Stop it first with /stop or Ctrl-C.")
        return
    talk.clear()
    await talk.screen.note("Your next message starts a new conversation.")


async def log(talk: "Talk", _: str) -> None:
    if talk.chat_id is None:
        await talk.screen.fail("This conversation is empty.")
        return
    async with talk.connection.page.log(talk.chat_id) as lines:
        async for line in lines:
            await talk.screen.show(clean(line))


async def compact(talk: "Talk", _: str) -> None:
    if talk.chat_id is None:
        await talk.screen.fail("There is nothing to compact in this conversation yet.")
        return
    done = await talk.connection.runs.compact(talk.chat_id)
    await talk.screen.note(f"{done['status'].capitalize()}: {done['messages']} messages.")


def _find(threads: list[dict[str, Any]], which: str) -> str | None:
    """Returns the conversation of a listed number, title or id, else an id or name that is not listed; a number that is
    not listed is none.
    """
    is_number = which.isascii() and which.isdigit()
    if is_number and 0 < int(which) <= len(threads):
        return threads[int(which) - 1]["id"]
    named = [one["id"] for one in threads if which in (one["id"], clean(one.get("title") or ""))]
    if named or is_number:
        return named[0] if named else None
    return which if which and all(one.isascii() and (one.isalnum() or one in "._-") for one in which) else None
