"""Decides which tool calls need the user's approval, by the setting APPROVALS."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from backend.tools.connectors.configuration import Connector
from backend.tools.connectors.names import server_of
from backend.tools.table import OF_AGENTS, TOOLS, find_tool, normalize_arguments
from common.environment import SettingsInvalid

if TYPE_CHECKING:  # commands that only read the settings do without the Agents SDK
    from backend.tools.workspace.tools import WorkspaceTools

BULK, ALWAYS, NONE = "bulk", "always", "none"
WORDS = (BULK, "agents", "connectors", ALWAYS, NONE)
MAX_DELETED = 10  # tasks that a run may delete without approval

_FOLDER = "It can write files in its own folder."
_WITH_SERVERS = "It can use {}, read the files that you added, and run programs in its own folder."
_UNCONFINED = (
    "It runs without a sandbox: it can do anything that the workspace's account can do, and run any file in the folder."
)


class Policy:
    """The setting APPROVALS: names of tools that need approval, and `WORDS`.

    Tools of the other MCP `servers` need it with the word `connectors`, unless a server only reads. Tools that run
    programs always need it where the `workspace` confines nothing. Raises `SettingsInvalid` for other words, with
    a sentence that names the setting.
    """

    def __init__(
        self,
        wanted: Sequence[str],
        *,
        servers: Sequence[Connector] = (),
        workspace: "WorkspaceTools | None" = None,
    ) -> None:
        self._wanted = frozenset(wanted)
        self._servers = {server.name: server for server in servers}
        self._workspace = workspace
        known = (*WORDS, *TOOLS, *OF_AGENTS)
        if unknown := [word for word in wanted if word not in known]:
            raise SettingsInvalid(f"APPROVALS has the unknown word {unknown[0]!r}. Known words are {', '.join(known)}.")
        if not wanted or (NONE in wanted and len(self._wanted) > 1):
            raise SettingsInvalid(f"APPROVALS must be {NONE} and nothing else, or list what needs approval.")

    @property
    def _is_unconfined(self) -> bool:
        return self._workspace is not None and self._workspace.is_unconfined

    def limits_of(self, tool: str) -> str | None:
        """Returns the last line of a tool's approval card, what it may reach. None if the table's own line is right."""
        row = find_tool(tool)
        reached = [server for server in self._servers.values() if row.agent in server.agents]
        limits = _WITH_SERVERS.format(" and ".join(f"mcp.{one.name}" for one in reached)) if reached else None
        if not self._is_unconfined:
            return limits
        if row.agent is not None:
            return f"{limits or _FOLDER} Its programs run without a sandbox, so you are asked before each one."
        return _UNCONFINED if row.runs_programs else limits

    def reach_of(self, tool: str) -> str | None:
        """Returns a fingerprint of what an approval card says that a call may reach; None if it says nothing."""
        row = find_tool(tool)
        if row.asked_with is None and not row.runs_programs:
            return None
        said = self.limits_of(tool) or (row.words.limits if row.words else "")
        if server := self._servers.get(server_of(tool) or ""):
            reach = server.reach
        else:
            reach = [one.reach for one in self._servers.values() if row.agent in one.agents] or None
        return hashlib.sha256(json.dumps([said, reach]).encode()).hexdigest()

    def may_ask(self, tool: str) -> bool:
        return self._must_ask_about(tool) or (BULK in self._wanted and find_tool(tool).deletes)

    def waits(self, tool: str, arguments: str, deleted: int) -> bool:
        """Whether this call needs approval, if the run will then have deleted `deleted` tasks.

        An undo never does, nor a call whose arguments are no object, or not possible: it cannot be made, and the model
        reads why.
        """
        given = arguments_of(arguments)
        is_possible = find_tool(tool).is_possible
        if given is None or (is_possible is not None and not is_possible(given)):
            return False
        if not self.may_ask(tool) or normalize_arguments(tool, given).get("undo") is True:
            return False
        return self._must_ask_about(tool) or (deleted > MAX_DELETED and count_deleted(tool, arguments) > 0)

    def _must_ask_about(self, tool: str) -> bool:
        """Whether the user is asked before this tool, by APPROVALS or always, as of programs without confinement."""
        if find_tool(tool).asks_always or (find_tool(tool).runs_programs and self._is_unconfined):
            return True
        server = self._servers.get(server_of(tool) or "")
        word = None if server is not None and server.read_only else find_tool(tool).asked_with
        return not self._wanted.isdisjoint((ALWAYS, tool, word))


def count_deleted(tool: str, arguments: str) -> int:
    return len(list_named_tasks(arguments_of(arguments) or {}, "task_id")) if find_tool(tool).deletes else 0


def list_named_tasks(given: Mapping[str, Any], first: str) -> list[str]:
    """Returns what a call names by an argument and `also`; as the tools do, it reads a list in a text.

    A task is named once. A title is a text, whatever it looks like, and two equal ones are two tasks.
    """
    value, also = given.get(first), _parse_list(given.get("also"))
    if first == "title":
        return [*map(str, [value] if isinstance(value, str) and value else _parse_list(value)), *map(str, also)]
    return list(dict.fromkeys(map(str, [*_parse_list(value), *also])))


def arguments_of(text: str) -> dict[str, Any] | None:
    """Returns the arguments of a call, or None if they are no JSON object."""
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _parse_list(value: Any) -> list[Any]:
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if isinstance(value, list):
        return value
    return [] if value in (None, "") else [value]
