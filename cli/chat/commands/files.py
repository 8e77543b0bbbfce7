"""The conversation's folder."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from cli.chat.screens.text import one_line

if TYPE_CHECKING:
    from cli.chat.talk import Talk


async def show(talk: "Talk", _: str) -> None:
    found = await talk.connection.page.files(talk.chat_id) if talk.chat_id else {"files": []}
    width, style = talk.screen.size[0], talk.screen.style
    lines = [one_line(f"{one['path']} · {one['size']:,} bytes", width) for one in found["files"]]
    lines += [style.dim("and more")] if found.get("more") else []
    await talk.screen.show(*(lines or [style.dim("There are no files in this conversation.")]))


async def put(talk: "Talk", name: str) -> None:
    try:
        path, content = await asyncio.to_thread(read, name)
    except OSError as error:
        await talk.screen.fail(f"{name} cannot be read: {error.strerror}.")
        return
    if talk.chat_id is None:
        talk.chat_id, talk.left = await talk.connection.begin(path.name, left=talk.left), None
    await talk.connection.page.put_file(talk.chat_id, path.name, content)
    await talk.screen.note(f"Added {path.name} to the conversation's files.")


async def get(talk: "Talk", path: str) -> None:
    """Writes a file of the conversation into the current directory; never over one that exists."""
    if talk.chat_id is None:
        await talk.screen.fail("There are no files in this conversation.")
        return
    content, target = await talk.connection.page.get_file(talk.chat_id, path), Path(Path(path).name)
    try:
        await asyncio.to_thread(_create, target, content)
    except FileExistsError:
        await talk.screen.fail(f"{target} exists here already. Move it away first, or go to another directory.")
    except OSError as error:
        await talk.screen.fail(f"{target} cannot be written: {error.strerror}.")
    else:
        await talk.screen.note(f"Wrote {target} to the current directory: {len(content):,} bytes.")


async def commit(talk: "Talk", message: str) -> None:
    if talk.chat_id is None:
        await talk.screen.fail("There is nothing to commit in this conversation yet.")
        return
    await talk.screen.note((await talk.connection.page.commit(talk.chat_id, message))["message"])


def _create(target: Path, content: bytes) -> None:
    with target.open("xb") as file:
        file.write(content)


def read(name: str) -> tuple[Path, bytes]:
    """A file of this machine; raises `OSError`."""
    path = Path(name).expanduser()
    return path, path.read_bytes()
