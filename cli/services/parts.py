"""The parts of a running assistant, and when one that died is started again."""

import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cli.processes.children import read_last_lines


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
class Restarts:
    """When a part that died is started again: at once, then after pauses that double, then slowly."""

    pause_seconds: float = 1.0  # before the second start
    healthy_seconds: float = 60.0  # a part that was ready for so long begins anew
    quick: int = 4
    slow_seconds: float = 60.0
    deaths: int = 0

    def after_death(self, ready_seconds: float) -> float:
        """Returns the seconds until the next start, of a part that was ready for so long."""
        self.deaths = 1 if ready_seconds >= self.healthy_seconds else self.deaths + 1
        if self.is_slow:
            return self.slow_seconds
        return 0.0 if self.deaths == 1 else self.pause_seconds * 2 ** (self.deaths - 2)

    @property
    def is_slow(self) -> bool:
        return self.deaths > self.quick


@dataclass
class RunningPart:
    """A service, or something else that runs. `ready_at` is by the monotonic clock."""

    name: str
    log: Path
    start: Callable[[], subprocess.Popen[bytes]]
    restarts: Restarts
    service: Service | None = None  # none for a part that is ready as soon as it is started
    process: subprocess.Popen[bytes] | None = None  # none while it is dead
    since: float = field(default_factory=time.time)
    ready_at: float | None = None
    was_ready: bool = False
    answer: str = ""

    @property
    def ends_by_itself(self) -> bool:
        return self.service is not None and self.service.port is None

    @property
    def is_optional(self) -> bool:
        return self.service is not None and self.service.optional


def describe(part: RunningPart) -> str:
    answer = f"it answers {part.answer}; " if part.answer and part.ready_at is None else ""
    return f"{answer}the end of {part.log}:\n{read_last_lines(part.log)}"


def describe_end(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
