"""Messages to the assistant and the list that they must lead to: read from `cases/*.toml`, whose names are tags."""

import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

CASES = Path(__file__).parent / "cases"
LISTS = Path(__file__).parent / "lists.toml"


def _to_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


OneOf = Annotated[tuple[str, ...], BeforeValidator(_to_tuple)]
"""One text, or several of which any will do."""


class _CaseModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CaseTask(_CaseModel):
    """`due` is a day, or a day and a time in the user's time zone; empty for none. `done` is when it was completed."""

    title: str
    description: str = ""
    due: str = ""
    priority: Literal["", "high", "medium", "low"] = ""
    labels: tuple[str, ...] = ()
    repeat: str = ""
    done: datetime | None = None


class ExpectedTask(_CaseModel):
    """A task that must have been added; labels, priority and description are compared only if they are given.

    In a title or a description `*` stands for any words.
    """

    title: OneOf
    description: OneOf | None = None
    due: OneOf = ("",)
    repeat: OneOf = ("",)
    labels: tuple[str, ...] | None = None
    priority: str | None = None
    status: Literal["pending", "completed"] = "pending"


class ExpectedChange(_CaseModel):
    """How an existing task must have changed; what is not given must be unchanged."""

    deleted: bool = False
    title: OneOf | None = None
    description: OneOf | None = None
    due: OneOf | None = None
    priority: str | None = None
    labels: tuple[str, ...] | None = None
    repeat: OneOf | None = None
    status: Literal["pending", "completed"] | None = None


class Case(_CaseModel):
    """Messages of one conversation, and the expected list; tasks that are not named must be unchanged."""

    id: str
    tags: tuple[str, ...]
    now: datetime = datetime.fromisoformat("2026-11-22T10:40:00+01:00")
    zone: str = "Europe/Berlin"
    language: str = "en"
    quick: bool = False
    """Whether `--quick` includes it."""
    tasks: tuple[CaseTask, ...] = ()
    say: OneOf
    """One after the other."""
    consents: bool = False
    """Whether the user approves calls; else they reject them."""

    new: tuple[ExpectedTask, ...] = ()
    changes: Mapping[str, ExpectedChange] = {}
    """By title."""
    asks: bool = False
    """Whether the assistant must ask a question, and the last message must change nothing."""
    declines: bool = False
    """Whether it is right to say that this cannot be done."""
    reads: bool = False
    """Whether the list is asked about, so that it has to be looked up."""
    finds: tuple[str, ...] | None = None
    """The titles that are shown, or named in the answer, and no other of the list."""
    says: tuple[str, ...] = ()
    says_not: tuple[str, ...] = ()
    """Regular expressions for the last answer, whatever its case."""
    never: tuple[str, ...] = ()
    """Tools that may not be called, approved or not."""
    writes_at_most: int | None = None

    @property
    def is_question(self) -> bool:
        return self.reads or self.finds is not None


def read_cases(folder: Path = CASES, lists: Path = LISTS) -> list[Case]:
    """Reads all cases in the order of the files; `[defaults]` are those of its file."""
    named: Mapping[str, Sequence[Any]] = tomllib.loads(lists.read_text())
    cases: list[Case] = []
    for file in sorted(folder.glob("*.toml")):
        content = tomllib.loads(file.read_text())
        for given in content["case"]:
            one = content.get("defaults", {}) | given
            of_list = one.pop("list", "none" if "tasks" in given else "day")
            tasks = [*named[of_list], *given.get("tasks", ())]
            cases.append(Case.model_validate(one | {"tasks": tasks, "tags": (file.stem, *one.get("tags", ()))}))
    return cases


def select_cases(cases: Sequence[Case], *, only: Sequence[str], quick: bool) -> list[Case]:
    return [
        case for case in cases if (case.quick or not quick) and (not only or {case.id, *case.tags}.intersection(only))
    ]
