"""Combines the parts of a text into a task."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Literal

from english.atoms import Atom, Clock, DateOrder, Day, End, PartOfDay, Reminder, Tag, Time, Unread
from english.dates.combination import When, combine_groups
from english.dates.grouping import Group, group_atoms
from english.dates.placement import Edges, choose_dates, is_edge_tag, is_intended_alone, list_intended
from english.phrases.frames import find_frames
from english.phrases.languages import find_other_language
from english.phrases.scanner import find_atoms
from english.reminders import Choice, Clause, choose_moment, choose_reminder, find_clause
from english.title import remove_quotes, render_title
from english.words import Words, split_words

Kind = Literal["date", "time", "repeat", "remind", "priority", "label", "unread"]


@dataclass(frozen=True)
class Span:
    start: int
    end: int
    kind: Kind
    text: str
    reason: str = ""
    """Why it is not understood, such as "28 November is a Saturday."."""


@dataclass(frozen=True)
class ParsedTask:
    title: str
    when: When | None = None
    priority: str | None = None
    labels: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    """In order and without overlaps. Words of the kind `unread` look like a date and stay in the title."""
    remind: int | Literal["none"] | None = None
    """Minutes before the due time."""

    @property
    def unread(self) -> tuple[str, ...]:
        return tuple(span.text for span in self.spans if span.kind == "unread")


def read_task(text: str, now: datetime, order: DateOrder | None = None, *, dates: bool = True) -> ParsedTask:
    """Reads a line as a new task; without `dates` words about time stay in the title."""
    words, clock = split_words(text), Clock(now, order)
    atoms = find_atoms(words, clock)
    other_language = find_other_language(words, atoms) if dates else None
    timed = atoms if dates and not other_language else []
    groups = group_atoms(words, timed)
    tags = [atom for atom in atoms if isinstance(atom.meaning, Tag)]
    reminders = [atom for atom in timed if isinstance(atom.meaning, Reminder)]
    wide = [*(atom for group in groups for atom in group.atoms), *tags, *reminders]
    frames, within = find_frames(words, atoms) if dates and not other_language else ([], set[int]())
    frame = {at for part in frames for at in part}
    clause = find_clause(words, groups)
    edges = Edges(words, wide, frame.union(clause.head if clause else ()), within)
    when, used, reminder = _combine_with_clause(words, groups, clause, edges, clock)
    if reminder is None:
        frame.update(clause.head if clause else ())
        has_time = when is not None and when.time is not None
        known = frame.union(at for atom in used for at in range(atom.first, atom.end))
        reminder = choose_reminder(words, reminders, edges, known, has_time=has_time)
    tags = [atom for atom in tags if is_edge_tag(words, atom, edges)]
    unread = [_create_span(words, atom) for atom in reminder.unread]
    if other_language:
        unread += _create_unread_spans(words, other_language, {at for tag in tags for at in range(tag.first, tag.end)})
    else:
        read = [*used, *reminder.used, *reminder.unread]
        unread += _list_not_understood(words, groups, atoms if dates else [], read, edges)
    removed = [atom for atom in (*used, *tags, *reminder.used) if not getattr(atom.meaning, "is_range", False)]
    title = render_title(words, {at for atom in removed for at in range(atom.first, atom.end)} | frame)
    if not title.strip("\"'` "):
        when, used, tags, title, reminder = None, [], [], text.strip(), Choice()
    spans = [*(_create_span(words, atom) for atom in (*used, *tags, *reminder.used)), *unread]
    levels = [atom.meaning.level for atom in tags if isinstance(atom.meaning, Tag) and atom.meaning.kind == "priority"]
    labels = [words.raw(atom.end - 1).lstrip("#@") for atom in tags if atom.meaning == Tag("label")]
    return ParsedTask(
        remove_quotes(title),
        when,
        levels[-1] if levels and levels[-1] != "none" else None,
        tuple(dict.fromkeys(labels)),
        tuple(sorted(spans, key=lambda span: span.start)),
        reminder.minutes,
    )


def read_when(text: str, now: datetime, order: DateOrder | None = None, *, is_record: bool = False) -> When | None:
    """Reads a text that is only a date. A record may have a past date; without a year it is of this year."""
    clock = Clock(now, order, is_record)
    text = text.strip(" \n\t,:;()?!.")
    for prefix in ("", "on ", "at "):
        words = split_words(prefix + text)
        atoms = find_atoms(words, clock)
        groups = group_atoms(words, atoms)
        covered = {at for group in groups for atom in group.atoms for at in range(atom.first, atom.end)}
        rest = {word.key for at, word in enumerate(words.words) if at not in covered}
        if not groups or not rest <= {",", "(", ")", "and", "at", "on"} or any(group.has(Unread) for group in groups):
            continue
        when, used = combine_groups(words, groups, clock)
        if when and len(used) == sum(len(group.atoms) for group in groups):
            return when
    return None


def _combine_with_clause(
    words: Words, groups: Sequence[Group], clause: Clause | None, edges: Edges, clock: Clock
) -> tuple[When | None, list[Atom], Choice | None]:
    """Returns also the reminder, if the text ends with "remind me" and a date, and has a due time before."""
    if clause:
        first = [group for group in groups if group.end <= clause.head.start]
        when, used = combine_groups(words, choose_dates(words, first, edges), clock)
        if when and when.time:
            at, _ = combine_groups(words, clause.groups, clock)
            moment = datetime.combine(at.day, at.time) if at and at.time and not at.repeat else None
            is_time_only = at is not None and at.is_time_only
            due = datetime.combine(when.day, when.time)
            return when, used, choose_moment(words, clause, due, moment, is_time_only=is_time_only)
    return *combine_groups(words, choose_dates(words, groups, edges), clock), None


def _list_not_understood(
    words: Words, groups: Sequence[Group], atoms: Sequence[Atom], used: Sequence[Atom], edges: Edges
) -> Iterator[Span]:
    """Yields what was clearly meant as a date, because a title may have words about time, too."""
    chosen = {at for atom in used for at in range(atom.first, atom.end)}
    for group in list_intended(words, groups, edges, has_date=bool(used)):
        rest = [atom for atom in group.atoms if not chosen.intersection(range(atom.first, atom.end))]
        is_part_of_day = any(isinstance(atom.meaning, PartOfDay) for atom in rest) and len(rest) > 1
        if not is_part_of_day and not any(_is_reported(words, atom, edges, has_date=bool(used)) for atom in rest):
            continue
        reason = next((atom.meaning.reason for atom in rest if isinstance(atom.meaning, Unread)), "")
        yield from _create_unread_spans(words, range(rest[0].first, rest[-1].end), chosen, reason)
    for atom in atoms:
        is_loose = isinstance(atom.meaning, Unread) and atom.meaning.is_loose and not atom.meaning.is_silent
        if is_loose and not used and is_intended_alone(words, atom, edges):
            yield _create_span(words, atom)


def _create_unread_spans(words: Words, run: range, used: set[int], reason: str = "") -> Iterator[Span]:
    for is_unused, part in groupby(run, lambda at: at not in used):
        first, *others = part
        if is_unused:
            yield _create_span(words, Atom(first, first + len(others) + 1, Unread(reason=reason)))


def _is_reported(words: Words, atom: Atom, edges: Edges, *, has_date: bool) -> bool:
    match atom.meaning:
        case Time(is_bare=True, is_exact=False) | Day(is_short=True) | Unread(is_silent=True):
            return False
        case Day(needs_preposition=True) | Time(is_doubtful=True):
            return False
        case PartOfDay() | End():
            return words.key(atom.first) == "in"
        case Unread(is_quiet=True):
            return not has_date and is_intended_alone(words, atom, edges)
        case _:
            return not any(word.is_corrected for word in words.words[atom.first : atom.end])


def _create_span(words: Words, atom: Atom) -> Span:
    start, end = words.words[atom.first].start, words.words[atom.end - 1].end
    kind: Kind
    reason = ""
    match atom.meaning:
        case Day(is_start=False):
            kind = "date"
        case Time() | PartOfDay():
            kind = "time"
        case Tag(tag_kind):
            kind = tag_kind
        case Reminder():
            kind = "remind"
        case Unread():
            kind, reason = "unread", atom.meaning.reason
        case _:
            kind = "repeat"
    return Span(start, end, kind, words.text[start:end], reason)
