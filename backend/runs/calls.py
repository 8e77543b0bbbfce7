"""Tool calls of a model turn: their idempotency keys, which are not made, and which wait for approval."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from agents.items import ItemHelpers
from openai.types.responses import ResponseFunctionToolCall

from backend.cards.approvals import can_show_whole, describe_call, find_named_tasks, may_allow_always
from backend.cards.current_tasks import load_titles
from backend.conversations.approvals import load_consents
from backend.conversations.records import ModelTurn, Run, ToolCall
from backend.model.tool_calls import is_object, make_storable, storable
from backend.tools.approval_policy import Policy, count_deleted
from backend.tools.connection import FailedOutput
from backend.tools.table import find_tool
from backend.tools.task_tools import TaskTools
from common.database import Database

MAX_CALLS = 6
"""How many calls of one response are made."""

EqualCalls = Counter[tuple[str, str]]
"""How often a run has made a call, by its tool and its arguments, however they are written."""

DIRECTORY = "directory"
"""Stands for all changes of the directory in which a conversation works, in place of a tool that is allowed there."""


def count_calls(calls: Iterable[ToolCall]) -> EqualCalls:
    return Counter((call.tool, _normalize(call.arguments)) for call in calls)


def create_calls(
    items: Iterable[ResponseFunctionToolCall], turn: ModelTurn, *, seed: str, made: EqualCalls
) -> list[ToolCall]:
    """Creates the calls of a model turn, and counts them in `made`.

    Idempotency keys are derived from the `seed`, the id of the message that the run answers.
    """
    calls: list[ToolCall] = []
    for item in items:
        arguments = _normalize(item.arguments)
        count = made[item.name, arguments]
        made[item.name, arguments] += 1
        key = hashlib.sha256(json.dumps([seed, item.name, arguments, count]).encode()).hexdigest()
        calls.append(ToolCall(turn.run_id, item.call_id, turn.model_turn, item.name, item.arguments, "requested", key))
    return calls


def limit_calls(calls: Sequence[ToolCall], turn: ModelTurn, *, max_tokens: int | None) -> None:
    """Notes the reason of calls that are not made: those beyond the limit, and one that the output limit cut off."""
    if turn.finish_reason == "max_output_tokens" and not is_object(calls[-1].arguments):
        calls[-1].reason, calls[-1].details = "over_limit", {"max_tokens": max_tokens}
    for call in calls[MAX_CALLS:]:
        call.reason, call.details = "too_many", None


def add_result(call: ToolCall, item: ResponseFunctionToolCall, result: Any, seconds: float) -> None:
    """Adds what a tool returned to a call that was made; what failed without an error has its state already."""
    call.seconds = seconds
    call.details = make_storable(call.details)
    call.output = storable(get_text(ItemHelpers.tool_call_output_item(item, result)["output"]))
    if call.state != "failed":
        call.state = "failed" if isinstance(result, FailedOutput) else "done"


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
            is_offered = run.schedule_id is None or not find_tool(call.tool).asks_always
            if is_offered and self.policy.waits(call.tool, call.arguments, deleted=deleted):
                waiting.append(call)
        changes = [call for call in calls if find_tool(call.tool).changes_files] if directory is not None else []
        consents: dict[str, str | None] = {}
        if changes or any(may_allow_always(call.tool) for call in waiting):
            consents = await load_consents(self._database, run.user_id, run.conversation_id)
        allowed = run.options.get("allowed_tools") or ()
        if run.schedule_id is not None:  # what the user has allowed does not count while they may be away
            consents, allowed = {}, ()
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


def _normalize(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True, separators=(",", ":"))
    except ValueError:
        return arguments


def get_text(output: str | Sequence[Any]) -> str:
    return output if isinstance(output, str) else "\n".join(part.get("text", "") for part in output)
