"""`python -m backend models`: what each provider that is set up offers, and which model would answer.

With `--check` each gets what a run sends: a message, a tool call and its output, streamed.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from backend.model.client import ProviderClient
from backend.model.failures.errors import ModelError
from backend.model.providers import PROFILES, ModelEndpoint, get_own_key, resolve
from backend.model.responses.reader import Piece
from backend.model.responses.stream import read_whole
from backend.settings import ModelSettings
from common.commands import escape_unprintable
from common.environment import read_or_stop, read_settings

Report = tuple[list[str], bool]
"""The lines to print, and whether the provider did what it was asked."""
_OFFLINE = "offline: rules instead of a language model; there is nothing to ask"
_SECONDS = 60  # for all requests to one provider
_MAX_CHARS = 300  # of what a provider sent
_TOOL = {
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
# As a run begins: instructions, a note about the day, and what the user wrote.
_MESSAGES = (
    {"role": "system", "content": "You keep a to-do list. Use the tools."},
    {"role": "user", "content": "It is Monday."},
    {"role": "user", "content": "Call add_task with the title: buy milk"},
)
_OUTPUT = '{"id": 1, "title": "buy milk"}'


def run(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="models", description="What each provider that is set up offers.")
    parser.add_argument(
        "--check", action="store_true", help="send each a message, as a conversation does, and a tool call's output"
    )
    parser.add_argument("--ollama", nargs=2, metavar=("URL", "MODEL"), help="one that was found on this machine")
    given = parser.parse_args(arguments)
    settings: ModelSettings = read_or_stop(read_settings, ModelSettings)
    used: ModelEndpoint = read_or_stop(resolve, settings)
    ask = partial(_check_model, settings) if given.check else partial(_report_listed_models, used)
    reports = asyncio.run(_ask_all(ask, _configured(settings, used, given.ollama)))
    sys.stdout.writelines(f"{escape_unprintable(line)}\n" for lines, _ in reports for line in lines)
    if failed := sum(not is_good for _, is_good in reports):
        sys.exit(f"{failed} of {len(reports)} providers failed; see above.")


async def _ask_all(
    ask: Callable[[ModelEndpoint], Awaitable[Report]], endpoints: Iterable[ModelEndpoint]
) -> list[Report]:
    return await asyncio.gather(*map(ask, endpoints))


def _configured(settings: ModelSettings, used: ModelEndpoint, ollama: Sequence[str] | None) -> Iterator[ModelEndpoint]:
    """Yields the endpoint that is used, those of providers that have their own key, and an Ollama that was found."""
    yield used
    for profile in PROFILES.values():
        key = get_own_key(profile, settings)
        if key is not None and profile is not PROFILES[used.profile.name] and profile.base_url and profile.model:
            yield ModelEndpoint(profile, profile.base_url, key.get_secret_value(), profile.model)
    if ollama and used.profile.name != "ollama":
        url, model = ollama
        yield ModelEndpoint(PROFILES["ollama"], url, "", model)


async def _report_listed_models(used: ModelEndpoint, endpoint: ModelEndpoint) -> Report:
    if endpoint.profile.name == "offline":
        return [f"{_OFFLINE} (used)"], True
    head, notes = _render_head(endpoint, endpoint.shown_url, used), list[str]()
    try:
        async with asyncio.timeout(_SECONDS), aclosing(ProviderClient(endpoint)) as client:
            for model in endpoint.models or (endpoint.model,):
                await client.capabilities.look_up(model)
                notes += [f"  {model}: {note}" for note in client.list_notes(model)]
            head = _render_head(endpoint, client.shown_url, used)
            names = sorted(_mask_key(name, endpoint) for name in await client.model_names())
    except (ModelError, TimeoutError) as error:
        return [head, *notes, f"  {_describe_error(error, endpoint)}"], False
    lines = [f"  {name}{' (used)' if endpoint is used and name == used.model else ''}" for name in names]
    if endpoint is used and used.model not in names:
        lines.append(f"  {used.model}, which is used, is not among them")
    return [head, *lines, *notes], True


def _render_head(endpoint: ModelEndpoint, url: str, used: ModelEndpoint) -> str:
    return f"{endpoint.profile.name}, {url}{f' (used: {used.model})' if endpoint is used else ''}"


async def _check_model(settings: ModelSettings, endpoint: ModelEndpoint) -> Report:
    """Checks whether the model of a provider calls a tool, and says how long it took and which settings it needs."""
    if endpoint.profile.name == "offline":
        return [_OFFLINE], True
    head = f"{endpoint.profile.name}, {endpoint.model}:"
    began = time.monotonic()
    try:
        async with asyncio.timeout(_SECONDS):
            answer, needed = await _check(endpoint, settings)
    except (ModelError, TimeoutError) as error:
        return [f"{head} {_describe_error(error, endpoint)}"], False
    seconds = time.monotonic() - began
    if not answer.calls:
        return [f'{head} no call, after {seconds:.1f} s; it says: "{_mask_key(answer.text, endpoint)}"'], False
    calls = ", ".join(_mask_key(f"{call.name}({call.arguments})", endpoint) for call in answer.calls)
    advice = [f"  set {name}={value}" for name, value in needed.items()]
    return [f"{head} called {calls} after {seconds:.1f} s", *advice], True


async def _check(endpoint: ModelEndpoint, settings: ModelSettings) -> tuple[Piece, dict[str, str]]:
    """Returns the model's first response, and the settings that its server needs, such as alternating roles.

    Raises `ModelError`.
    """
    try:
        return await _converse(endpoint, settings)
    except ModelError as error:
        if error.code != "model_request_rejected" or "alternat" not in error.words:
            raise
    alternating = replace(endpoint, profile=replace(endpoint.profile, roles="alternate"))
    answer, needed = await _converse(alternating, settings)
    return answer, {**needed, "LLM_ROLES": "alternate"}


async def _converse(endpoint: ModelEndpoint, settings: ModelSettings) -> tuple[Piece, dict[str, str]]:
    """Sends a message and, if the model calls a tool, its output. Raises `ModelError`."""
    body = {
        "model": endpoint.model,
        "messages": [*_MESSAGES],
        "tools": [_TOOL],
        "tool_choice": "auto",
        "temperature": settings.llm_temperature,
        "max_tokens": settings.llm_max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    async with aclosing(ProviderClient(endpoint)) as client:
        answer = await read_whole(client.request(body))
        if answer.calls:
            calls = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in answer.calls
            ]
            outputs = [{"role": "tool", "tool_call_id": call.id, "content": _OUTPUT} for call in answer.calls]
            assistant = {"role": "assistant", "content": answer.text or None, "tool_calls": calls}
            await read_whole(client.request({**body, "messages": [*_MESSAGES, assistant, *outputs]}))
    return answer, client.needed_settings


def _describe_error(error: ModelError | TimeoutError, endpoint: ModelEndpoint) -> str:
    if not isinstance(error, ModelError):
        return "It did not answer in time."
    words = _mask_key(error.words_for_log((), endpoint.api_key), endpoint)
    sentence = error.failure.reason or str(error)
    return f'{sentence} It says: "{words}"' if words else sentence


def _mask_key(text: str, endpoint: ModelEndpoint) -> str:
    """Returns the beginning of what a provider sent, without the key."""
    text = text.replace(endpoint.api_key, "…") if endpoint.api_key else text
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}…"
