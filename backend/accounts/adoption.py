"""Gives all that is stored of one user, such as tasks and conversations, to another one who has nothing yet."""

from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg.types.json import Jsonb

from common.database import Database, Transaction, advisory_locks

# The tables of both services whose rows are given to the new user, in the order in which other transactions lock them.
MOVED: tuple[LiteralString, ...] = (
    *("conversations", "schedules", "runs", "model_turns", "entries", "tool_calls", "consents", "requests"),
    *("kept_requests", "profiles", "tasks", "task_calls", "task_changes", "people", "token_usage"),
    *("alert_settings", "alert_channels", "alerts", "alert_deliveries"),
)
LEFT: tuple[LiteralString, ...] = (
    *("accounts", "sessions", "one_time_codes", "account_events", "oauth_grants", "provider_sessions"),
)
"""The tables of how users sign in: what was handed out to the old user must not open anything of the new one."""

_LOCK_CONVERSATIONS = "SELECT id FROM conversations WHERE user_id = %(old)s ORDER BY id FOR UPDATE"
# So that neither of them starts a run or changes a task before the end.
_LOCKS = (f"SELECT {advisory_locks.REQUESTS}", f"SELECT {advisory_locks.TASKS}")
_HAS_ACCOUNT = "SELECT user_id FROM accounts WHERE user_id = %(new)s FOR SHARE"
_OWN_ROWS = """
SELECT
    (SELECT count(*) FROM tasks WHERE user_id = %(new)s) AS tasks,
    (SELECT count(*) FROM conversations WHERE user_id = %(new)s) AS conversations,
    (SELECT count(*) FROM task_calls WHERE user_id = %(new)s) AS changes,
    EXISTS (SELECT FROM profiles WHERE user_id = %(new)s AND memory IS NOT NULL) AS memory,
    EXISTS (SELECT FROM profiles WHERE user_id = %(new)s AND calendar_hash IS NOT NULL) AS calendar"""
_HAS_ROWS = "SELECT " + " OR ".join(f"EXISTS (SELECT FROM {table} WHERE user_id = %(old)s)" for table in MOVED)
_ADOPTED_AT = """
SELECT max(at) AS at FROM account_events
WHERE user_id = %(new)s AND kind = 'account_adopted' AND details->>'from' = %(old)s"""
# What a sign-in and a look at the page have stored of the new user, in tables with one row for each user, day or key.
_MERGE = (
    """
UPDATE profiles old SET name = coalesce(new.name, old.name), time_zone = coalesce(old.time_zone, new.time_zone)
FROM profiles new WHERE old.user_id = %(old)s AND new.user_id = %(new)s""",
    """
DELETE FROM profiles WHERE user_id = %(new)s AND EXISTS (SELECT FROM profiles WHERE user_id = %(old)s)""",
    "DELETE FROM people WHERE user_id = %(new)s AND EXISTS (SELECT FROM people WHERE user_id = %(old)s)",
    """
DELETE FROM kept_requests WHERE user_id = %(new)s AND key IN (SELECT key FROM kept_requests WHERE user_id = %(old)s)""",
    """
UPDATE token_usage old
SET input_tokens = old.input_tokens + new.input_tokens, output_tokens = old.output_tokens + new.output_tokens
FROM token_usage new WHERE old.user_id = %(old)s AND new.user_id = %(new)s AND new.day = old.day""",
    """
DELETE FROM token_usage WHERE user_id = %(new)s AND day IN (SELECT day FROM token_usage WHERE user_id = %(old)s)""",
    # Browsers were signed in as the old user; each asks again to be notified.
    "DELETE FROM alert_channels WHERE user_id = %(old)s AND kind = 'push'",
    """
DELETE FROM alert_settings WHERE user_id = %(new)s
    AND EXISTS (SELECT FROM alert_settings WHERE user_id = %(old)s)""",
    """
DELETE FROM alert_channels WHERE user_id = %(new)s
    AND target_hash IN (SELECT target_hash FROM alert_channels WHERE user_id = %(old)s)""",
)
_IS_RUNNING = "SELECT id FROM runs WHERE user_id IN (%(old)s, %(new)s) AND status = 'running' LIMIT 1"
# The services ask for what ended in the last half minute, so this comes last, after the keys were checked.
_CHECK_KEYS = "SET CONSTRAINTS ALL IMMEDIATE"
_END_SESSIONS = "UPDATE sessions SET ended_at = clock_timestamp() WHERE user_id = %(old)s AND ended_at IS NULL"
_DELETE_CODES = "DELETE FROM one_time_codes WHERE user_id = %(old)s"
_ADD_EVENTS = """
INSERT INTO account_events (user_id, kind, details)
VALUES (%(new)s, 'account_adopted', %(of_new)s), (%(old)s, 'account_adopted', %(of_old)s)"""
_CONVERSATIONS = "SELECT id FROM conversations WHERE user_id = %(new)s ORDER BY id"


