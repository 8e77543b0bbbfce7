"""Which tool calls wait for their user's approval, and what the user is asked."""

from collections.abc import Sequence

from backend.cards.approvals import can_show_whole, describe_call, find_named_tasks, may_allow_always
from backend.cards.current_tasks import load_titles
from backend.conversations.approvals import load_consents
from backend.conversations.records import Run, ToolCall
from backend.tools.approval_policy import Policy, count_deleted
from backend.tools.table import find_tool
from backend.tools.task_tools import TaskTools
from common.database import Database

DIRECTORY = "directory"
"""Stands for all changes of the directory in which a conversation works, in place of a tool that is allowed there."""


class Approvals:
    def __init__(self, database: Database, policy: Policy, tools: TaskTools) -> None:
        self.policy = policy
        self._database, self._tools = database, tools

    async def find_waiting(
        self, run: Run, calls: Sequence[ToolCall], earlier: Sequence[ToolCall], directory: str | None = None
    ) -> set[str]:
        """Returns the ids of those calls of a model turn that wait for approval; `earlier` are the calls that the run
        made before. What its user allows in the conversation, with the same reach, or with the run's message does not
        wait, and neither does a call that could not be shown whole: it gets the reason `not_shown`.
        """
        deleted = sum(_count_deleted(call) for call in earlier)
        waiting: list[ToolCall] = []
        for call in calls:
            deleted += _count_deleted(call)
            if self.policy.waits(call.tool, call.arguments, deleted=deleted):
                waiting.append(call)
        changes = [call for call in calls if find_tool(call.tool).changes_files] if directory is not None else []
        consents: dict[str, str | None] = {}
        if changes or any(may_allow_always(call.tool) for call in waiting):
            consents = await load_consents(self._database, run.user_id, run.conversation_id)
        allowed = run.options.get("allowed_tools") or ()
        waiting = [
            call
            for call in waiting
            if call.tool not in allowed and (call.tool, self.policy.reach_of(call.tool)) not in consents.items()
        ]
        if DIRECTORY not in consents:
            waiting += [call for call in changes if call not in waiting]
        for call in waiting:
            if not can_show_whole(call.tool, call.arguments, agent=run.sub_agent):
                call.reason = "not_shown"
        return {call.id for call in waiting if call.reason is None}

    def has_reach_changed(self, call: ToolCall) -> bool:
        return call.decision_seq is not None and call.reach != self.policy.reach_of(call.tool)

    def has_reach_of_agent_changed(self, call: ToolCall) -> bool:
        """Whether an agent that needs approval may reach something else by now than when this call started it."""
        return self.policy.may_ask(call.tool) and call.reach != self.policy.reach_of(call.tool)

    async def describe(self, run: Run, call: ToolCall, directory: str | None = None) -> str:
        titles = await load_titles(set(find_named_tasks(call.arguments)), self._tools, user_id=run.user_id) or {}
        limits = self.policy.limits_of(call.tool)
        if directory is not None:
            limits = _describe_limits_in_directory(call.tool, directory) or limits
        return describe_call(call.tool, call.arguments, titles, limits, agent=run.sub_agent)


def _describe_limits_in_directory(tool: str, directory: str) -> str | None:
    row = find_tool(tool)
    if row.agent is not None:
        return (
            f"It works in {directory}, with programs that have no internet access. You are asked before it changes it."
        )
    if row.changes_files:
        return f"It may then change files in {directory} in this conversation, without asking again."
    return None


def _count_deleted(call: ToolCall) -> int:
    return 0 if call.state in ("rejected", "not_made") or call.reason else count_deleted(call.tool, call.arguments)
