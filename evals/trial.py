"""Runs one case as a user of its own, and reports what happened."""

import asyncio
import json
import time
from dataclasses import replace
from typing import Any

from common.claims import Deed
from evals import rows
from evals.case import Case
from evals.judge import TrialAnswer, TrialCall, judge
from evals.rows import Connection
from evals.stage import Stage
from todo_client import Agent, AgentEvent, ApiError, ConnectionLost, EventType, RunFailed

MINUTE = 60.0
CHAT = "eval"  # a chat with a name: nobody asks the model for another
# How the backend's sentences about temporary failures begin, which say nothing about the model's quality.
_PASSING = (
    *("The model is busy", "The model cannot be reached", "The model's service failed"),
    *("The model did not begin to answer", "The model stopped in the middle of its answer"),
)


class RequestLimit:
    """Keeps to a provider's requests a minute by pauses between messages, never in the middle of one."""

    def __init__(self, per_minute: float | None) -> None:
        self._seconds = MINUTE / per_minute if per_minute else 0.0
        self._free_at = 0.0

    async def wait(self) -> None:
        await asyncio.sleep(max(0.0, self._free_at - time.monotonic()))
        self._free_at = time.monotonic()

    def count(self, requests: int) -> None:
        self._free_at += requests * self._seconds


class CaseUser:
    def __init__(self, name: str, case: Case, connection: Connection, agent: Agent) -> None:
        self.turns: list[TrialAnswer] = []
        self.seconds: list[float] = []
        self.passing = False
        self._name, self._case, self._connection, self._agent = name, case, connection, agent
        self._logged = 0
        self._answers: list[str] = []
        self._calls: dict[str, TrialCall] = {}
        self._fault = ""
        agent.subscribe(self._handle)

    async def say(self, text: str) -> None:
        self._answers, self._calls, self._fault = [], {}, ""
        began = time.monotonic()
        try:
            reason = (await self._agent.prompt(text)).reason
        except (ApiError, ConnectionLost, RunFailed) as error:
            reason = str(error)
        fault = self._fault or ("" if reason == "completed" else reason or "error")
        self.seconds.append(round(time.monotonic() - began, 3))
        log = rows.read_changes(self._connection, self._name, self._logged)
        self._logged = log[-1][0] if log else self._logged
        self.passing = fault.startswith(_PASSING)
        answer = "\n".join(self._answers)
        fault = fault or ("" if answer else "it said nothing")
        deeds: frozenset[Deed] = frozenset(deed for _, deed in log)
        self.turns.append(TrialAnswer(answer, tuple(self._calls.values()), deeds, len(log), fault))

    def _handle(self, event: AgentEvent) -> None:
        """Notes also calls that the user rejects: they are not made, but the model wanted them."""
        data = event.data
        match event.type:
            case EventType.TOOL_CALL_START:
                self._calls[data["id"]] = TrialCall(data["name"], data["input"])
            case EventType.TOOL_CALL_END:
                self._calls[data["id"]] = replace(self._calls[data["id"]], result=_parse_result(data["output"]))
            case EventType.APPROVAL_REQUIRED:
                self._calls.setdefault(data["approval_id"], TrialCall(data["name"], data["input"]))
                self._agent.approve(data["approval_id"], approved=self._case.consents)
            case EventType.TEXT:
                self._answers.append(data["text"])
            case EventType.ERROR:
                self._fault = data["error"]
            case _:
                pass


async def run(case: Case, name: str, stage: Stage, connection: Connection, limit: RequestLimit) -> dict[str, Any]:
    """Returns the trial as it is reported; `passing` means that it failed for a temporary reason."""
    rows.seed(connection, name, case.tasks)
    before = rows.read_tasks(connection, name)
    agent = Agent(stage.url, stage.create_token(name), CHAT, time_zone=case.zone)
    user = CaseUser(name, case, connection, agent)
    for text in case.say:
        await limit.wait()
        before_answer = agent.usage.requests
        await user.say(text)
        limit.count(agent.usage.requests - before_answer)
        if user.turns[-1].fault:
            break
    verdict = judge(case, before, rows.read_tasks(connection, name), user.turns)
    calls = [call for turn in user.turns for call in turn.calls]
    return {
        "case": case.id,
        "tags": case.tags,
        "language": case.language,
        "said": case.say,
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "obeyed": verdict.obeyed,
        "answers": [turn.answer for turn in user.turns],
        "calls": [{"tool": call.tool, "arguments": call.arguments, "refused": call.result is None} for call in calls],
        **{name: getattr(agent.usage, name) for name in ("requests", "input_tokens", "output_tokens")},
        "seconds": user.seconds,
        "passing": user.passing,
    }


def _parse_result(output: str) -> Any:
    """Returns the result of a tool call; None for the sentence of an error."""
    try:
        value = json.loads(output)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
