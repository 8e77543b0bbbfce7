from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """How long a run takes, and how large the large things are."""

    rounds: int  # of each comparison: what is compared takes turns, because the machine's other work comes and goes
    seconds: float  # of each side in a round: many short ones vary less than a few long ones
    long_rounds: int  # of what takes seconds in each
    threads: int
    connections: int
    long_thread: int = 10_000
    tasks: int = 100_000
    later: int = 100
    """The turn after a start that the first one is compared with."""


UNDER_LOAD = Scale(rounds=1, seconds=1.0, long_rounds=1, threads=6_000, connections=0)

SCALES = {
    "tiny": Scale(
        rounds=1, seconds=0.2, long_rounds=1, threads=500, connections=4, long_thread=200, tasks=500, later=20
    ),
    "short": Scale(rounds=16, seconds=0.25, long_rounds=8, threads=2_000, connections=50),
    "full": Scale(rounds=40, seconds=0.6, long_rounds=20, threads=8_000, connections=200),
}
