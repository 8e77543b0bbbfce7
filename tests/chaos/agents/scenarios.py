"""What simulated users do who start agents."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from tests.chaos.agents.model_script import NO_CODER
from tests.chaos.apis.runs import answers_of
from tests.chaos.scenarios import Scenario

_DECISION_SECONDS = (0.0, 2.0)
_REPORT = re.compile(r"Done with (\w+)\.")


class AgentScenario(Scenario):
    @property
    def steps(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (
            *[self.finish_assignment] * 2,
            self.reject_agent_start,
            *[self.decide_agent_approval] * 2,
            self.overtake_agent_approval,
            *[self.start_agent_once] * 2,
            self.cancel_agent,
            self.send_input_to_agent,
            self.add_and_complete,
        )

    async def finish_assignment(self) -> None:
        self._check_finished(await self._conversation.ask(self._create_request("brief"), approve=True))

    async def reject_agent_start(self) -> None:
        """If starting an agent needs no approval, the assignment is finished."""
        interaction = await self._conversation.ask(self._create_request("brief"), approve=False)
        if not interaction["approvals"]:
            self._check_finished(interaction)

    async def decide_agent_approval(self) -> None:
        """Decides a call of the agent after a while; if it is rejected, the agent does not finish."""
        approve, request = self._rng.random() < 0.7, self._create_request("approved")
        interaction = await self._wait_for_agent_approval(request)
        await asyncio.sleep(self._rng.uniform(*_DECISION_SECONDS))
        await self._conversation.decide(interaction, approve=approve)
        interaction = await self._conversation.wait_for_answer(request, approve=approve)
        if approve:
            self._check_finished(interaction)

    async def overtake_agent_approval(self) -> None:
        await self._overtake(await self._wait_for_agent_approval(self._create_request("approved")))

    async def start_agent_once(self) -> None:
        """Does not retry the message: the next message's model reads what became of the agent."""
        await self._conversation.interact(self._create_request("brief"))
        if await self._approve_start():
            await self._conversation.wait_for_end()
        await self._add_task()

    async def cancel_agent(self) -> None:
        await self._conversation.interact(self._create_request("long"), on_running=self._conversation.cancel)
        if run_id := await self._approve_start():
            await self._conversation.cancel(run_id)
            await self._conversation.wait_for_end()
        await self._add_task()

    async def send_input_to_agent(self) -> None:
        await self._conversation.interact(self._create_request("brief"), on_running=self._send_input)
        await self._conversation.wait_for_end()

    async def _approve_start(self) -> str | None:
        """Approves the agent's start if the run waits for that, and then returns the run's id."""
        interaction = await self._conversation.wait_for_end()
        if not _is_waiting(interaction):
            return None
        await self._conversation.decide(interaction, approve=True)
        return interaction["id"]

    async def _wait_for_agent_approval(self, request: str) -> dict[str, Any]:
        """Sends the request, approves the agent's start if necessary, and waits until the agent needs an approval."""
        interaction = await self._conversation.ask(request, approve=None)
        while _is_waiting(interaction) and not _has_open_agent_approval(interaction):
            await self._conversation.decide(interaction, approve=True)
            interaction = await self._conversation.wait_for_answer(request, approve=None)
        return interaction

    def _create_request(self, kind: Literal["brief", "long", "approved"]) -> str:
        return f"{kind} work on {self.create_title().replace(' ', '')}"

    def _check_finished(self, interaction: dict[str, Any]) -> None:
        """Until a backend has found the workspace, it offers no agents; the answer may say so."""
        answer = " ".join(answers_of(interaction))
        if NO_CODER in answer:
            self._record.steps["found no agent"] += 1
            return
        report = _REPORT.search(answer)
        assert report, interaction
        self._record.finished_assignments.add(report[1])


def _is_waiting(interaction: dict[str, Any]) -> bool:
    return interaction["status"] == "WAITING_APPROVAL"


def _has_open_agent_approval(interaction: dict[str, Any]) -> bool:
    return any(approval["agent"] for approval in interaction["approvals"] if approval["approved"] is None)
