"""Commands about the conversation's files and the user's memory."""

import asyncio
from pathlib import Path
from typing import Any

from cli.chat.rendering import cut_line
from cli.chat.session import ChatSession


async def list_files(chat: ChatSession, _: str) -> None:
    page = await chat.connection.runs.files(chat.chat_id) if chat.chat_id else {"files": []}
    if not page["files"]:
        await chat.screen.note("There are no files in this conversation.")
        return
    await chat.screen.show(*(cut_line(f"{one['path']} · {one['size']:,} bytes") for one in page["files"]))
    if page.get("more"):
        await chat.screen.note("and more")


async def put(chat: ChatSession, name: str) -> None:
    try:
        path, content = await asyncio.to_thread(_read_file, name)
    except OSError as error:
        await chat.screen.fail(f"{name} cannot be read: {error.strerror}.")
        return
    if chat.chat_id is None:
        chat.chat_id, chat.left = await chat.connection.begin(path.name, left=chat.left), None
    await chat.connection.runs.put_file(chat.chat_id, path.name, content)
    await chat.screen.note(f"Added {path.name} to the conversation's files.")


async def get(chat: ChatSession, path: str) -> None:
    content, target = await chat.connection.runs.get_file(chat.require_chat_id(), path), Path(Path(path).name)
    try:
        await asyncio.to_thread(_create, target, content)
    except FileExistsError:
        await chat.screen.fail(f"{target} exists here already. Move it away first, or go to another directory.")
    except OSError as error:
        await chat.screen.fail(f"{target} cannot be written: {error.strerror}.")
    else:
        await chat.screen.note(f"Wrote {target} to the current directory: {len(content):,} bytes.")


async def commit(chat: ChatSession, message: str) -> None:
    await chat.screen.note((await chat.connection.runs.commit(chat.require_chat_id(), message))["message"])


async def memory(chat: ChatSession, text: str) -> None:
    if not text:
        memory = await chat.connection.runs.memory()
        if stored := memory["text"].strip():
            await chat.screen.show(stored)
        if _count_unread(memory) or not stored:
            await chat.screen.note(_describe(memory))
        return
    word, _, file = text.partition(" ")
    added = f"* {text}"
    if word == "import" and file.strip():
        try:
            added = (await asyncio.to_thread(_read_file, file.strip()))[1].decode()
        except (OSError, UnicodeDecodeError):
            await chat.screen.fail(f"{file.strip()} cannot be read as text.")
            return
    await chat.screen.note(_describe(await chat.connection.add_to_memory(chat.chat_id, added)))


def _describe(memory: dict[str, Any]) -> str:
    if not memory["text"].strip():
        return "The memory is empty. Add a line with /memory TEXT."
    if unread := _count_unread(memory):
        return f"Too long: the assistant does not read the first {unread} lines."
    return "Saved to the memory."


def _count_unread(memory: dict[str, Any]) -> int:
    return memory["lines"] - memory["lines_read"]


def _create(target: Path, content: bytes) -> None:
    with target.open("xb") as file:
        file.write(content)


def _read_file(name: str) -> tuple[Path, bytes]:
    path = Path(name).expanduser()
    return path, path.read_bytes()
