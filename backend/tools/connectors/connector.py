"""An MCP server of the operator's, as `mcp.json` describes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from httpx2 import URL

AgentName = Literal["researcher"]
"""The agents that may have tools of other servers.

The assistant, who changes tasks, never has. Nor has the coder, as long as an agent that has some works in a folder of
its own, where nobody would find what it writes.
"""

_SHORTEST = 6  # characters of a secret: a shorter value would be found in any text


@dataclass(frozen=True)
class Connector:
    """Either a program with a `command`, or an address, `url`.

    `tools` are those that are allowed, None for all. `read_only` is the operator's word, never the server's. `resolved`
    are the values that took the place of references, with what stands for them in the file.
    """

    name: str
    command: str | None
    url: str | None
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    directory: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    tools: frozenset[str] | None = None
    read_only: bool = False
    agents: frozenset[AgentName] = frozenset()
    timeout: float = 30
    disabled: bool = False
    resolved: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def description(self) -> str:
        """Says what it is, a program or a server, without anything that may be secret."""
        if self.command is not None:
            return f"the program {self.redacted(self.command)}"
        return f"the server at {self.redacted(URL(self.url or '').host)}"

    def allows(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools

    @property
    def reach(self) -> Sequence[object]:
        """Returns what the server is and which tools are allowed, for a fingerprint; secrets do not change it."""
        given = [*sorted(self.environment.items()), *sorted(self.headers.items())]
        what = [self.name, self.command or "", self.url or "", *self.arguments, self.directory or "", *map(str, given)]
        allowed = None if self.tools is None else sorted(self.tools)
        return [*map(self.redacted, what), allowed, self.read_only]

    def redacted(self, text: str) -> str:
        """Replaces the values of variables by the references that stand for them in the file."""
        for value, reference in sorted(self.resolved.items(), key=lambda pair: -len(pair[0])):
            if len(value) >= _SHORTEST:
                text = text.replace(value, reference)
        return text
