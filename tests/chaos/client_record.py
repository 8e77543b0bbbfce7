"""What the servers acknowledged to the simulated clients. It must still hold at the end, whatever was killed."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

ExpectedTask = Literal["pending", "completed", "postponed", "deleted"]


@dataclass
class ClientRecord:
    messages: dict[str, str] = field(default_factory=dict[str, str])
    """Text by the id of each message that was sent through ChatKit."""
    interactions: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Chat and message by interaction id."""
    inputs: dict[str, str] = field(default_factory=dict[str, str])
    """Text by the id of each steering message and follow-up."""
    input_runs: dict[str, str] = field(default_factory=dict[str, str])
    """Id of the run that a steering message or follow-up was sent to, by its text."""
    droppable_inputs: set[str] = field(default_factory=set[str])
    """Texts of follow-ups that a later steering message may have replaced."""
    decisions: dict[str, bool] = field(default_factory=dict[str, bool])
    """Whether each approval was approved, by its id."""
    answers: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Answers by the id of each interaction that has completed."""
    chatkit_answers: dict[str, str] = field(default_factory=dict[str, str])
    """Text by the id of each assistant message of a stream of ChatKit that was read to its end."""
    keyed_texts: set[str] = field(default_factory=set[str])
    """Texts that were sent with an idempotency key, each perhaps several times."""
    expected_tasks: dict[str, ExpectedTask] = field(default_factory=dict[str, ExpectedTask])
    """Expected state of tasks by title, after the answers that completed."""
    finished_assignments: set[str] = field(default_factory=set[str])
    """Tokens of the assignments that an answer reported as done."""
    steps: Counter[str] = field(default_factory=Counter[str])
    """How often each step of a scenario was taken, by its name."""
