"""docker-compose.yml as Docker Compose reads it: anchors, interpolation, variables passed through."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from tests.conftest import ROOT

TLS = "deploy/compose-tls.yml"
_VARIABLE = re.compile(r"\$\{([A-Z_]+)(?::[-?]([^{}]*))?\}")


def services(variables: Mapping[str, str] | None = None, *more: str) -> dict[str, dict[str, Any]]:
    """The services, with the variables of .env and the shell put in, and what further files add to them."""
    found = _whole()["services"]
    for file in more:
        for name, service in _whole(file)["services"].items():
            environment = {**found.get(name, {}).get("environment", {}), **service["environment"]}
            found[name] = {**found.get(name, {}), **service, "environment": environment}
    return _interpolated(found, variables or {})


def networks(variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    return _interpolated(_whole()["networks"], variables or {})


def volumes() -> set[str]:
    return set(_whole()["volumes"])


def environment(service: Mapping[str, Any], variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a container of the service gets; a name without a value is passed through, where it is set."""
    given = {
        name: (variables or {}).get(name) if value is None else value
        for name, value in service.get("environment", {}).items()
    }
    return {name: str(value) for name, value in given.items() if value is not None}


def start_order(services: Mapping[str, Mapping[str, Any]], names: Iterable[str] = ()) -> Iterator[str]:
    """The named services, or all, each after those it depends on; none where they depend on each other in a circle."""
    wanted = list(names or services)
    for name in wanted:
        wanted += [other for other in services[name].get("depends_on", ()) if other not in wanted]
    started: list[str] = []
    while ready := [
        name
        for name in services
        if name in wanted and name not in started and set(services[name].get("depends_on", ())) <= set(started)
    ]:
        started += ready
        yield from ready


def seconds(duration: str) -> int:
    number, unit = int(duration[:-1]), duration[-1]
    return number * {"s": 1, "m": 60}[unit]


def _whole(file: str = "docker-compose.yml") -> dict[str, Any]:
    return yaml.safe_load((ROOT / file).read_text())


def _interpolated(value: Any, variables: Mapping[str, str]) -> Any:
    match value:
        case str():
            filled, found = value, 1
            while found:  # one inside of another too
                filled, found = _VARIABLE.subn(lambda match: variables.get(match[1]) or match[2] or "", filled)
            rest = filled.split("$$")  # a `$` that is meant
            assert not any("$" in part for part in rest), f"unknown interpolation: {value}"
            return "$".join(rest)
        case dict():
            return {name: _interpolated(part, variables) for name, part in value.items()}
        case list():
            return [_interpolated(part, variables) for part in value]
    return value
