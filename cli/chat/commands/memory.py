"""What the person wants remembered."""

import asyncio
from typing import TYPE_CHECKING

from cli.chat.commands.files import read
from cli.chat.screens.text import wrapped
from todo_client.connection import ApiError
from todo_client.page import Memory, Page

if TYPE_CHECKING:
    from cli.chat.talk import Talk

_CHANGED, _TRIES = 412, 5


async def memory(talk: "Talk", text: str) -> None:
    if not text:
        await _show(talk)
        return
    name, _, file = text.partition(" ")
    added = f"* {text}"
    if name == "import" and file.strip():
        try:
            _, content = await asyncio.to_thread(read, file.strip())
            added = content.decode()
        except (OSError, UnicodeDecodeError):
            await talk.screen.fail(f"{file.strip()} cannot be read as text.")
            return
    await talk.screen.note(_told(await _remember(talk.connection.page, added)))


async def _show(talk: "Talk") -> None:
    memory = await talk.connection.page.memory()
    if told := memory.text.strip():
        await talk.screen.show(*wrapped(told, talk.screen.size[0]))
    if memory.unread or not told:
        await talk.screen.note(_told(memory))


async def _remember(page: Page, added: str) -> Memory:
    """Put it at the end, also where another changes it at the same time."""
    for _ in range(_TRIES):
        memory = await page.memory()
        text = f"{memory.text.rstrip()}\n{added}".lstrip("\n")
        try:
            return await page.remember(text, memory.version)
        except ApiError as refusal:
            if refusal.status != _CHANGED:
                raise
    raise ApiError(_CHANGED, "The memory keeps changing elsewhere. Try again in a moment.")


def _told(memory: Memory) -> str:
    if not memory.text.strip():
        return "The memory is empty. Add a line with /memory TEXT."
    return (
        f"Too long: the assistant does not read the last {memory.unread} lines."
        if memory.unread
        else "Saved to the memory."
    )
