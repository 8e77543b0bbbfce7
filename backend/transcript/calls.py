"""Calls and what came of them, and what agents did for one."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from backend.conversation.items import Json
from backend.tools.connectors import names
from backend.tools.table import TOOLS
from backend.transcript.lines import Line, figures, line


class Call(NamedTuple):
    id: str
    name: str
    arguments: str

    @property
    def told(self) -> Json:
        return {"tool_name": names.for_people(self.name), "input": self.arguments}


@dataclass(frozen=True)
class Step:
    """A row of what an agent did; `usage` is what its request took, and `failed` whether its call did."""

    run_id: str
    call_id: str
    seq: int
    agent: str
    kind: str
    content: Json
    usage: Json | None
    failed: bool | None
    created_at: datetime


def of(content: Any) -> list[Call]:
    """Those of a step; what is none is passed over."""
    found = content.get("calls") if isinstance(content, dict) else None
    made: list[Call] = []
    for call in found if isinstance(found, list) else ():
        match call:
            case {"call_id": str(call_id), "name": str(name), "arguments": str(arguments)}:
                made.append(Call(call_id, name, arguments))
            case _:
                pass
    return made


def event(name: str, kind: Literal["call", "result"]) -> str:
    return f"{'tool' if names.server_of(name) is None else 'mcp'}_{kind}"


def answered(name: str, text: str, error: str | None) -> Json:
    wrong = {"level": "ERROR", "error": error} if error is not None else {}
    return {"actor": "tool", "tool_name": names.for_people(name), "output": text, **wrong}


def is_refusal(name: str, text: str) -> bool:
    """Whether a sentence stands where a task tool answers with an object."""
    if name not in TOOLS or TOOLS[name].agent is not None:
        return False
    try:
        return not isinstance(json.loads(text), dict)
    except ValueError:
        return True


def works(steps: Sequence[Step]) -> list[list[Step]]:
    """The steps of each call of this id: a provider may use it again, in another answer."""
    found: list[list[Step]] = []
    for step in steps:
        if not found or found[-1][-1].kind == "end":
            found.append([])
        found[-1].append(step)
    return found


def has_completed(work: Sequence[Step]) -> bool:
    return work[-1].kind == "end" and work[-1].content.get("outcome") == "completed"


def of_agent(work: Sequence[Step], call: str, *, model: str | None) -> Iterator[Line]:
    """Below the line of the assistant's call, which started it."""
    made: dict[str, tuple[str, str]] = {}
    before = call
    for step in work:
        own = f"{call}/{step.seq}"
        whose: dict[str, Any] = {"run_id": step.run_id, "agent": step.agent}
        match step.kind, step.content:
            case "step", {"text": str(text)}:
                took = {"actor": "assistant", "output": text or None, **figures(step.usage, model=model)}
                yield line("assistant_message", step.created_at, id=own, parent_id=before, **whose, **took)
                before = own
                for one in of(step.content):
                    made[one.id] = f"{own}/{one.id}", one.name
                    told = {"id": f"{own}/{one.id}", "parent_id": own, "actor": "assistant", **one.told}
                    yield line(event(one.name, "call"), step.created_at, **whose, **told)
            case "output", {"call_id": str(call_id), "output": str(text)} if call_id in made:
                asked, name = made[call_id]
                told = answered(name, text, text if step.failed else None)
                yield line(event(name, "result"), step.created_at, id=own, parent_id=asked, **whose, **told)
                before = own
            case _:
                pass
