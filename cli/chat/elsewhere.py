"""What is said in a conversation elsewhere, as on the page: it is shown here, too."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cli.chat.connection import Reading
from cli.chat.screens.markdown import drawn
from cli.chat.screens.screen import Screen
from todo_client.connection import ApiError, ConnectionLost

if TYPE_CHECKING:
    from cli.chat.talk import Talk

LOOK_SECONDS = 3.0  # between two looks
RUNS = ("RUNNING", "WAITING_APPROVAL")


async def show(screen: Screen, chat_id: str, last: Mapping[str, Any]) -> None:
    """What was said last in a conversation that is opened; an answer that runs there is for its reader."""
    await screen.note(f"Conversation {chat_id}:")
    await screen.echo(last["user_message"])
    if last["status"] in RUNS:
        return
    for event in last["agent_events"]:
        if event["type"] == "ANSWER":
            await screen.show(*drawn(event["content"], width=screen.size[0], colour=screen.style.colour))
    if len(versions := last["siblings"]) > 1:
        await screen.note(f"Version {versions.index(last['id']) + 1} of {len(versions)}. Switch with /version N.")


async def watch(talk: "Talk") -> None:
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        if talk.answer is None and talk.chat_id is not None and talk.last_run is not None:
            with suppress(ConnectionLost, ApiError):
                await _look(talk, talk.chat_id, talk.last_run)


async def _look(talk: "Talk", chat_id: str, before: str) -> None:
    leaf = await talk.connection.leaf(chat_id)
    if leaf in (None, before):
        return
    said = await talk.connection.runs.get_interaction(chat_id, leaf, brief=True)
    if talk.answer is None and talk.last_run == before and talk.chat_id == chat_id:
        talk.last_run = leaf
        await talk.screen.echo(said["user_message"])
        talk.follow(Reading(chat_id, leaf))
