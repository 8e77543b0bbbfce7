"""The table "What it costs" of docs/models.md, measured; UPDATE_GOLDEN=1 writes it.

Tokens are counted as the product estimates them: four characters of the JSON of messages and tools are one.
"""

import json
import os
import re
from collections.abc import Callable
from itertools import takewhile
from typing import Any

from backend.model.requests.bodies import describe_tools
from tests.conftest import ROOT
from tests.scripted_model import ScriptedModel
from tests.support.backends import user_at
from tests.support.golden import UPDATE
from tests.support.model_requests import Json, agent_of, requests_to
from tests.support.script import add_task, call, calls, says
from tests.support.stack import Services
from tests.support.users import User
from tests.waiting import until

DOCUMENT = ROOT / "docs/models.md"
CHARACTERS = 4
HEAD = "| input tokens of | with agents | with `AGENTS=off` | equal to the beginning of an earlier request |"
TABLE = re.compile(rf"^{re.escape(HEAD)}\n(?:\|.*\n)*", re.MULTILINE)
CONVERSATION: tuple[tuple[str, str, tuple[Json, ...]], ...] = (
    ("the first message, without a tool call", "hello", (says("Hello."),)),
    ("the second message, which adds a task: two requests", "add milk", (add_task("milk"), says("Added “milk”."))),
    (
        "the third message, which reads a list of one task: two requests",
        "what is on my list?",
        (calls(call("list_tasks")), says("There is one task: milk.")),
    ),
)
AS_TEXT = "the first message, with `LLM_TOOL_CALLS=text`"
PARTS: dict[str, Callable[[Json], Any]] = {
    AS_TEXT: lambda body: describe_tools(body)["messages"],
    "of each request without it: the instructions": lambda body: body["messages"][0],
    "of each request without it: the tools": lambda body: body["tools"],
}
MAX_TOKENS = ((2_090, 1_530), (1_710, 1_270))
"""Of the first message, with and without agents: natively, and with calls as text. Where a model runs on a processor,
users wait for a second for about ten of them."""
_CLOCK = re.compile(r"\d\d:\d\d(?=, Europe/Berlin)")
TITLE = {"when": "Write a title", "text": "Greeting"}


def serialise(body: Json, conversation: str) -> str:
    """In the order in which models read it: tools, then messages. The clock of another conversation is another."""
    text = json.dumps([*body.get("tools", ()), *body["messages"]], ensure_ascii=False)
    return _CLOCK.sub(conversation, text)


def count_tokens(*values: Any) -> int:
    return sum(len(json.dumps(value, ensure_ascii=False)) for value in values) // CHARACTERS


def count(*values: Any) -> str:
    return f"{round(count_tokens(*values), -1):,}"


async def converse(user: User, model: ScriptedModel) -> list[list[Json]]:
    """Returns the requests of each message, and last that of the title."""
    found: list[list[Json]] = []
    thread = None
    for number, (_, text, steps) in enumerate(CONVERSATION):
        await model.reset()
        await model.script(*steps, *([] if number else [TITLE]))
        thread = (await user.chatkit.say(text, thread)).thread_id
        found.append(await _read_requests(model, len(steps) + (not number)))
    titles = [body for body in found[0] if agent_of(body) == "none"]
    return [[body for body in bodies if body not in titles] for bodies in found] + [titles]


async def _read_requests(model: ScriptedModel, number: int) -> list[Json]:
    async def read() -> list[Json]:
        bodies = await requests_to(model)
        return bodies if len(bodies) == number else []

    return await until(read)


def _count_equal(text: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False)))


def find_share(bodies: list[Json], earlier: list[str]) -> str:
    """How much of the requests a provider that caches prompts has read before."""
    equal = whole = 0
    for body in bodies:
        text = serialise(body, "this")
        equal += max(_count_equal(text, other) for other in earlier)
        whole += len(text)
        earlier.append(text)
    return f"{equal / whole:.0%}".replace("%", " %")


async def measure(services: Services, model: ScriptedModel, **environment: str) -> tuple[list[list[Json]], list[str]]:
    """Returns the requests of a user's second conversation, and what a provider had read before."""
    async with user_at(services, LLM_PROVIDER="cerebras", LLM_API_KEY="key", **environment) as user:
        before = await converse(user, model)
        return await converse(user, model), [serialise(body, "other") for bodies in before for body in bodies]


async def test_costs(services: Services, model: ScriptedModel) -> None:
    with_agents, earlier = await measure(services, model)
    without, _ = await measure(services, model, AGENTS="off")
    rows = [HEAD, "|---|---|---|---|"]
    names = [name for name, _, _ in CONVERSATION]
    for name, *columns in zip([*names, "the title of a conversation, once"], with_agents, without, strict=True):
        sizes = [" + ".join(count(body["messages"], body.get("tools", [])) for body in bodies) for bodies in columns]
        share = f" {find_share(columns[0], earlier)}" if name in names else ""
        rows.append(f"| {name} | {' | '.join(sizes)} |{share} |")
    for name, select in PARTS.items():
        sizes = [count(select(requests[0][0])) for requests in (with_agents, without)]
        rows.append(f"| {name} | {' | '.join(sizes)} | |")
    for requests, (most, most_as_text) in zip((with_agents, without), MAX_TOKENS, strict=True):
        body = requests[0][0]
        assert count_tokens(body["messages"], body["tools"]) <= most
        assert count_tokens(PARTS[AS_TEXT](body)) <= most_as_text
    table, text = "\n".join([*rows, ""]), DOCUMENT.read_text()
    assert len(TABLE.findall(text)) == 1
    if os.environ.get(UPDATE):
        DOCUMENT.write_text(TABLE.sub(lambda _: table, text))
    assert table in DOCUMENT.read_text(), f"run this test with {UPDATE}=1 if the prompts are meant to be as long as now"
