"""What a person can want. A phrase is how they named one task or several: words of titles, or numbers."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["pending", "completed", "all"]


@dataclass(frozen=True)
class NewTask:
    title: str
    description: str = ""


@dataclass(frozen=True)
class Add:
    tasks: tuple[NewTask, ...]
    remark: str = ""


@dataclass(frozen=True)
class List:
    status: Status


@dataclass(frozen=True)
class Find:
    """With `told`, the phrase is what a question such as "did I call mum?" asks after."""

    phrase: str
    told: bool = False


@dataclass(frozen=True)
class Complete:
    """With `told`, the phrase is a sentence such as "called mum", whose verb need not be in the title."""

    phrase: str
    told: bool = False


@dataclass(frozen=True)
class Update:
    """Each of the readings is a phrase and the new value: "go to work to go home" can be split in two places."""

    field: Literal["title", "description"]
    readings: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Delete:
    phrase: str


@dataclass(frozen=True)
class Say:
    """Answered without tools; an aside is dropped when the message also has a request."""

    text: str
    aside: bool = False


Intent = Add | List | Find | Complete | Update | Delete | Say


def phrases_of(intent: Intent) -> tuple[str, ...]:
    match intent:
        case Complete() | Delete():
            return (intent.phrase,)
        case Update():
            return tuple(phrase for phrase, _ in intent.readings)
        case _:
            return ()
