"""The rows of the table: what was measured, what it is compared to, and what it must show."""

import operator
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Target:
    """A bound on a row's ratio, or on the figure itself."""

    bound: float
    sign: Literal["≤", "≥"] = "≤"
    of: Literal["ratio", "figure"] = "ratio"

    def __str__(self) -> str:
        return f"{self.of} {self.sign} {self.bound:g}"

    def reached(self, *, figure: float, ratio: float | None) -> bool:
        value = figure if self.of == "figure" else ratio
        assert value is not None
        return (operator.le if self.sign == "≤" else operator.ge)(value, self.bound)


TARGETS = {
    "turn p50, 1 conversation": Target(1.5),
    "turns a second, 16 conversations": Target(0.75, "≥"),
    "turn p99, 16 conversations, to its p50": Target(2),
    "first event": Target(5, of="figure"),
    "the terminal's prompt": Target(500, of="figure"),
    "a streamed token": Target(3),
    "what a follower adds to a token, 1 stream": Target(2),
    "what a follower adds to a token, 50 streams": Target(0.15),
    "a resumed reader, of a running answer": Target(50, of="figure"),
    "a resumed reader, 200 events behind": Target(50, of="figure"),
    "tool calls a second at 16": Target(0.65, "≥"),
    "tool calls a second at 16, with tokens": Target(0.30, "≥"),
    "open a long thread": Target(1.2),
    "turn in a long thread": Target(1.2),
    "memory of a streaming turn": Target(1.2),
    "first page of many tasks": Target(1.2),
    **{f"list_tasks by {name}": Target(1, of="figure") for name in ("query", "due day", "day done")},
    **{f"list_tasks by {name}": Target(4, of="figure") for name in ("label", "priority")},
    **{f"list_tasks by {name}, of many": Target(60, of="figure") for name in ("query", "due day", "day done")},
    **{f"list_tasks by {name}, of many": Target(150, of="figure") for name in ("label", "priority")},
    "first turn after /ready": Target(2),
    "transactions in a tool turn": Target(6, of="figure"),
    "round trips in a tool turn": Target(10, of="figure"),
}
GROWING = (
    "memory",
    "connections",
    "tasks",
    "descriptors",
    "the tool server's memory",
    "the tool server's descriptors",
)
UNDER_LOAD = {
    **{
        f"{load}: {name}": target
        for load in ("half load", "half load, many streams", "double load")
        for name, target in {
            "errors": Target(0, of="figure"),
            "token gap p99": Target(250, of="figure"),
            "memory at the end": Target(1.02),
        }.items()
    },
    **{f"{load}: first event p99": Target(3) for load in ("half load", "half load, many streams")},
    **{f"{load}: refused": Target(0, of="figure") for load in ("half load", "half load, many streams")},
    "double load: an answer's time p99": Target(1.1),
    "double load: time to a refusal p99": Target(1000, of="figure"),
    "double load: longest time to a refusal": Target(1000, of="figure"),
    "afterwards: first event p50": Target(1.5),
    "afterwards: answers that still run": Target(0, of="figure"),
    **{f"soak: {name} at the end": Target(1.02) for name in GROWING},
    "soak: errors": Target(0, of="figure"),
}


@dataclass(frozen=True)
class Row:
    """`ratio` is measured side by side, so it is not always exactly the figure by the baseline."""

    name: str
    figure: float
    unit: str
    baseline: float | None = None
    against: str = ""
    ratio: float | None = None

    @property
    def target(self) -> Target | None:
        return TARGETS.get(self.name) or UNDER_LOAD.get(self.name)

    @property
    def reached(self) -> bool | None:
        """None where there is no target, or nothing to hold the figure against: memory may not have grown at all."""
        if self.target is None or (self.target.of == "ratio" and self.ratio is None):
            return None
        return self.target.reached(figure=self.figure, ratio=self.ratio)

    def as_json(self) -> dict[str, Any]:
        target = str(self.target) if self.target else None
        return {**asdict(self), "target": target, "reached": self.reached}
