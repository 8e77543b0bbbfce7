"""`mcp.json`, read and checked at start: a sentence for each mistake, and none that holds a value of a variable."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from backend.tools.connectors.connector import AgentName, Connector
from common import child_environment
from common.environment import SettingsInvalid

_NAME = re.compile(r"[a-z0-9-]{1,20}")
_REFERENCE = re.compile(r"\$\{([^}]*)\}?")
_TOP = ("mcpServers", "servers")
_LONGEST_SECONDS = 600
_MUST_BE = {
    "command": "the name or path of a program",
    "args": "a list of texts",
    "env": "an object of texts",
    "cwd": "the path of a directory",
    "url": "an address, https://…",
    "headers": "an object of texts",
    "type": "stdio or http, which is Streamable HTTP",
    "tools": "a list of allowed tools; leave it out to allow all",
    "readOnly": "true or false",
    "agents": 'an empty list or ["researcher"], the only agent that may use these tools',
    "timeout": f"a number of seconds from 1 to {_LONGEST_SECONDS}",
    "disabled": "true or false",
}


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    command: str | None = Field(default=None, min_length=1)
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = Field(default=None, min_length=1)
    url: str | None = Field(default=None, pattern=r"^https?://[^/\s]+\S*$")
    headers: dict[str, str] = {}
    type: Literal["stdio", "http", "streamable-http", "streamableHttp"] | None = None
    tools: list[str] | None = Field(default=None, min_length=1)
    readOnly: bool = False  # noqa: N815 - as the file has it
    agents: list[AgentName] | None = None
    timeout: float = Field(default=30, ge=1, le=_LONGEST_SECONDS)
    disabled: bool = False

    def problem(self) -> str | None:
        """Returns why these settings of a server cannot be combined, as the rest of a sentence; None if they can."""
        if (self.command is None) == (self.url is None):
            return "needs either command (the program to start) or url (an address)."
        if self.type is not None and (self.type == "stdio") != (self.command is not None):
            return f"has the type {self.type}, and {'command' if self.command else 'url'}, which do not fit together."
        foreign = {"headers"} if self.command else {"args", "env", "cwd"}
        if wrong := sorted(foreign & self.model_fields_set):
            return f"has {wrong[0]}, which {'a program' if self.command else 'an address'} does not have."
        return None


class _Wrong(Exception):
    """Its text is the rest of a sentence about a server."""


def read_servers(file: Path | None, variables: Mapping[str, str]) -> tuple[Connector, ...]:
    """Reads `mcp.json` and puts in the variables that it names; raises `SettingsInvalid` with a sentence for each
    mistake.
    """
    if file is None:
        return ()
    try:
        found = json.loads(file.read_text())
    except OSError as error:
        raise SettingsInvalid(f"MCP_SERVERS_FILE: {file} cannot be read: {error.strerror}.") from None
    except json.JSONDecodeError as error:
        raise SettingsInvalid(f"{file} is not valid JSON: {error.msg}, in line {error.lineno}.") from None
    except (ValueError, RecursionError):
        raise SettingsInvalid(f"{file} cannot be read as JSON in UTF-8.") from None
    entries = _find_entries(found)
    if entries is None:
        raise SettingsInvalid(f'{file} must be an object with "mcpServers" or "servers", which holds the servers.')
    servers, mistakes = list[Connector](), list[str]()
    for name, entry in entries.items():
        try:
            servers.append(_create_connector(name, _parse_entry(name, entry), variables, file.parent))
        except _Wrong as error:
            mistakes += [f"{file}: the server {name!r} {line}" for line in str(error).splitlines()]
    if mistakes:
        raise SettingsInvalid("\n".join(mistakes))
    return tuple(servers)


def _find_entries(found: Any) -> dict[str, Any] | None:
    if not isinstance(found, dict):
        return None
    tops = [found[top] for top in _TOP if top in found]
    return tops[0] if len(tops) == 1 and isinstance(tops[0], dict) else None


def _parse_entry(name: str, given_: Any) -> _Entry:
    if not _NAME.fullmatch(name):
        raise _Wrong("needs another name, of 1 to 20 characters from a to z, 0 to 9 and -.")
    if not isinstance(given_, dict):
        raise _Wrong("must be an object.")
    try:
        entry = _Entry.model_validate(given_)
    except ValidationError as error:
        keys = dict.fromkeys(str(problem["loc"][0]) for problem in error.errors(include_input=False))
        raise _Wrong("\n".join(map(_describe_key, keys))) from None
    if problem := entry.problem():
        raise _Wrong(problem)
    return entry


def _describe_key(key: str) -> str:
    if key in _MUST_BE:
        return f"is wrong: {key} must be {_MUST_BE[key]}."
    return f"has the unknown key {key!r}. Known keys are {', '.join(_MUST_BE)}."


def _create_connector(name: str, entry: _Entry, variables: Mapping[str, str], directory: Path) -> Connector:
    """Creates a connector with the values of the variables that its settings name.

    Raises `_Wrong` for unusable ones.
    """
    resolved: dict[str, str] = {}

    def put_in(text: str) -> str:
        return _REFERENCE.sub(lambda found: _find_value(found, variables, resolved), text)

    # One that is not used needs no values.
    filled: Callable[[str], str] = str if entry.disabled else put_in
    url, headers = entry.url and filled(entry.url), {key: filled(value) for key, value in entry.headers.items()}
    for key, texts in (("url", [url or ""]), ("headers", [*headers, *headers.values()])):
        if any(not text.isprintable() or not text.isascii() for text in texts):
            raise _Wrong(f"cannot be reached: {key} contains a line break or another character that cannot be sent.")
    if any("\0" in text for text in resolved):
        raise _Wrong("cannot be started: the value of a variable contains a zero byte.")
    cwd = str(directory.absolute() / filled(entry.cwd)) if entry.cwd else None
    if cwd is not None and not entry.disabled and not Path(cwd).is_dir():
        raise _Wrong(f"cannot be started: its cwd {entry.cwd} is not a directory.")
    return Connector(
        name,
        entry.command and filled(entry.command),
        url,
        [filled(text) for text in entry.args],
        {key: filled(value) for key, value in entry.env.items()},
        cwd,
        headers,
        tools=None if entry.tools is None else frozenset(entry.tools),
        read_only=entry.readOnly,
        agents=_choose_agents(entry),
        timeout=entry.timeout,
        disabled=entry.disabled,
        resolved=resolved,
    )


def _choose_agents(entry: _Entry) -> frozenset[AgentName]:
    """Returns the agents that have its tools; by default the researcher for a server that only reads, and nobody for
    others.
    """
    if entry.agents is not None:
        return frozenset(entry.agents)
    return frozenset({"researcher"}) if entry.readOnly else frozenset()


def _find_value(found: re.Match[str], variables: Mapping[str, str], resolved: dict[str, str]) -> str:
    """Returns the value of the variable that a reference names and notes both in `resolved`; raises `_Wrong`."""
    kind, _, name = found[1].partition(":")
    if kind != "env" or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or not found[0].endswith("}"):
        raise _Wrong(f"has {found[0]}: the one reference that is known is ${{env:NAME}}, of a variable.")
    if child_environment.is_setting(name):
        raise _Wrong(f"may not have {found[0]}: that is a setting of this program; give it a variable of its own.")
    if not (value := variables.get(name)):
        raise _Wrong(f"has {found[0]}, and the variable {name} is not set.")
    resolved[value] = found[0]
    return value


def usable(servers: Sequence[Connector]) -> list[Connector]:
    return [server for server in servers if not server.disabled]
