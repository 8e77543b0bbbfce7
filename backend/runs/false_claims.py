"""Finds out whether an answer claims a change that its run has not made."""

import asyncio
from collections.abc import Sequence

from backend.cards.current_tasks import get_changed_tasks
from backend.conversations.records import UNKNOWN_OUTCOME, Run, Timeline, ToolCall
from backend.conversations.timeline import load_trees
from backend.tools.connectors.names import server_of
from backend.tools.table import find_tool
from common.claims import Claim, find_claims
from common.database import Database
from common.named import admits_failure
from common.questions import asks_about_past, asks_for_change


async def has_false_claim(
    database: Database, run: Run, calls: Sequence[ToolCall], answer: str, history: Timeline
) -> bool:
    """Whether an answer claims a change although neither its run nor the run's sub-agents can have changed anything.

    It may tell what an earlier run of its `history` has changed, if the message asks for that.
    """
    if not answer or any(map(may_have_changed, calls)):
        return False
    # In a thread, which lets others run between two expressions.
    claims = await asyncio.to_thread(find_claims, answer, has_read=_may_tell_what_is(calls, answer))
    if not claims or await asyncio.to_thread(_tells_of_earlier, claims, run, history):
        return False
    if any(find_tool(call.tool).agent for call in calls):
        tree = await load_trees(database, run.user_id, [run.top_run_id], only_sub_agents=True)
        return not any(map(may_have_changed, tree.calls))
    return True


def may_have_changed(call: ToolCall) -> bool:
    """Whether a call can have changed something: also one without a known outcome, and a program that has failed."""
    tool = find_tool(call.tool)
    if not tool.can_change or call.state != "failed":
        return tool.can_change and call.state in ("done", "unknown")
    return tool.runs_programs or server_of(call.tool) is not None or call.output == UNKNOWN_OUTCOME


def _tells_of_earlier(claims: Sequence[Claim], run: Run, history: Timeline) -> bool:
    """Whether claims are about what an earlier run has changed: the message asks about that, or for no change and each
    claim names such a task.
    """
    earlier = [call for call in history.calls if call.run_id != run.id and may_have_changed(call)]
    messages = [one.text for one in history.of_run(run.id).entries if one.kind == "user_message"]
    if not earlier or any(map(asks_for_change, messages)):
        return False
    if any(map(asks_about_past, messages)):
        return True
    titles = {task.title.casefold() for call in earlier for task in get_changed_tasks(call) if len(task.title) > 2}
    return all(any(title in claim.sentence.casefold() for title in titles) for claim in claims)


def _may_tell_what_is(calls: Sequence[ToolCall], answer: str) -> bool:
    """Whether tasks or files were read, and no change was even tried, unless the answer says that something failed."""
    tools = [find_tool(call.tool) for call in calls]
    has_read = any(tool.reads and call.state == "done" for tool, call in zip(tools, calls, strict=True))
    return has_read and (admits_failure(answer) or not any(tool.can_change for tool in tools))
