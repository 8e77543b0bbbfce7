import signal
from dataclasses import dataclass


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


def ending(code: int) -> str:
    """How a process ended, by its exit code as `subprocess` has it."""
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
