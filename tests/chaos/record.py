"""What clients were told: from then on it must hold, whatever is killed."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

Wish = Literal["there", "completed", "postponed", "deleted"]


@dataclass
class Record:
    """By id, where nothing else is said."""

    messages: dict[str, str] = field(default_factory=dict[str, str])
    """Messages at ChatKit's door, and their texts."""
    interactions: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """The chat of each, and its message."""
    inputs: dict[str, str] = field(default_factory=dict[str, str])
    """What was said to runs that went on."""
    sent_to: dict[str, str] = field(default_factory=dict[str, str])
    """Texts of those, and the run that each was sent to."""
    may_be_dropped: set[str] = field(default_factory=set[str])
    """Texts of follow-ups after which a steering message was sent, which takes their place."""
    decisions: dict[str, bool] = field(default_factory=dict[str, bool])
    """Approvals, and whether each was approved."""
    answers: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Interactions that have come to their end, and what each answered."""
    shown: dict[str, str] = field(default_factory=dict[str, str])
    """The assistant's messages of answers that came to their end at ChatKit's door, and their texts."""
    stopped: set[str] = field(default_factory=set[str])
    """Interactions that were cancelled."""
    sent_once: set[str] = field(default_factory=set[str])
    """Texts that were sent with a key, however often."""
    wishes: dict[str, Wish] = field(default_factory=dict[str, Wish])
    """Titles of tasks, and what became of each by answers that came to their end."""
    works: set[str] = field(default_factory=set[str])
    """Tokens of what agents have done, as answers said that came to their end."""
    done: Counter[str] = field(default_factory=Counter[str])
