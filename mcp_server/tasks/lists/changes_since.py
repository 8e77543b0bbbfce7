"""What was changed since somebody looked: for who shows a list and wants to know when to read it again."""

from typing import NamedTuple

from common.database import Database

MOST = 1_000  # changes: who has missed more reads the list anew


class ChangesSince(NamedTuple):
    last: int
    """The number of the newest change, 0 without one; all up to it are in what is read from now on."""
    task_ids: list[int]
    """Of the tasks that were changed, each once, in the order of their changes."""
    more: bool
    """Whether these are not all, so that what was read has to be read anew."""


# One row for each change after the number, and in any case one; each has the newest change's number, too.
CHANGES_SINCE = """
SELECT newest.last, later.task_id
FROM (SELECT max(id) AS last FROM task_changes WHERE user_id = %(user)s) newest
LEFT JOIN (
    SELECT id, task_id FROM task_changes WHERE user_id = %(user)s AND id > %(after)s ORDER BY id LIMIT %(most)s
) later ON true
ORDER BY later.id"""
_NEWEST = "SELECT max(id) AS last FROM task_changes WHERE user_id = %(user)s"


async def since(database: Database, user_id: str, after: int | None) -> ChangesSince:
    """What came after a change of this number; without one, only which is the newest. One round trip.

    A user's changes are committed in the order of their numbers (`advisory_locks.TASK_LOG`), so none is missed. A
    number beyond the newest is of a log that is not there any more, such as one before a backup was restored.
    """
    async with database.transaction(user_id) as tx:
        if after is None:
            changes = await tx.execute(_NEWEST, user=user_id)
        else:
            changes = await tx.execute(CHANGES_SINCE, user=user_id, after=after, most=MOST + 1)
    rows = await changes.fetchall()
    last = rows[0]["last"] or 0
    if after is None:
        return ChangesSince(last, [], more=False)
    ids = [row["task_id"] for row in rows if row["task_id"] is not None]
    if len(ids) > MOST or after > last:
        return ChangesSince(last, [], more=True)
    return ChangesSince(last, [*dict.fromkeys(ids)], more=False)
