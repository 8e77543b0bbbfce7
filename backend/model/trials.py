"""What a provider offers, and whether its model calls a tool: asked once, by whoever sets it up."""

import asyncio
import json
import time
from dataclasses import dataclass

import openai
from httpx2 import HTTPError

from backend.conversation.errors import BackendError
from backend.model.client import ProviderClient
from backend.model.errors import NotAnEndpoint, describe, wrong_setup
from backend.model.providers import NO_KEY, Endpoint

SECONDS = 60  # of all that is asked of one provider
_LONGEST = 300  # characters of what a provider says
TOOL = {
    "type": "function",
    "function": {
        "name": "add_task",
        "description": "Add a task to the list.",
        "parameters": {
            "type": "object",
            "properties": {"title": {"type": "string"}},
            "required": ["title"],
            "additionalProperties": False,
        },
    },
}
ASKED = "Call add_task with the title: buy milk"


class Failed(Exception):
    """Why a provider did not do what it was asked, in its own words as far as they help, without the key."""


@dataclass(frozen=True)
class Trial:
    """What came back: the calls as they were written, and what was said."""

    calls: list[str]
    text: str
    seconds: float


async def offered(endpoint: Endpoint) -> list[str]:
    """The names of the models that the key may use; raises `Failed`."""
    client = ProviderClient(endpoint)
    try:
        async with asyncio.timeout(SECONDS):
            return sorted(_shown(name, endpoint) for name in await client.model_names())
    except _FAULTS as error:
        raise Failed(_reason(error, endpoint)) from None
    finally:
        await client.close()


async def call_a_tool(endpoint: Endpoint, *, temperature: float, max_tokens: int) -> Trial:
    """One request with one tool, as a turn makes it; raises `Failed`."""
    client = ProviderClient(endpoint)
    began = time.monotonic()
    try:
        async with asyncio.timeout(SECONDS):
            calls, text = await _answer(client, endpoint, temperature, max_tokens)
    except _FAULTS as error:
        raise Failed(_reason(error, endpoint)) from None
    finally:
        await client.close()
    return Trial([_shown(call, endpoint) for call in calls], _shown(text, endpoint), time.monotonic() - began)


async def _answer(
    client: ProviderClient, endpoint: Endpoint, temperature: float, max_tokens: int
) -> tuple[list[str], str]:
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    text = ""
    stream = await client.create(
        model=endpoint.model,
        messages=[{"role": "user", "content": ASKED}],
        tools=[TOOL],
        tool_choice="auto",
        temperature=temperature,
        max_tokens=max_tokens,
        stream=True,
        stream_options={"include_usage": True},
    )
    async for chunk in stream:
        for delta in (choice.delta for choice in chunk.choices if choice.delta):
            text += delta.content or delta.refusal or ""
            for call in delta.tool_calls or ():
                said = call.function
                names[call.index] = names.get(call.index, "") + ((said and said.name) or "")
                arguments[call.index] = arguments.get(call.index, "") + ((said and said.arguments) or "")
    return [f"{name}({arguments[index]})" for index, name in names.items()], text


_FAULTS = (openai.APIError, NotAnEndpoint, BackendError, json.JSONDecodeError, TimeoutError, HTTPError)


def _reason(error: Exception, endpoint: Endpoint) -> str:
    match error:
        case BackendError():
            return str(error)
        case openai.APIError() | NotAnEndpoint() | json.JSONDecodeError():
            reason = wrong_setup(error)
            sentence = describe(error)[0] if reason is None else f"{reason[0].upper()}{reason[1:]}."
            said = _said(error)
            return f'{sentence} It says: "{_shown(said, endpoint)}"' if said else sentence
        case TimeoutError():
            return "It did not answer in time."
        case _:
            return "The connection broke."


def _said(error: Exception) -> str | None:
    """The provider's own words. Not those by which it refuses a key: they may show a part of it."""
    if not isinstance(error, openai.APIStatusError) or error.status_code in (401, 403):
        return None
    said = error.body.get("message") if isinstance(error.body, dict) else None
    return said if isinstance(said, str) else None


def _shown(text: str, endpoint: Endpoint) -> str:
    """On one line, without the key, and without what a terminal would hide or obey."""
    if endpoint.api_key != NO_KEY:
        text = text.replace(endpoint.api_key, "…")
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in cut)
