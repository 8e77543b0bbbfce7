"""Reads the requests to the scripted model, and renders them for golden files."""

import itertools
import re
from typing import Any

from tests.scripted_model import ScriptedModel

Json = dict[str, Any]

_TIME = re.compile(
    r"<HiddenContext>\n(\w{3} \d{4}-\d\d-\d\d \d\d:\d\d, \S+(?:, calendar feed on)?(?:, notifications on)?)"
    r"(?:\nThe [^<]*)?\n</HiddenContext>$"
)


async def requests_to(model: ScriptedModel) -> list[Json]:
    """Returns the bodies of all finished requests."""
    return [request["body"] for request in await model.finished_requests()]


def outputs_of(body: Json) -> list[str]:
    """Returns what the model read of its calls."""
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


def agent_of(body: Json) -> str:
    """Returns the name of the agent that sent a request, by its tools."""
    names = {tool["function"]["name"] for tool in body.get("tools", ())}
    if "do_with_coder" in names or "add_task" in names:
        return "assistant"
    if "write_file" in names:
        return "coder"
    return "researcher" if "read_file" in names else "none"


def list_clock_notes(body: Json) -> list[str]:
    """Returns the day, time and zone in the hidden note before each message."""
    contents = [str(message["content"]) for message in body["messages"] if message["role"] == "user"]
    return [match[1] for content in contents if (match := _TIME.search(content))]


def select_prompt(body: Json) -> Json:
    return {"instructions": body["messages"][0]["content"], "tools": body["tools"]}


def render_requests(bodies: list[Json]) -> list[Json]:
    """Leaves out the parameters and messages that the request before had, too."""
    rendered: list[Json] = []
    parameters: dict[str, Json] = {}
    for before, body in itertools.pairwise([{"messages": []}, *bodies]):
        agent, known = agent_of(body), before["messages"]
        short: Json = {"agent": agent}
        other = {name: value for name, value in body.items() if name not in ("messages", "tools")}
        if parameters.get(agent) != other:
            short["parameters"] = parameters[agent] = other
        if known and body["messages"][: len(known)] == known:
            short["begins with all messages of the request before"] = True
            short["messages"] = body["messages"][len(known) :]
        else:
            short["messages"] = [_without_instructions(message) for message in body["messages"]]
        rendered.append(short)
    return rendered


def _without_instructions(message: Json) -> Json:
    """Instructions have separate golden files; the user's memory, which follows them, is kept."""
    if message["role"] != "system":
        return message
    memory = re.search(r"<PersonNotes>.*</PersonNotes>", message["content"], re.DOTALL)
    return {**message, "content": "<instructions>" + (f" {memory[0]}" if memory else "")}
