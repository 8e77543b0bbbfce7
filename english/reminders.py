"""Decides when a task reminds: phrases at the edges of a text, or "remind me at 9" after its date."""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from english.atoms import Atom, Reminder, Time, Unread
from english.dates.grouping import Group
from english.dates.placement import Edges
from english.phrases.tags import MAX_REMINDER, POLITE, TOO_EARLY, UNKNOWN_REMINDER
from english.words import VERBS, Words, word_set

_HALF_DAY = 12  # hours
NEEDS_TIME = "A reminder needs a time, such as 15:00."
_NOT_BEFORE = "That is not before the due time."
_TWO = "A task has one reminder."

_OF_OTHERS = word_set("to will would can could should must shall")
_ASKING = word_set("ask have let make tell get help")  # "have Bob remind me tomorrow"
_HEAD = re.compile(rf"{POLITE}remind me (?=\S)")
_BETWEEN = word_set(", ; : . ! ? - ( ) and on at for please pls thanks")


@dataclass(frozen=True)
class Clause:
    """The end of a text that is "remind me", the words of `head`, and a date."""

    head: range
    groups: tuple[Group, ...]


@dataclass(frozen=True)
class Choice:
    """When a task reminds, by which phrases, and those that are not understood, with reasons."""

    minutes: int | Literal["none"] | None = None
    used: tuple[Atom, ...] = ()
    unread: tuple[Atom, ...] = ()


def find_clause(words: Words, groups: Sequence[Group]) -> Clause | None:
    """Finds "remind me at 9" in "call mum tomorrow, remind me at 9"."""
    covered = {at for group in groups for atom in group.atoms for at in range(atom.first, atom.end)}
    for first in range(1, len(words.words) - 2):
        match = _HEAD.match(words.line, words.starts[first])
        if match is None:
            continue
        end = words.index_at(match.end())
        after = tuple(group for group in groups if group.first >= end)
        rest = {words.key(at) for at in range(end, len(words.words)) if at not in covered}
        is_end = after and rest <= _BETWEEN and all(group.end <= first or group.first >= end for group in groups)
        return Clause(range(first, end), after) if is_end and _is_of_user(words, first) else None
    return None


def choose_reminder(words: Words, atoms: Sequence[Atom], edges: Edges, known: Set[int], *, has_time: bool) -> Choice:
    """Of a text with a due time or without; `known` are the words of its date, and polite ones like "remind me to"."""
    is_framed = any(words.key(at) in ("remind", "reminder") for at in known)
    phrases = [
        (atom, atom.meaning)
        for atom in atoms
        if isinstance(atom.meaning, Reminder)
        and _is_of_user(words, atom.first)
        and (edges.reach_on_from(atom.end) or edges.reach_back_from(atom.first))
    ]
    if not is_framed and all(meaning.is_bare and atom.first - 1 not in known for atom, meaning in phrases):
        return Choice()
    if reason := _find_reason(words, phrases, has_time=has_time):
        reasons = [(atom, meaning.reason or reason) for atom, meaning in phrases]
        return Choice(unread=tuple(replace(atom, meaning=Unread(reason=each)) for atom, each in reasons))
    return Choice(phrases[0][1].minutes, (phrases[0][0],)) if phrases else Choice()


def _find_reason(words: Words, phrases: Sequence[tuple[Atom, Reminder]], *, has_time: bool) -> str:
    """Returns why phrases are not understood. A verb after one may belong to it: "… before the dentist to pack"."""
    for atom, meaning in phrases:
        if meaning.reason or "to" in {word.key for word in words.words[atom.end :]}:
            return meaning.reason or UNKNOWN_REMINDER
        if not has_time and meaning.minutes != "none":
            return NEEDS_TIME
    return _TWO if len(phrases) > 1 else ""


def choose_moment(words: Words, clause: Clause, due: datetime, at: datetime | None, *, is_time_only: bool) -> Choice:
    """Reads the reminder of a clause that names a moment before the due time; without a day, on the same day."""
    atoms = tuple(atom for group in clause.groups for atom in group.atoms)
    whole = Atom(clause.head.start, atoms[-1].end, Unread(reason=_NOT_BEFORE))
    if at is None:
        return Choice(unread=(replace(whole, meaning=Unread(reason=NEEDS_TIME)),))
    at = datetime.combine(due, at.time()) if is_time_only else at
    is_exact = any(isinstance(atom.meaning, Time) and atom.meaning.is_exact for atom in atoms)
    if is_time_only and not is_exact and at >= due and at.hour >= _HALF_DAY:
        at -= timedelta(hours=_HALF_DAY)
    minutes = (due - at) // timedelta(minutes=1)
    if minutes > MAX_REMINDER:
        return Choice(unread=(replace(whole, meaning=Unread(reason=TOO_EARLY)),))
    if minutes < 0:
        return Choice(unread=(whole,))
    return Choice(minutes, (replace(whole, meaning=Reminder(minutes)),))


def _is_of_user(words: Words, first: int) -> bool:
    """Returns whether the reminder is the user's, and not somebody else's, as in "ask Bob to remind me"."""
    if first == 0 or words.key(first - 1) in _BETWEEN or words.key(first) in ("and", "please"):
        return True
    if words.key(first) == "no" and words.key(first - 1) in VERBS:  # "buy no reminders"
        return False
    return words.key(first - 1) not in _OF_OTHERS and words.key(0) not in _ASKING
