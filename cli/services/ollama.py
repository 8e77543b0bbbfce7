"""Finds a model of Ollama on this machine when no model is set; never one of another machine or of Ollama's cloud."""

import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import NamedTuple

PORT = 11434
SECONDS = 5.0  # for all requests; where nothing listens, the connection is refused at once


class Address(NamedTuple):
    scheme: str
    host: str
    port: int

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def is_here(self) -> bool:
        try:
            return self.scheme == "http" and ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True)
class LocalOllama:
    """The Ollama that answers at this address, and the model of it to take; without one the note says why."""

    url: str
    model: str = ""
    note: str = ""

    @property
    def settings(self) -> dict[str, str]:
        return {"LLM_PROVIDER": "ollama", "LLM_BASE_URL": f"{self.url}/v1", "LLM_MODEL": self.model}


def choose_model(environment: Mapping[str, str]) -> tuple[dict[str, str], LocalOllama | None]:
    found = find(environment) if is_wanted(environment) else None
    return {**environment, **(found.settings if found and found.model else base_url(environment))}, found


def base_url(environment: Mapping[str, str]) -> dict[str, str]:
    chosen = environment.get("LLM_PROVIDER") == "ollama" and "OLLAMA_HOST" in environment
    return {"LLM_BASE_URL": f"{address(environment).url}/v1"} if chosen and "LLM_BASE_URL" not in environment else {}


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Whether no setting chooses a provider; LLM_MODEL alone does not."""
    return not {"LLM_PROVIDER", "LLM_BASE_URL", "LLM_API_KEY", "CEREBRAS_API_KEY"} & environment.keys()


def address(environment: Mapping[str, str]) -> Address:
    """Returns where Ollama listens, by OLLAMA_HOST as Ollama itself reads it."""
    scheme, given, rest = environment.get("OLLAMA_HOST", "").strip().rpartition("://")
    default = {"http": 80, "https": 443}.get(scheme, PORT) if given else PORT
    rest = rest.partition("/")[0]
    with suppress(ValueError):
        return Address(scheme or "http", _get_address(str(ip_address(rest.strip("[]")))), default)
    host, _, port = rest.rpartition(":") if ":" in rest else (rest, "", "")
    number = int(port) if port.isdecimal() and int(port) < 65536 else default
    return Address(scheme or "http", _get_address(host.strip("[]") or "127.0.0.1"), number)


def find(environment: Mapping[str, str]) -> LocalOllama | None:
    """Looks on this machine for `SECONDS`; returns None if nothing answers as Ollama does.

    LLM_MODEL decides which model it is, or `PREFERRED`.
    """
    at = address(environment)
    if not at.is_here or not _is_listening(at):
        return None
    # Not at the top: what it imports takes longer than all else that a start does before the services.
    from cli.services.ollama_models import find_model

    found = find_model(at.url, environment.get("LLM_MODEL"), seconds=SECONDS)
    return LocalOllama(at.url, *found) if found else None


def _is_listening(at: Address) -> bool:
    try:
        socket.create_connection((at.host, at.port), SECONDS).close()
    except OSError:
        return False
    return True


def _get_address(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "localhost": "127.0.0.1"}.get(host, host)  # noqa: S104
