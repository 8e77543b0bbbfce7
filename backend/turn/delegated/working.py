"""How an agent works: runs of the SDK's, one after the other, and between them the calls that those leave alone."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from agents import RunContextWrapper
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall

from backend.agents.team import Delegated, Start
from backend.cards.approval_card import NOT_ASKED, shown_whole
from backend.conversation.model_input.history import NOT_MADE
from backend.conversation.runs.approvals import Approval
from backend.turn.delegated.call import AgentCall
from backend.turn.sdk.calls import make_each
from backend.turn.waiting.decisions import ENDING, refusal
from service.database import new_id

WAITS = "waits"
Calls = Sequence[ResponseFunctionToolCall]


async def lead(
    agent: AgentCall, context: ToolContext[Any], given: Delegated, start: Start, decided: Mapping[str, Approval]
) -> tuple[str, str]:
    """Until it has answered, or `WAITS`: how it ended, and what it said.

    One that goes on has calls that were `decided`, by their ids.
    """

    async def make(calls: Calls) -> None:
        await make_each(calls, start.agent, RunContextWrapper(context=context.context), start.hooks, agent.answer)

    if agent.goes_on:
        await _make_decided(agent, decided, make)
        if reason := next((one.reason for one in decided.values() if one.reason in ENDING), None):
            return "stopped", f"The {agent.agent} was stopped. {reason} What it did before:\n{agent.did.so_far()}"
        agent.begin_again()
    while True:
        said = await start.invoke(_apart(context), given.model_dump_json())
        if not (stopped := agent.did.stopped):
            return "completed", str(said or "").strip() or f"The {agent.agent} gave no answer."
        # The SDK asks about arguments that it cannot read, too: such a call is made, and the model told of them.
        await make([call for call in stopped if call.call_id not in agent.waiting])
        await _leave_what_is_not_asked(agent)
        if agent.did.stopped:
            return WAITS, ""
        agent.begin_again()


async def _make_decided(
    agent: AgentCall, decided: Mapping[str, Approval], make: Callable[[Calls], Awaitable[None]]
) -> None:
    for call in agent.did.stopped:
        one = decided.get(call.call_id)
        if one is None or one.decision == "refused":
            await agent.leave(call, refusal(one) if one else NOT_MADE, why="refused")
    await make(agent.did.stopped)


async def _leave_what_is_not_asked(agent: AgentCall) -> None:
    """Nobody consents to what they are not shown."""
    for call in agent.did.stopped:
        if not shown_whole(call.name, call.arguments, agent=agent.agent):
            await agent.leave(call, NOT_ASKED, why="cannot be shown whole")


def _apart(context: ToolContext[Any]) -> ToolContext[Any]:
    """For the SDK another call: of one in which an agent of its own waits it keeps where that is, to go on from there.

    Here it goes on from what was recorded, in whichever process.
    """
    call = context.tool_call
    assert isinstance(call, ResponseFunctionToolCall)
    return ToolContext.from_agent_context(context, call.call_id, call.model_copy(update={"id": new_id("fc")}))
