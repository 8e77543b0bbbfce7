"""Runs one case as a user of its own, and reports what happened."""

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any

from evals import rows
from evals.case import Case
from evals.judge import TrialAnswer, TrialCall, judge
from evals.rows import Connection
from evals.stage import Stage
from todo_client.connection import ApiError, ConnectionLost
from todo_client.runs import RunEvent, Runs

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


@dataclass
class _Response:
    interaction: str = ""
    answers: list[str] = field(default_factory=list[str])
    called: dict[str, tuple[str, Any]] = field(default_factory=dict[str, tuple[str, Any]])
    results: dict[str, Any] = field(default_factory=dict[str, Any])
    asked_for: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    fault: str = ""

    @property
    def calls(self) -> list[TrialCall]:
        """Includes calls that the user rejected: they were not made, but the model wanted them."""
        made = [TrialCall(tool, arguments, self.results.get(id)) for id, (tool, arguments) in self.called.items()]
        wanted = {(call.tool, json.dumps(call.arguments)) for call in made}
        refused = [one for one in self.asked_for if (one[0], json.dumps(one[1])) not in wanted]
        return [*made, *(TrialCall(tool, arguments) for tool, arguments in refused)]


@dataclass
class CaseUser:
    name: str
    case: Case
    connection: Connection
    runs: Runs

    def __post_init__(self) -> None:
        self.turns: list[TrialAnswer] = []
        self.used = {"requests": 0, "input_tokens": 0, "output_tokens": 0}
        self.seconds: list[float] = []
        self.passing = False
        self._logged = 0

    async def say(self, text: str) -> int:
        """Sends a message and returns how many requests to the model it took."""
        began = time.monotonic()
        response = _Response()
        try:
            async with self.runs.interact(CHAT, text) as events:
                async for event in events:
                    await self._handle(event, response)
            usage = (await self.runs.get_interaction(CHAT, response.interaction))["usage"] or {}
        except (ApiError, ConnectionLost) as error:
            response.fault, usage = str(error), {}
        self.seconds.append(round(time.monotonic() - began, 3))
        for name in self.used:
            self.used[name] += usage.get(name) or 0
        log = rows.read_changes(self.connection, self.name, self._logged)
        self._logged, self.passing = log.last, response.fault.startswith(_PASSING)
        answer = "\n".join(response.answers)
        fault = response.fault or ("" if answer else "it said nothing")
        self.turns.append(TrialAnswer(answer, response.calls, log.deeds, log.writes, fault))
        return usage.get("requests") or 0

    async def _handle(self, event: RunEvent, response: _Response) -> None:
        data = event.data
        match event.name:
            case "interaction_started":
                response.interaction = data["interaction_id"]
            case "tool_call":
                response.called[data["id"]] = data["tool_name"], _parse(data["tool_input"])
            case "tool_result":
                response.results[data["id"]] = _parse_result(data["tool_output"])
            case "approval_required":
                response.asked_for.append((data["tool_name"], _parse(data["tool_input"])))
                id, approved = data["approval_id"], self.case.consents
                await self.runs.approve(CHAT, response.interaction, id, approved=approved)
            case "answer":
                response.answers.append(data["content"])
            case "error":
                response.fault = data["error"]
            case "interaction_complete" if data["status"] != "COMPLETED":
                response.fault = response.fault or data.get("reason") or data["status"]
            case _:
                pass


async def run(case: Case, name: str, stage: Stage, connection: Connection, limit: RequestLimit) -> dict[str, Any]:
    """Returns the trial as it is reported; `passing` means that it failed for a temporary reason."""
    rows.seed(connection, name, case.tasks)
    before = rows.read_tasks(connection, name)
    async with stage.person(name, case.zone) as runs:
        person = CaseUser(name, case, connection, runs)
        for text in case.say:
            await limit.wait()
            limit.count(await person.say(text))
            if person.turns[-1].fault:
                break
    verdict = judge(case, before, rows.read_tasks(connection, name), person.turns)
    calls = [call for turn in person.turns for call in turn.calls]
    return {
        "case": case.id,
        "tags": case.tags,
        "language": case.language,
        "said": case.say,
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "obeyed": verdict.obeyed,
        "answers": [turn.answer for turn in person.turns],
        "calls": [{"tool": call.tool, "arguments": call.arguments, "refused": call.result is None} for call in calls],
        **person.used,
        "seconds": person.seconds,
        "passing": person.passing,
    }


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _parse_result(output: str) -> Any:
    """Returns the result of a tool call; None for the sentence of an error."""
    value = _parse(output)
    return value if isinstance(value, dict) else None
