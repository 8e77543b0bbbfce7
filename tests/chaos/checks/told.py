"""What the API tells afterwards, against what clients were told before."""

from collections.abc import Iterator
from typing import Any

from tests.chaos.checks.stored import Stored
from tests.chaos.doors.runs import answers_of
from tests.chaos.record import Record
from tests.chatkit_client import ChatKit
from todo_client.runs import Runs

Json = dict[str, Any]
_STATUS = {
    "waiting": "WAITING_APPROVAL",
    "completed": "COMPLETED",
    "failed": "FAILED",
    "interrupted": "FAILED",
    "cancelled": "CANCELLED",
}


async def problems(runs: Runs, chat: ChatKit, record: Record, stored: Stored) -> list[str]:
    """Of every run and of every conversation that there is."""
    found: list[str] = []
    approvals: dict[str, bool | None] = {}
    for id, run in stored.runs.items():
        one = await runs.get_interaction(run["conversation_id"], id)
        found += _of_interaction(one, run, record)
        approvals |= {asked["approval_id"]: asked["approved"] for asked in one["approvals"]}
    found += [
        f"{id} was acknowledged as {approved}, and is told as {approvals.get(id)}"
        for id, approved in record.decisions.items()
        if approvals.get(id) is not approved
    ]
    for thread in {run["conversation_id"] for run in stored.runs.values()}:
        found += await _of_conversation(chat, runs, thread, stored)
    return found


def _of_interaction(one: Json, run: Json, record: Record) -> Iterator[str]:
    if one["status"] != _STATUS[run["status"]]:
        yield f"{one['id']} is told as {one['status']} and is {run['status']}"
    if (acknowledged := record.interactions.get(one["id"])) and one["user_message"] != acknowledged[1]:
        yield f"{one['id']} was acknowledged for {acknowledged[1]!r} and is told as {one['user_message']!r}"
    if (answers := record.answers.get(one["id"])) is not None and answers_of(one) != answers:
        yield f"{one['id']} had answered {answers} and is told as {answers_of(one)}"


async def _of_conversation(chat: ChatKit, runs: Runs, thread: str, stored: Stored) -> list[str]:
    """Its newest page: each message of the path is shown, and what was not read is told as such."""
    items = (await chat.list_items(thread, limit=100, order="desc")).data
    shown = {item["id"] for item in items if item["type"] == "user_message"}
    head = await runs.get_chat(thread, limit=0)
    unread, left = {one["input_id"] for one in head["unread"]}, stored.unread(thread)
    found = [f"{thread} tells {unread} as not read, and left are {left}"] if unread != left else []
    if len(items) < 100:
        missing = stored.shown_messages(thread) - shown
        found += [f"message {id} of {thread} is not shown" for id in missing]
    return found
