"""Reads the event log of a conversation, some runs at a time: however long it is, little is in memory."""

from collections.abc import AsyncIterator

from backend.conversations import conversations, timeline
from backend.conversations.conversations import Conversation
from backend.transcript.lines import Line
from backend.transcript.render import LogRenderer
from common.database import Database

_AT_ONCE = 20  # runs with those of their sub-agents
_PAGE = 100  # conversations


async def read_conversations(database: Database, user_id: str) -> AsyncIterator[Conversation]:
    """Yields all of a user's conversations, the oldest first."""
    after, has_more = None, True
    while has_more:
        page, has_more = await conversations.load_page(database, user_id, limit=_PAGE, after=after, oldest_first=True)
        for conversation in page:
            yield conversation
            after = conversation.id


async def read_log(database: Database, user_id: str, conversation: Conversation) -> AsyncIterator[Line]:
    """Yields the lines of a conversation's event log, reading twenty runs with their sub-agents at a time."""
    runs = await timeline.load_runs(database, user_id, conversation.id)
    renderer = LogRenderer(conversation, runs)
    top_runs = [run.id for run in runs if not run.is_sub_agent]
    for start in range(0, max(1, len(top_runs)), _AT_ONCE):
        tops = set(top_runs[start : start + _AT_ONCE])
        events = await timeline.load_log(database, user_id, [run for run in runs if run.top_run_id in tops])
        if start == 0:
            yield renderer.render_start(events)
        for line in renderer.render(events):
            yield line
    for line in renderer.render_end(await timeline.load_successors(database, user_id, conversation.id)):
        yield line
