"""Runs whose process is gone: found across people, and ended one by one as the person whose each is.

Who follows a dead process begins with this, and what the service itself imports takes seconds: nothing large is
imported here.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg
from psycopg.types.json import Jsonb

CUT = "The server had to end this answer. What was done so far is kept."

# Functions of the tables' owner, made by migration 0007. They tell ids only, and change nothing.
STALE = "SELECT id, conversation_id, user_id FROM stale_runs()"
_OF_WORKERS = "SELECT id, conversation_id, user_id FROM unnest(%s::text[]) AS worker, runs_of_worker(worker)"
_END = """
WITH ended AS (
    UPDATE runs SET status = 'ended', outcome = 'interrupted', ended_at = now()
    WHERE user_id = %(owner)s AND status = 'running' AND {which}
    RETURNING user_id, conversation_id, id
), told AS (
    INSERT INTO messages (user_id, conversation_id, run_id, id, role, kind, item)
    SELECT user_id, conversation_id, id, %(item_id)s, 'app', 'task', %(item)s
    FROM ended WHERE conversation_id IS NOT NULL
)
SELECT id FROM ended
"""
_LEASE_IS_OVER = "heartbeat_at < now() - make_interval(secs => lease_seconds)"
END_STALE = _END.format(which=f"id = %(run)s AND {_LEASE_IS_OVER}")
TAKE_OVER = _END.format(which=f"conversation_id = %(conversation)s AND {_LEASE_IS_OVER}")
_END_OF_WORKERS = _END.format(which="id = %(run)s AND worker = ANY (%(workers)s)")

_SECONDS = 2
_AS = """
SELECT set_config('role', 'todo_app', true), set_config('todo.user_id', %s, true),
    set_config('statement_timeout', '2s', true)
"""


class Abandoned(NamedTuple):
    """A run whose process is gone."""

    run_id: str
    conversation_id: str | None
    user_id: str


def ending(*, user_id: str, conversation_id: str | None, run_id: str | None = None) -> dict[str, Any]:
    """The parameters of the statements that end a run, and say so by the item that `rows` makes of `endings.cut`.

    It is written by hand, as ChatKit's types alone take a second to import.
    """
    item = {
        "id": f"end_{uuid4().hex}",
        "thread_id": conversation_id,
        "created_at": datetime.now(UTC).isoformat(),
        "type": "task",
        "task": {"type": "custom", "status_indicator": "none", "title": CUT, "icon": "play", "content": None},
    }
    whose = {"owner": user_id, "conversation": conversation_id, "run": run_id}
    return {**whose, "item_id": item["id"], "item": Jsonb(item)}


def end_runs_of(workers: Sequence[str], database_url: str) -> list[Abandoned]:
    """End the runs of the workers of these names, which are known to be dead, and return them.

    One that cannot be ended waits for its lease. Raises `psycopg.Error` where the database is away: then all do.
    """
    ended: list[Abandoned] = []
    with psycopg.connect(
        database_url,
        autocommit=True,
        prepare_threshold=None,
        connect_timeout=_SECONDS,
        application_name="todo-assistant",
    ) as connection:
        with connection.transaction():
            connection.execute(_AS, [""])
            found = [Abandoned(*run) for run in connection.execute(_OF_WORKERS, [list(workers)])]
        for run in found:
            with suppress(psycopg.Error), connection.transaction():
                connection.execute(_AS, [run.user_id])
                if connection.execute(_END_OF_WORKERS, {**ending(**run._asdict()), "workers": workers}).fetchone():
                    ended.append(run)
    return ended
