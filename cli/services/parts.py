"""The parts of a running assistant, and what one can tell of each."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from cli.processes.children import last_lines
from cli.services.restarts import Restarts


@dataclass(frozen=True)
class Service:
    """A process and how one knows that it is ready: by an address that answers 200, or by its end."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    port: int | None = None
    ready_path: str = "/ready"
    note: str = ""
    shows_output: bool = False
    """Whether its standard output is the terminal's; all else goes to its log."""
    optional: bool = False
    """Whether the others are of use without it."""


@dataclass
class Child:
    """A part that runs, or that died and waits for its next start."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    start: Callable[[], subprocess.Popen[bytes]]
    restarts: Restarts
    service: Service | None = None  # none for a part that is ready as soon as it is started
    since: float = field(default_factory=time.time)
    ready: bool = False
    ready_at: float = 0.0  # by the monotonic clock, of the last time
    was_ready: bool = False
    next_start: float | None = None  # by the monotonic clock, once it died
    answer: str = ""
    follower: TextIO | None = field(default=None, repr=False)

    @property
    def ends_by_itself(self) -> bool:
        return self.service is not None and self.service.port is None

    @property
    def is_optional(self) -> bool:
        return self.service is not None and self.service.optional


def about(child: Child) -> str:
    answer = f"it answers {child.answer}; " if child.answer and not child.ready else ""
    return f"{answer}the end of {child.log}:\n{last_lines(child.log)}"
