"""`python -m backend models`: what each provider that is set up offers, and which model would answer."""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from functools import partial

from backend.model.providers import NO_KEY, PROFILES, Endpoint, own_key, resolve
from backend.model.trials import Failed, call_a_tool, offered
from backend.settings import ModelSettings
from service.environment import or_stop, read

Report = tuple[list[str], bool]
_OFFLINE = "offline: rules instead of a language model; there is nothing to ask"


def run(arguments: Sequence[str]) -> None:
    given = _parser().parse_args(arguments)
    settings: ModelSettings = or_stop(partial(read, ModelSettings))
    used: Endpoint = or_stop(partial(resolve, settings))
    reports = asyncio.run(report(settings, used, given.ollama, check=given.check))
    sys.stdout.writelines(f"{line}\n" for lines, _ in reports for line in lines)
    if failed := sum(not is_good for _, is_good in reports):
        sys.exit(f"{failed} of {len(reports)} did not do what was asked.")


async def report(settings: ModelSettings, used: Endpoint, ollama: Sequence[str] | None, *, check: bool) -> list[Report]:
    """Of each provider the lines to print, and whether it did what it was asked."""
    ask = partial(_checked, settings) if check else partial(_listed, used)
    return await asyncio.gather(*map(ask, _configured(settings, used, ollama)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="models", description="What each provider that is set up offers.")
    parser.add_argument("--check", action="store_true", help="send one tool call through each")
    parser.add_argument("--ollama", nargs=2, metavar=("URL", "MODEL"), help="one that was found on this machine")
    return parser


def _configured(settings: ModelSettings, used: Endpoint, ollama: Sequence[str] | None) -> Iterator[Endpoint]:
    """The one that is used, those that have a key of their own, and an Ollama that was found."""
    yield used
    for name, profile in PROFILES.items():
        key = own_key(name, settings)
        if key is not None and profile is not PROFILES[used.profile.name] and profile.base_url and profile.model:
            yield Endpoint(profile, profile.base_url, key.get_secret_value(), profile.model)
    if ollama and used.profile.name != "ollama":
        url, model = ollama
        yield Endpoint(PROFILES["ollama"], url, NO_KEY, model)


async def _listed(used: Endpoint, endpoint: Endpoint) -> Report:
    if endpoint.profile.name == "offline":
        return [f"{_OFFLINE} (used)"], True
    head = f"{endpoint.profile.name}, {endpoint.base_url}{f' (used: {used.model})' if endpoint is used else ''}"
    try:
        names = await offered(endpoint)
    except Failed as failure:
        return [head, f"  {failure}"], False
    lines = [f"  {name}{' (used)' if endpoint is used and name == used.model else ''}" for name in names]
    if endpoint is used and used.model not in names:
        lines.append(f"  {used.model}, which is used, is not among them")
    return [head, *lines], True


async def _checked(settings: ModelSettings, endpoint: Endpoint) -> Report:
    if endpoint.profile.name == "offline":
        return [_OFFLINE], True
    head = f"{endpoint.profile.name}, {endpoint.model}:"
    try:
        trial = await call_a_tool(endpoint, temperature=settings.llm_temperature, max_tokens=settings.llm_max_tokens)
    except Failed as failure:
        return [f"{head} {failure}"], False
    if not trial.calls:
        return [f'{head} no call, after {trial.seconds:.1f} s; it says: "{trial.text}"'], False
    return [f"{head} called {', '.join(trial.calls)} after {trial.seconds:.1f} s"], True
