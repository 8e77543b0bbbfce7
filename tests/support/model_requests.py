"""What the model was sent, in a form that can be compared and read."""

import itertools
import re
from typing import Any

from tests.scripted_model import ScriptedModel

Json = dict[str, Any]

_TIME = re.compile(r"<HiddenContext>\n(\w{3} \d{4}-\d\d-\d\d \d\d:\d\d, \S+(?:, calendar feed on)?)\n</HiddenContext>$")


async def requests_to(model: ScriptedModel) -> list[Json]:
    """The bodies of all finished requests, as they were sent."""
    return [request["body"] for request in await model.finished_requests()]


def agent_of(body: Json) -> str:
    """Whose request it is, by its tools."""
    names = {tool["function"]["name"] for tool in body.get("tools", ())}
    if "do_with_coder" in names or "add_task" in names:
        return "assistant"
    if "write_file" in names:
        return "coder"
    return "researcher" if "read_file" in names else "none"


def notes_of_time(body: Json) -> list[str]:
    """The day, time and zone that the model is told, one note before each message."""
    contents = [str(message["content"]) for message in body["messages"] if message["role"] == "user"]
    return [found[1] for content in contents if (found := _TIME.search(content))]


def surface_of(body: Json) -> Json:
    return {"instructions": body["messages"][0]["content"], "tools": body["tools"]}


def conversation_of(bodies: list[Json]) -> list[Json]:
    """Each request by what is new in it: parameters and messages that the one before had, too, are left out."""
    shown: list[Json] = []
    parameters: dict[str, Json] = {}
    for before, body in itertools.pairwise([{"messages": []}, *bodies]):
        agent, known = agent_of(body), before["messages"]
        short: Json = {"agent": agent}
        others = {name: value for name, value in body.items() if name not in ("messages", "tools")}
        if parameters.get(agent) != others:
            short["parameters"] = parameters[agent] = others
        if known and body["messages"][: len(known)] == known:
            short["begins with all messages of the request before"] = True
            short["messages"] = body["messages"][len(known) :]
        else:
            short["messages"] = [_without_instructions(message) for message in body["messages"]]
        shown.append(short)
    return shown


def _without_instructions(message: Json) -> Json:
    """Instructions have golden files of their own; the user's memory, which follows them, is kept."""
    if message["role"] != "system":
        return message
    memory = re.search(r"<PersonNotes>.*</PersonNotes>", message["content"], re.DOTALL)
    return {**message, "content": "<instructions>" + (f" {memory[0]}" if memory else "")}
