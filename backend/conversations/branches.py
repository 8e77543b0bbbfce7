"""The tree of a conversation's runs: which of several alternatives is shown."""

from backend.conversation.errors import NotFound
from backend.conversations.records import Run
from backend.conversations.timeline import RUN_COLUMNS
from common.database import Database

_LOCK_CONVERSATION = """
SELECT id FROM conversations WHERE user_id = %(user)s AND id = %(conversation)s FOR NO KEY UPDATE"""
# From the run up to the first; the rest is shown no more.
_SHOW = """
WITH RECURSIVE path AS (
    SELECT id, previous_run_id FROM runs
    WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND id = %(run)s
    UNION ALL
    SELECT r.id, r.previous_run_id FROM runs r JOIN path p ON r.id = p.previous_run_id WHERE r.user_id = %(user)s
)
UPDATE runs SET active = (id IN (SELECT id FROM path))
WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND parent_call_id IS NULL
  AND active <> (id IN (SELECT id FROM path))"""
_PATH = f"""
WITH RECURSIVE path AS (
    SELECT id, previous_run_id FROM runs
    WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND id = %(run)s
    UNION ALL
    SELECT r.id, r.previous_run_id FROM runs r JOIN path p ON r.id = p.previous_run_id WHERE r.user_id = %(user)s
)
SELECT {RUN_COLUMNS} FROM runs r JOIN path p ON r.id = p.id WHERE r.user_id = %(user)s ORDER BY r.seq"""
_ALTERNATIVES = """
SELECT a.id FROM runs r JOIN runs a ON a.user_id = r.user_id AND a.conversation_id = r.conversation_id
    AND a.previous_run_id IS NOT DISTINCT FROM r.previous_run_id AND a.parent_call_id IS NULL
WHERE r.user_id = %(user)s AND r.id = %(run)s ORDER BY a.seq"""
_RUN_OF_MESSAGE = f"""
SELECT {RUN_COLUMNS} FROM runs r JOIN entries e ON e.user_id = r.user_id AND e.run_id = r.id
WHERE r.user_id = %(user)s AND r.conversation_id = %(conversation)s AND r.parent_call_id IS NULL
  AND e.id = %(message)s AND e.kind = 'user_message'
ORDER BY r.active DESC, r.seq DESC LIMIT 1"""


async def show(database: Database, user_id: str, conversation_id: str, run_id: str | None) -> None:
    """Shows the conversation as it was after a run, or before its first. Raises `NotFound`."""
    where = {"user": user_id, "conversation": conversation_id, "run": run_id}
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_LOCK_CONVERSATION, **where)
        await tx.execute(_SHOW, **where)
    if await found.fetchone() is None:
        raise NotFound


async def path_to(database: Database, user_id: str, conversation_id: str, run_id: str) -> list[Run]:
    """The runs from the first to this one, whether they are shown or not."""
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_PATH, Run, user=user_id, conversation=conversation_id, run=run_id)
    return await found.fetchall()


async def alternatives(database: Database, user_id: str, run_id: str) -> list[str]:
    """The ids of the runs that continue the same run, itself among them, the oldest first."""
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_ALTERNATIVES, user=user_id, run=run_id)
    return [row["id"] for row in await found.fetchall()]


async def find_run(database: Database, user_id: str, conversation_id: str, message_id: str) -> Run:
    """The run that a message started or steered, of several the one that is shown. Raises `NotFound`."""
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_RUN_OF_MESSAGE, Run, user=user_id, conversation=conversation_id, message=message_id)
    if (run := await found.fetchone()) is None:
        raise NotFound
    return run
