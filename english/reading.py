"""Combines the parts of a text into a task."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from datetime import time as clock_time
from typing import Literal

from english.atoms import (
    Atom,
    Clock,
    DateOrder,
    Day,
    End,
    Label,
    Moment,
    PartOfDay,
    Priority,
    Repeat,
    Start,
    Time,
    Unread,
)
from english.calendar import add_days, add_units
from english.grouping import Group, choose_dates, find_atoms, group_atoms, is_edge_tag
from english.times import PARTS
from english.words import WEEKDAYS, Words, split_words, word_set

Kind = Literal["date", "time", "repeat", "priority", "label", "unread"]
_EVENING_WORDS = word_set(
    "dinner dinners supper drinks party movie movies film cinema theatre theater concert gig pub bar bbq barbecue "
    "evening table restaurant reservation opera musical nightclub disco"
)
_MORNING_WORDS = word_set("wake breakfast sunrise alarm")
_LATE = ("afternoon", "evening", "night", "tonight")


@dataclass(frozen=True)
class Span:
    """A range of characters and its kind."""

    start: int
    end: int
    kind: Kind
    text: str
    reason: str = ""
    """Why it is not understood, such as "28 November is a Saturday."."""


@dataclass(frozen=True)
class When:
    """A day, with an optional time and repeat; for a time without a day, the next day with that time."""

    day: date
    time: clock_time | None = None
    repeat: str | None = None
    is_time_only: bool = False

    @property
    def due(self) -> str:
        """Returns the format of the task tools, which check the weekday."""
        clock = f" {self.time:%H:%M}" if self.time else ""
        return f"{WEEKDAYS[self.day.weekday()][:3].title()} {self.day}{clock}"


@dataclass(frozen=True)
class ParsedTask:
    title: str
    when: When | None = None
    priority: str | None = None
    labels: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    """In order and without overlaps. Words of the kind `unread` look like a date and stay in the title."""

    @property
    def unread(self) -> tuple[str, ...]:
        return tuple(span.text for span in self.spans if span.kind == "unread")


@dataclass
class _Parts:
    """The parts of the chosen groups."""

    days: set[date] = field(default_factory=set)
    starts: set[date] = field(default_factory=set)
    moments: list[datetime] = field(default_factory=list)
    times: list[Time] = field(default_factory=list)
    part: str = ""
    repeats: list[Repeat] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    is_doubtful: bool = False


def read_task(text: str, now: datetime, order: DateOrder | None = None, *, dates: bool = True) -> ParsedTask:
    """Reads a line as a new task; without `dates` words about time stay in the title."""
    words, clock = split_words(text), Clock(now, order)
    atoms = find_atoms(words, clock)
    groups = group_atoms(words, atoms) if dates else []
    wide = [
        *(atom for group in groups for atom in group.atoms),
        *(atom for atom in atoms if isinstance(atom.meaning, Priority | Label)),
    ]
    chosen = choose_dates(words, groups, wide)
    when, used = _combine(words, chosen, clock)
    tags = _list_edge_tags(words, atoms, wide)
    removed = [*used, *(atom for atom, _ in tags)]
    title = _render_title(words, [atom for atom in removed if not getattr(atom.meaning, "is_range", False)])
    if not title.strip("\"'` "):
        when, used, tags, title = None, [], [], text.strip()
    spans = [*(_create_span(words, atom) for atom in (*used, *(atom for atom, _ in tags)))]
    spans += _list_not_understood(words, groups, atoms if dates else [], used, has_date=when is not None)
    levels = [atom.meaning.level for atom, _ in tags if isinstance(atom.meaning, Priority)]
    labels = dict.fromkeys(name for atom, name in tags if isinstance(atom.meaning, Label))
    level = levels[-1] if levels and levels[-1] != "none" else None
    return ParsedTask(
        _remove_quotes(title), when, level, tuple(labels), tuple(sorted(spans, key=lambda span: span.start))
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
        when, used = _combine(words, groups, clock)
        if when and len(used) == sum(len(group.atoms) for group in groups):
            return when
    return None


def _combine(words: Words, groups: Sequence[Group], clock: Clock) -> tuple[When | None, list[Atom]]:
    """Returns the date of all groups and its parts; nothing if they contradict each other."""
    atoms = [atom for group in groups for atom in group.atoms]
    parts = _collect(atoms)
    if parts.is_doubtful or not atoms:
        return None, []
    if parts.moments:
        moment = parts.moments[0]
        is_alone = len(parts.moments) == 1 and not (parts.days or parts.times or parts.repeats or parts.starts)
        return (When(moment.date(), moment.time()), atoms) if is_alone else (None, [])
    has_day = bool(parts.days or parts.starts or parts.repeats)
    at_time = _choose_time(words, parts, clock, has_day=has_day)
    times = {(each.hour, each.minute) for each in parts.times}
    if at_time is None and parts.times:
        if not has_day or len(times) == 1:
            return None, []
        atoms = [atom for atom in atoms if not isinstance(atom.meaning, Time)]  # several times: none is taken
    day, repeat = _choose_day(parts, at_time, clock)
    if day is None:
        return None, []
    return When(day, at_time, repeat, is_time_only=not has_day), atoms


def _collect(atoms: Sequence[Atom]) -> _Parts:
    parts = _Parts()
    for atom in atoms:
        match atom.meaning:
            case Day() as day:
                parts.days.add(day.day)
                parts.is_doubtful |= bool(day.part and parts.part and day.part != parts.part and day.part != "tonight")
                parts.part = day.part or parts.part
            case Start(day):
                parts.starts.add(day)
            case Moment(moment):
                parts.moments.append(moment)
            case Time() as at:
                parts.times.append(at)
            case PartOfDay(name):
                parts.part = parts.part if parts.part == "tonight" else name
            case Repeat() as repeat:
                parts.repeats.append(repeat)
                parts.part = repeat.part or parts.part
            case End() as end:
                parts.ends.append(end)
            case _:
                pass
    several = [parts.days, parts.starts, parts.repeats, parts.ends]
    parts.is_doubtful |= any(len(found) > 1 for found in several)
    parts.is_doubtful |= bool(parts.days and parts.starts and not parts.repeats)
    return parts


def _choose_time(words: Words, parts: _Parts, clock: Clock, *, has_day: bool) -> clock_time | None:
    """Returns the time; the words around it decide between morning and evening. None without a time, or with two."""
    if len({(each.hour, each.minute) for each in parts.times}) > 1:
        return None
    if not parts.times:
        begins = PARTS.get(parts.part) if has_day else None
        return clock_time.fromisoformat(begins) if begins else None
    first_time = parts.times[0]
    hour = first_time.hour
    if first_time.is_exact:
        is_other = (parts.part == "morning" and hour >= 12) or (parts.part in _LATE and 4 <= hour < 12)
        return None if is_other else clock_time(hour, first_time.minute)
    if parts.part in _LATE:
        if (hour == 12 and parts.part != "afternoon") or (hour < 5 and parts.part in ("night", "tonight")):
            return None
        return clock_time(hour % 12 + 12, first_time.minute)
    if parts.part == "morning":
        return clock_time(hour, first_time.minute) if 1 <= hour < 12 else None
    keys = {word.key for word in words.words}
    early, late = clock_time(hour, first_time.minute), clock_time(hour % 12 + 12, first_time.minute)
    if 1 <= hour <= 6:
        return early if hour >= 4 and not keys.isdisjoint(_MORNING_WORDS) else late
    if hour < 12 and not keys.isdisjoint(_EVENING_WORDS):
        return late
    is_evening = first_time.is_bare and not has_day and early <= clock.now.time() < late
    is_evening = is_evening and hour < 10 and clock.now.hour >= (12 if hour < 9 else 17)
    return late if is_evening and hour < 12 else early


def _choose_day(parts: _Parts, at_time: clock_time | None, clock: Clock) -> tuple[date | None, str | None]:
    """Returns the day and the rule of the repeat; no day if the repeat does not allow the named day."""
    is_past = at_time is not None and at_time < clock.now.time().replace(second=0, microsecond=0)
    named_day = next(iter(parts.days or parts.starts), None)
    if not parts.repeats:
        return named_day or add_days(clock.today, int(is_past)), None
    repeat = parts.repeats[0]
    start = next(iter(parts.starts or parts.days), None) or add_days(clock.today, int(is_past))
    first = repeat.first(start)
    if first is None or (parts.days and first not in parts.days and "FROM" not in repeat.rule):
        return None, None
    return _add_end(first, repeat.rule, parts.ends)


def _add_end(first: date, rule: str, ends: Sequence[End]) -> tuple[date | None, str | None]:
    for end in ends:
        if end.count:
            return first, f"{rule};COUNT={end.count}"
        until = end.day
        if end.span and (after := add_units(first, *end.span)):
            until = add_days(after, -1)
        if until is None or until < first:
            return None, None
        rule += f";UNTIL={until:%Y%m%d}"
    return first, rule


def _list_edge_tags(words: Words, atoms: Sequence[Atom], wide: Sequence[Atom]) -> list[tuple[Atom, str]]:
    tags = [atom for atom in atoms if isinstance(atom.meaning, Priority | Label)]
    return [(atom, words.raw(atom.end - 1).lstrip("#@")) for atom in tags if is_edge_tag(words, atom, wide)]


def _render_title(words: Words, removed: Sequence[Atom]) -> str:
    removed_words = {at for atom in removed for at in range(atom.first, atom.end)}
    if not removed_words:
        return words.text.strip()
    for at in sorted(removed_words):
        _remove_separators(words, removed_words, at)
    rest = range(max(removed_words) + 1, len(words.words))
    if all(set(words.raw(at)) <= set(".,;!") for at in rest):
        removed_words.update(rest)
    pieces: list[str] = []
    end: int | None = None
    for at, word in enumerate(words.words):
        if at in removed_words:
            end = None
        elif end is None:
            pieces.append(word.raw)
            end = word.end
        else:
            pieces[-1] += words.text[end : word.start] + word.raw
            end = word.end
    title = re.sub(r" ([,;:.!?)])(?= |$)", r"\1", " ".join(" ".join(pieces).split()))
    return title.strip(" ,;:-(\u2013")


def _remove_separators(words: Words, removed_words: set[int], at: int) -> None:
    """Removes a comma before a word, or a pair of brackets around it."""
    before = words.raw(at - 1)
    if at - 1 not in removed_words and before and before in ",;-\u2013&":
        removed_words.add(at - 1)
    opening = next((rest for rest in range(at - 1, -1, -1) if rest not in removed_words), -1)
    closing = next((right for right in range(at + 1, len(words.words)) if right not in removed_words), -1)
    if words.raw(opening) + words.raw(closing) in ("()", "[]"):
        removed_words.update((opening, closing))


def _list_not_understood(
    words: Words, groups: Sequence[Group], atoms: Sequence[Atom], used: Sequence[Atom], *, has_date: bool
) -> Iterator[Span]:
    """Yields what looks like a date and was not used."""
    chosen = {at for atom in used for at in range(atom.first, atom.end)}
    for group in groups:
        rest = [atom for atom in group.atoms if not chosen.intersection(range(atom.first, atom.end))]
        is_part_of_day = any(isinstance(atom.meaning, PartOfDay) for atom in rest) and len(rest) > 1
        if not is_part_of_day and not any(_is_reported(words, atom, has_date=has_date) for atom in rest):
            continue
        reason = next((atom.meaning.reason for atom in rest if isinstance(atom.meaning, Unread)), "")
        run: list[int] = []
        for at in range(rest[0].first, rest[-1].end + 1):
            if at < rest[-1].end and at not in chosen:
                run.append(at)
            elif run:
                yield _create_span(words, Atom(run[0], run[-1] + 1, Unread(reason=reason)))
                run = []
    for atom in atoms:
        if isinstance(atom.meaning, Unread) and atom.meaning.is_loose and not has_date:
            yield _create_span(words, atom)


def _is_reported(words: Words, atom: Atom, *, has_date: bool) -> bool:
    match atom.meaning:
        case Time(is_bare=True, is_exact=False):
            return False
        case PartOfDay() | End():
            return words.key(atom.first) == "in"
        case Day(is_short=True):
            return False
        case Day(needs_preposition=True) | Time(is_doubtful=True):
            return not has_date
        case Unread(is_quiet=True):
            return not has_date
        case _:
            return not any(word.is_corrected for word in words.words[atom.first : atom.end])


def _create_span(words: Words, atom: Atom) -> Span:
    start, end = words.words[atom.first].start, words.words[atom.end - 1].end
    kinds: dict[type, Kind] = {
        Day: "date",
        Moment: "date",
        Time: "time",
        PartOfDay: "time",
        Priority: "priority",
        Label: "label",
        Unread: "unread",
    }
    reason = atom.meaning.reason if isinstance(atom.meaning, Unread) else ""
    return Span(start, end, kinds.get(type(atom.meaning), "repeat"), words.text[start:end], reason)


def _remove_quotes(title: str) -> str:
    pairs = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d"}
    inner = title[1:-1]
    is_quoted = len(title) > 2 and pairs.get(title[0]) == title[-1] and not {title[0], title[-1]} & set(inner)
    return inner if is_quoted else title