class AdoptionRejected(Exception):
    """The text says why, and what to do."""


class StillRunning(AdoptionRejected):
    """An answer is still running, which would be stored for the old user."""

    def __init__(self, user: str) -> None:
        super().__init__(f"An answer of {user} is still running. Wait until it has ended, or stop it, and try again.")


@dataclass(frozen=True, slots=True)
class OwnRows:
    """What a user has; `changes` are those of the task list, also of deleted tasks."""

    tasks: int
    conversations: int
    changes: int
    memory: bool
    calendar: bool

    def describe(self) -> str | None:
        """Returns what it is, for a sentence; None if it is nothing."""
        parts = [_count(self.tasks, "task"), _count(self.conversations, "conversation")]
        parts += ["changes of deleted tasks"] if self.changes and not self.tasks else []
        parts += ["a memory"] if self.memory else []
        parts += ["a calendar link"] if self.calendar else []
        return ", ".join(filter(None, parts)) or None


@dataclass(frozen=True, slots=True)
class Adoption:
    """What was moved, by table, and the ids of all conversations of the new user, for their files.

    Without `rows`, the rows were moved by an earlier command, which may have ended before it moved the files.
    """

    rows: dict[str, int]
    conversations: list[str]


async def adopt(database: Database, old: str, new: str, *, needs_account: bool) -> Adoption | None:
    """Gives the rows of the user `old` to `new` in one transaction, as the tables' owner; None if there are none.

    A second call tells what to complete of the first. Raises `AdoptionRejected`; nothing is changed then.
    """
    who = {"old": old, "new": new}
    async with database.owner_transaction() as tx:
        await _lock(tx, old, new)
        if needs_account and not await _fetch(tx, _HAS_ACCOUNT, **who):
            raise AdoptionRejected(
                f"There is no account {new}. Make it first: ./todo user add {new}, or at a provider by signing in once."
            )
        [[adopted_at]] = await _fetch(tx, _ADOPTED_AT, **who)
        own = await (await tx.execute(_OWN_ROWS, OwnRows, **who)).fetchone()
        assert own is not None
        owned = own.describe()
        if owned and not adopted_at:
            raise AdoptionRejected(
                f"{new} already has {owned}. Only a user without any can adopt those of {old}: choose another account, "
                f"or delete all data and the account of {new} with ./todo forget --user {new} and make it again."
            )
        [[has_rows]] = await _fetch(tx, _HAS_ROWS, **who)
        rows = {} if owned or not has_rows else await _move(tx, who)
        if not rows and not adopted_at:
            return None
        conversations = [row[0] for row in await _fetch(tx, _CONVERSATIONS, **who)]
    return Adoption(rows, conversations)


async def _lock(tx: Transaction, old: str, new: str) -> None:
    await tx.lift_timeouts()
    await tx.execute(_LOCK_CONVERSATIONS, old=old)
    for lock in _LOCKS:
        for user in sorted((old, new)):
            await tx.execute(lock, user=user)


async def _move(tx: Transaction, who: dict[str, str]) -> dict[str, int]:
    await _check_runs(tx, who)
    await tx.execute("SET CONSTRAINTS ALL DEFERRED")
    for statement in _MERGE:
        await tx.execute(statement, **who)
    moved = {
        table: await tx.execute(f"UPDATE {table} SET user_id = %(new)s WHERE user_id = %(old)s", **who)
        for table in MOVED
    }
    await _check_runs(tx, who)  # again: one that waited may have gone on, which it cannot now that its row is locked
    await tx.execute(_CHECK_KEYS)
    events = {"of_new": Jsonb({"from": who["old"]}), "of_old": Jsonb({"to": who["new"]})}
    await tx.execute(_ADD_EVENTS, **events, **who)
    await tx.execute(_DELETE_CODES, **who)
    await tx.execute(_END_SESSIONS, **who)
    return {table: cursor.rowcount for table, cursor in moved.items() if cursor.rowcount}


async def _check_runs(tx: Transaction, who: dict[str, str]) -> None:
    if await _fetch(tx, _IS_RUNNING, **who):
        raise StillRunning(who["old"])


async def _fetch(tx: Transaction, statement: LiteralString, **values: Any) -> list[list[Any]]:
    """Returns the values of each row."""
    return [[*row.values()] for row in await (await tx.execute(statement, **values)).fetchall()]


def _count(number: int, name: str) -> str | None:
    return f"{number:,} {name}{'' if number == 1 else 's'}" if number else None
