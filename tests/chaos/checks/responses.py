"""Checks the responses of the APIs against the stored rows and against what was acknowledged to clients."""

from collections.abc import Iterator
from typing import Any

from tests.chaos.apis.runs import answers_of
from tests.chaos.checks.stored_rows import StoredRows
from tests.chaos.client_record import ClientRecord
from tests.chatkit_client import ChatKit
from todo_client.runs import Runs

Json = dict[str, Any]
_API_STATUS = {
    "waiting": "WAITING_APPROVAL",
    "completed": "COMPLETED",
    "failed": "FAILED",
    "interrupted": "FAILED",
    "cancelled": "CANCELLED",
}
_PAGE_SIZE = 100


async def find_problems(runs: Runs, chat: ChatKit, record: ClientRecord, rows: StoredRows) -> list[str]:
    """Checks every run and every conversation."""
    problems: list[str] = []
    approvals: dict[str, bool | None] = {}
    for id, run in rows.runs.items():
        interaction = await runs.get_interaction(run["conversation_id"], id)
        problems += _check_interaction(interaction, run, record)
        approvals |= {approval["approval_id"]: approval["approved"] for approval in interaction["approvals"]}
    problems += [
        f"decision {id} was acknowledged as {approved}, and the API says {approvals.get(id)}"
        for id, approved in record.decisions.items()
        if approvals.get(id) is not approved
    ]
    for conversation_id in {run["conversation_id"] for run in rows.runs.values()}:
        problems += await _check_conversation(chat, runs, conversation_id, rows)
    return problems


def _check_interaction(interaction: Json, run: Json, record: ClientRecord) -> Iterator[str]:
    id, message, answers = interaction["id"], interaction["user_message"], answers_of(interaction)
    if interaction["status"] != _API_STATUS[run["status"]]:
        yield f"the API says that {id} is {interaction['status']}, and it is {run['status']}"
    if (acknowledged := record.interactions.get(id)) and message != acknowledged[1]:
        yield f"{id} was acknowledged for {acknowledged[1]!r}, and the API says {message!r}"
    if (expected := record.answers.get(id)) is not None and answers != expected:
        yield f"{id} had answered {expected}, and the API says {answers}"


async def _check_conversation(chat: ChatKit, runs: Runs, conversation_id: str, rows: StoredRows) -> list[str]:
    """ChatKit's newest page shows each message of the active path, and the run API lists the unread messages."""
    items = (await chat.list_items(conversation_id, limit=_PAGE_SIZE, order="desc")).data
    shown = {item["id"] for item in items if item["type"] == "user_message"}
    response = await runs.get_chat(conversation_id, limit=0)
    unread, expected = {one["input_id"] for one in response["unread"]}, rows.list_unread_inputs(conversation_id)
    problems: list[str] = []
    if unread != expected:
        problems.append(f"the API says that {unread} are unread in {conversation_id}, and {expected} are")
    if len(items) < _PAGE_SIZE:
        missing = rows.list_active_messages(conversation_id) - shown
        problems += [f"message {id} of {conversation_id} is not shown" for id in missing]
    return problems
