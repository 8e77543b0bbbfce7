"""The tasks that were deleted and can be brought back, from the log, as rows of tasks."""

from typing import Any

from sqlalchemy import ARRAY, Text, bindparam, cast, func, literal_column, select

from mcp_server.models import folded
from mcp_server.tasks.changes import CHANGES, OWNER, STANDS
from mcp_server.tasks.task import TASKS, Stored

# Of their labels the letters alone: as JSON they stand in brackets and quotes.
_SEARCHED = " || ' ' || ".join(
    ["(before->>'title')", "(before->>'description')", "translate(coalesce(before->>'labels', ''), '[],\"', '    ')"]
)
_NO_LABELS: Any = literal_column("'[]'::jsonb", CHANGES.c.before.type)  # as older rows of the log have it


def _was(name: str) -> Any:
    """A field of the task as it was; taken out of the log only where it is asked for."""
    value, kind = CHANGES.c.before[name], TASKS.c[name].type
    if isinstance(kind, ARRAY):
        elements = func.jsonb_array_elements_text(func.coalesce(value, _NO_LABELS))
        return func.array(select(elements.column_valued("label")).scalar_subquery(), type_=kind)
    return value.astext if isinstance(kind, Text) else cast(value.astext, kind)


def _deleted() -> Any:
    """With the id of the change that deleted them, and its moment.

    Whether one is there again needs no look: what brings a task back takes its deletion back.
    """
    searched: Any = literal_column(folded(_SEARCHED), Text)
    return (
        select(
            *(_was(name).label(name) for name in Stored.model_fields),
            searched.label("folded"),
            CHANGES.c.id.label("deletion"),
            CHANGES.c.created_at.label("deleted_at"),
        )
        .where(
            CHANGES.c.user_id == OWNER,
            CHANGES.c.created_at > bindparam("since"),
            CHANGES.c.after.is_(None),
            *STANDS,
        )
        .subquery("deleted")
    )


DELETED = _deleted()
