"""`mcp.json`, read and checked at start: a sentence for each mistake, and none that holds a value of a variable."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from common import child_environment
from common.environment import SettingsInvalid

AgentName = Literal["researcher"]
"""The agents that may have tools of other servers.

The assistant, who changes tasks, never has. Nor has the coder, as long as an agent that has some works in a folder of
its own, where nobody would find what it writes.
"""

_SHORTEST = 6  # characters of a secret: a shorter value would be found in any text
_NAME = re.compile(r"[a-z0-9-]{1,20}")
_REFERENCE = re.compile(r"\$\{([^}]*)\}?")
_WITH_REFERENCES = ("command", "args", "env", "cwd", "url", "headers")
_MAX_SECONDS = 600
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
    "timeout": f"a number of seconds from 1 to {_MAX_SECONDS}",
    "disabled": "true or false",
}


def _choose_agents(settings: dict[str, Any]) -> frozenset[AgentName]:
    return frozenset[AgentName]({"researcher"}) if settings["read_only"] else frozenset[AgentName]()


class Connector(BaseModel):
    """An MCP server of the operator's: either a program with a `command`, or an address, `url`.

    `tools` are those that are allowed, None for all. `read_only` is the operator's word, never the server's.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    command: str | None = Field(default=None, min_length=1)
    arguments: list[str] = Field(default=[], alias="args")
    environment: dict[str, str] = Field(default={}, alias="env", repr=False)
    directory: str | None = Field(default=None, alias="cwd", min_length=1)
    url: str | None = Field(default=None, pattern=r"^https?://[^/\s]+\S*$")
    headers: dict[str, str] = Field(default={}, repr=False)
    type: Literal["stdio", "http", "streamable-http", "streamableHttp"] | None = None
    tools: frozenset[str] | None = Field(default=None, min_length=1, strict=False)
    read_only: bool = Field(default=False, alias="readOnly")
    agents: frozenset[AgentName] = Field(default_factory=_choose_agents, strict=False)
    timeout: float = Field(default=30, ge=1, le=_MAX_SECONDS)
    disabled: bool = False
    _name: str = PrivateAttr()
    _resolved: dict[str, str] = PrivateAttr()  # values of variables, with the references to them in the file

    def model_post_init(self, context: Any) -> None:
        self._name, self._resolved = context["name"], context["resolved"]

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("needs either command (the program to start) or url (an address).")
        key, what = ("url", "an address") if self.command is None else ("command", "a program")
        if self.type is not None and (self.type == "stdio") != (self.command is not None):
            raise ValueError(f"has the type {self.type}, and {key}, which do not fit together.")
        programs = {"arguments": "args", "environment": "env", "directory": "cwd"}
        foreign = {"headers": "headers"} if self.command else programs
        if wrong := sorted(foreign[name] for name in foreign.keys() & self.model_fields_set):
            raise ValueError(f"has {wrong[0]}, which {what} does not have.")
        for key, texts in (("url", [self.url or ""]), ("headers", [*self.headers, *self.headers.values()])):
            if any(not text.isprintable() or not text.isascii() for text in texts):
                raise ValueError(
                    f"cannot be reached: {key} contains a line break or another character that cannot be sent."
                )
        return self

    @property
    def name(self) -> str:
        return self._name

    @property
    def description(self) -> str:
        """Says what it is, a program or a server, without anything that may be secret."""
        if self.command is not None:
            return f"the program {self.redacted(self.command)}"
        return f"the server at {self.redacted(urlsplit(self.url or '').hostname or '')}"

    @property
    def reach(self) -> Sequence[object]:
        """Returns what the server is and which tools are allowed, for a fingerprint; secrets do not change it."""
        given = [*sorted(self.environment.items()), *sorted(self.headers.items())]
        what = [self.name, self.command or "", self.url or "", *self.arguments, self.directory or "", *map(str, given)]
        allowed = None if self.tools is None else sorted(self.tools)
        return [*map(self.redacted, what), allowed, self.read_only]

    def allows(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools

    def redacted(self, text: str) -> str:
        for value, reference in sorted(self._resolved.items(), key=lambda pair: -len(pair[0])):
            if len(value) >= _SHORTEST:
                text = text.replace(value, reference)
        return text


class _Wrong(Exception):
    """An entry of `mcp.json` is invalid; the text is the rest of a sentence about a server."""


def read_servers(file: Path | None, variables: Mapping[str, str]) -> tuple[Connector, ...]:
    """Reads `mcp.json`; raises `SettingsInvalid` with a sentence for each mistake."""
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
    tops = [found[key] for key in ("mcpServers", "servers") if key in found] if isinstance(found, dict) else []
    if len(tops) != 1 or not isinstance(tops[0], dict):
        raise SettingsInvalid(f'{file} must be an object with "mcpServers" or "servers", which holds the servers.')
    servers, mistakes = list[Connector](), list[str]()
    for name, entry in tops[0].items():
        try:
            servers.append(_create_connector(name, entry, variables, file.parent))
        except _Wrong as error:
            mistakes += [f"{file}: the server {name!r} {line}" for line in str(error).splitlines()]
    if mistakes:
        raise SettingsInvalid("\n".join(mistakes))
    return tuple(servers)


def _create_connector(name: str, entry: Any, variables: Mapping[str, str], directory: Path) -> Connector:
    """Checks the entry of a server and fills its references; raises `_Wrong` with a line for each mistake."""
    if not _NAME.fullmatch(name):
        raise _Wrong("needs another name, of 1 to 20 characters from a to z, 0 to 9 and -.")
    if not isinstance(entry, dict):
        raise _Wrong("must be an object.")
    settings, resolved = dict(entry), dict[str, str]()
    if settings.get("disabled") is not True:  # one that is not used needs no values
        for key in _WITH_REFERENCES:
            settings[key] = _fill(settings.get(key), variables, resolved)
    if isinstance(cwd := settings.get("cwd"), str) and cwd:
        settings["cwd"] = str(directory.absolute() / cwd)
    try:
        given = {key: value for key, value in settings.items() if value is not None}
        connector = Connector.model_validate(given, context={"name": name, "resolved": resolved})
    except ValidationError as error:
        # The agents depend on another setting, which is reported.
        problems = [problem for problem in error.errors() if problem["type"] != "default_factory_not_called"]
        raise _Wrong("\n".join(dict.fromkeys(map(_describe, problems)))) from None
    if connector.directory and not connector.disabled and not Path(connector.directory).is_dir():
        raise _Wrong(f"cannot be started: its cwd {entry['cwd']} is not a directory.")
    return connector


def _describe(problem: Any) -> str:
    if not problem["loc"]:
        return str(problem["ctx"]["error"])
    key = str(problem["loc"][0])
    if key in _MUST_BE:
        return f"is wrong: {key} must be {_MUST_BE[key]}."
    return f"has the unknown key {key!r}. Known keys are {', '.join(_MUST_BE)}."


def _fill(value: Any, variables: Mapping[str, str], resolved: dict[str, str]) -> Any:
    match value:
        case str():
            return _REFERENCE.sub(lambda found: _find_value(found, variables, resolved), value)
        case list():
            return [_fill(one, variables, resolved) for one in value]
        case dict():
            return {key: _fill(one, variables, resolved) for key, one in value.items()}
        case _:
            return value


def _find_value(found: re.Match[str], variables: Mapping[str, str], resolved: dict[str, str]) -> str:
    kind, _, name = found[1].partition(":")
    if kind != "env" or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or not found[0].endswith("}"):
        raise _Wrong(f"has {found[0]}: the one reference that is known is ${{env:NAME}}, of a variable.")
    if child_environment.is_setting(name):
        raise _Wrong(f"may not have {found[0]}: that is a setting of this program; give it a variable of its own.")
    if not (value := variables.get(name)):
        raise _Wrong(f"has {found[0]}, and the variable {name} is not set.")
    resolved[value] = found[0]
    return value


def list_enabled(servers: Sequence[Connector]) -> list[Connector]:
    return [server for server in servers if not server.disabled]
