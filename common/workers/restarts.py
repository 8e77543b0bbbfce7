import signal
from dataclasses import dataclass


@dataclass
class Restarts:
    """When a process that died is started again: at once, then after pauses that double, in the end no more."""

    pause_seconds: float = 1.0  # before the second start
    healthy_seconds: float = 60.0  # who has served for so long begins anew
    most_deaths: int = 5
    deaths: int = 0

    def after_death(self, served_seconds: float) -> float | None:
        """Seconds until the next start; None for no more. `served_seconds`: how long it had been ready."""
        self.deaths = 1 if served_seconds >= self.healthy_seconds else self.deaths + 1
        if self.deaths >= self.most_deaths:
            return None
        return 0.0 if self.deaths == 1 else self.pause_seconds * 2 ** (self.deaths - 2)


def ending(code: int) -> str:
    """How a process ended, told by its exit code as `multiprocessing` and `subprocess` have it."""
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
