import sys
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.models import Run
from service import data_commands
from service.database import transaction
from service.database.documents import Row, Writer, freeze, rows

_TABLES = Run.metadata.tables
CONVERSATIONS, MESSAGES, RUNS = (_TABLES[name] for name in ("conversations", "messages", "runs"))
APPROVALS, INPUTS = _TABLES["approvals"], _TABLES["run_inputs"]
PROFILES, ENDED = _TABLES["profiles"], _TABLES["ended_sessions"]
STEPS, CONSENTS = _TABLES["agent_steps"], _TABLES["consents"]
_THREAD = ("id", "name", "title", "status", "metadata", "leaf_run_id", "created_at")
_ITEM = ("id", "role", "kind", "item", "run_id", "superseded_by", "feedback", "usage", "created_at")
_SESSION = ("id", "expires_at")
_PROFILE = (PROFILES.c.time_zone, PROFILES.c.calendar_hash.is_not(None).label("calendar"), PROFILES.c.memory)
_RUN = (
    "id",
    "status",
    "outcome",
    "usage",
    "parent_run_id",
    "edits_run_id",
    "chosen",
    "message_id",
    "started_at",
    "ended_at",
)
_APPROVAL = ("id", "run_id", "agent", "of_call", "call", "text", "decision", "reason", "created_at", "decided_at")
_INPUT = ("id", "run_id", "mode", "said", "created_at", "taken_at", "dropped_at")

_STEP = ("run_id", "call_id", "seq", "agent", "kind", "content", "details", "created_at")
_CONSENT = ("conversation_id", "tool", "created_at")


def run(arguments: Sequence[str]) -> None:
    """`python -m backend export --user NAME`: write a person's threads with their items, and the runs, as JSON."""
    data_commands.run_for_person(
        _export, arguments, name="export", description="Writes a person's threads and runs as JSON."
    )


async def _export(engine: AsyncEngine, *, user: str) -> None:
    threads = select(*(CONVERSATIONS.c[name] for name in _THREAD)).where(CONVERSATIONS.c.user_id == user)
    items = select(*(MESSAGES.c[name] for name in _ITEM)).where(MESSAGES.c.user_id == user)
    turns = select(*(RUNS.c[name] for name in _RUN), RUNS.c.conversation_id.label("thread_id"))
    asked = select(*(APPROVALS.c[name] for name in _APPROVAL)).where(APPROVALS.c.user_id == user)
    sent = select(*(INPUTS.c[name] for name in _INPUT)).where(INPUTS.c.user_id == user)
    steps = select(*(STEPS.c[name] for name in _STEP)).where(STEPS.c.user_id == user)
    allowed = select(*(CONSENTS.c[name] for name in _CONSENT)).where(CONSENTS.c.user_id == user)
    ended = select(*(ENDED.c[name] for name in _SESSION))
    profile = select(*_PROFILE)
    writer = Writer(sys.stdout.buffer)
    async with transaction(engine, user) as session:
        await freeze(session)

        async def write(thread: Row) -> None:
            own = items.where(MESSAGES.c.conversation_id == thread["id"]).order_by(MESSAGES.c.seq)
            await writer.row_with(thread, "items", rows(session, own))

        writer.text('{"threads": ')
        found = await writer.array(rows(session, threads.order_by(CONVERSATIONS.c.id)), write)
        writer.text(',\n"runs": ')
        found += await writer.array(rows(session, turns.where(RUNS.c.user_id == user).order_by(RUNS.c.id)))
        writer.text(',\n"approvals": ')
        found += await writer.array(rows(session, asked.order_by(APPROVALS.c.id)))
        writer.text(',\n"run_inputs": ')
        found += await writer.array(rows(session, sent.order_by(INPUTS.c.id)))
        writer.text(',\n"agent_steps": ')
        found += await writer.array(rows(session, steps.order_by(STEPS.c.run_id, STEPS.c.seq)))
        writer.text(',\n"consents": ')
        found += await writer.array(rows(session, allowed.order_by(CONSENTS.c.conversation_id, CONSENTS.c.tool)))
        writer.text(',\n"ended_sessions": ')
        found += await writer.array(rows(session, ended.where(ENDED.c.user_id == user).order_by(ENDED.c.id)))
        writer.text(',\n"profiles": ')
        found += await writer.array(rows(session, profile.where(PROFILES.c.user_id == user)))
        writer.text("}\n")
    if not found:
        raise data_commands.NothingStored(user)
