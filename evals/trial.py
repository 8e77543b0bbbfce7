"""One case said by a person of its own, and all that is known of it afterwards."""

import json
import time
from dataclasses import dataclass, field
from typing import Any

from evals import rows
from evals.case import Case
from evals.judge import Call, Turn, judge
from evals.pace import Pace
from evals.rows import Connection
from evals.stage import Stage
from todo_client.runs import ApiError, ConnectionLost, Event, Runs

CHAT = "eval"  # a chat with a name: nobody asks the model for another
# How the backend's sentences begin of what is no fault of the model's own.
_PASSING = (
    *("The model is busy", "The model cannot be reached", "The model's service failed"),
    *("The model did not begin to answer", "The model stopped in the middle of its answer"),
)


@dataclass
class _Heard:
    """What one message was answered."""

    interaction: str = ""
    answers: list[str] = field(default_factory=list[str])
    called: dict[str, tuple[str, Any]] = field(default_factory=dict[str, tuple[str, Any]])
    results: dict[str, Any] = field(default_factory=dict[str, Any])
    asked_for: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    fault: str = ""

    @property
    def calls(self) -> list[Call]:
        """Those that the person has refused among them: they were not made, and were wanted."""
        made = [Call(tool, arguments, self.results.get(id)) for id, (tool, arguments) in self.called.items()]
        wanted = {(call.tool, json.dumps(call.arguments)) for call in made}
        refused = [one for one in self.asked_for if (one[0], json.dumps(one[1])) not in wanted]
        return [*made, *(Call(tool, arguments) for tool, arguments in refused)]


@dataclass
class Person:
    """Who says the messages of a case, in a list of their own."""

    name: str
    case: Case
    connection: Connection
    runs: Runs

    def __post_init__(self) -> None:
        self.turns: list[Turn] = []
        self.used = {"requests": 0, "input_tokens": 0, "output_tokens": 0}
        self.seconds: list[float] = []
        self.passing = False
        self._logged = 0

    async def say(self, text: str) -> int:
        """How many requests to the model it took."""
        began = time.monotonic()
        heard = _Heard()
        try:
            async with self.runs.interact(CHAT, text) as events:
                async for event in events:
                    await self._hear(event, heard)
            usage = (await self.runs.get_interaction(CHAT, heard.interaction))["usage"] or {}
        except (ApiError, ConnectionLost) as error:
            heard.fault, usage = str(error), {}
        self.seconds.append(round(time.monotonic() - began, 3))
        for name in self.used:
            self.used[name] += usage.get(name) or 0
        log = rows.changed(self.connection, self.name, self._logged)
        self._logged, self.passing = log.last, heard.fault.startswith(_PASSING)
        answer = "\n".join(heard.answers)
        fault = heard.fault or ("" if answer else "it said nothing")
        self.turns.append(Turn(answer, heard.calls, log.deeds, log.writes, fault))
        return usage.get("requests") or 0

    async def _hear(self, event: Event, heard: _Heard) -> None:
        data = event.data
        match event.name:
            case "interaction_started":
                heard.interaction = data["interaction_id"]
            case "tool_call":
                heard.called[data["id"]] = data["tool_name"], _parsed(data["tool_input"])
            case "tool_result":
                heard.results[data["id"]] = _result(data["tool_output"])
            case "approval_required":
                heard.asked_for.append((data["tool_name"], _parsed(data["tool_input"])))
                id, approved = data["approval_id"], self.case.consents
                await self.runs.approve(CHAT, heard.interaction, id, approved=approved)
            case "answer":
                heard.answers.append(data["content"])
            case "error":
                heard.fault = data["error"]
            case "interaction_complete" if data["status"] != "COMPLETED":
                heard.fault = heard.fault or data.get("reason") or data["status"]
            case _:
                pass


async def run(case: Case, name: str, stage: Stage, connection: Connection, pace: Pace) -> dict[str, Any]:
    """The trial as it is reported; `passing` tells that it failed by a fault of the moment."""
    rows.seed(connection, name, case.tasks)
    before = rows.read(connection, name)
    async with stage.person(name, case.zone) as runs:
        person = Person(name, case, connection, runs)
        for text in case.say:
            await pace.wait()
            pace.asked(await person.say(text))
            if person.turns[-1].fault:
                break
    verdict = judge(case, before, rows.read(connection, name), person.turns)
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


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _result(output: str) -> Any:
    """What a tool returned; None for the sentence with which it refused."""
    value = _parsed(output)
    if isinstance(value, dict) and isinstance(value.get("text"), str):  # as MCP wraps it
        value = _parsed(value["text"])
    return value if isinstance(value, dict) else None
