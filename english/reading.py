"""Combines the parts of a text into a task."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from datetime import time as clock_time
from itertools import groupby
from typing import Literal

from english.atoms import Atom, Clock, DateOrder, Day, End, Meaning, PartOfDay, Repeat, Tag, Time, Unread
from english.calendar import add_days, add_units
from english.frames import find_frames
from english.grouping import Group, group_atoms
from english.languages import find_other_language
from english.placement import Edges, choose_dates, is_edge_tag, is_intended_alone, list_intended
from english.scanner import find_atoms
from english.times import PARTS
from english.title import remove_quotes, render_title
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


def read_task(text: str, now: datetime, order: DateOrder | None = None, *, dates: bool = True) -> ParsedTask:
    """Reads a line as a new task; without `dates` words about time stay in the title."""
    words, clock = split_words(text), Clock(now, order)
    atoms = find_atoms(words, clock)
    other_language = find_other_language(words, atoms) if dates else None
    groups = group_atoms(words, atoms) if dates and not other_language else []
    tags = [atom for atom in atoms if isinstance(atom.meaning, Tag)]
    wide = [*(atom for group in groups for atom in group.atoms), *tags]
    frames, within = find_frames(words, atoms) if dates and not other_language else ([], set[int]())
    frame = {at for part in frames for at in part}
    edges = Edges(words, wide, frame, within)
    when, used = _combine(words, choose_dates(words, groups, edges), clock)
    tags = [atom for atom in tags if is_edge_tag(words, atom, edges)]
    if other_language:
        unread = [
            *_create_unread_spans(words, other_language, {at for tag in tags for at in range(tag.first, tag.end)})
        ]
    else:
        unread = [*_list_not_understood(words, groups, atoms if dates else [], used, edges)]
    removed = [atom for atom in (*used, *tags) if not getattr(atom.meaning, "is_range", False)]
    title = render_title(words, {at for atom in removed for at in range(atom.first, atom.end)} | frame)
    if not title.strip("\"'` "):
        when, used, tags, title = None, [], [], text.strip()
    spans = [*(_create_span(words, atom) for atom in (*used, *tags)), *unread]
    levels = [atom.meaning.level for atom in tags if isinstance(atom.meaning, Tag) and atom.meaning.kind == "priority"]
    labels = [words.raw(atom.end - 1).lstrip("#@") for atom in tags if atom.meaning == Tag("label")]
    return ParsedTask(
        remove_quotes(title),
        when,
        levels[-1] if levels and levels[-1] != "none" else None,
        tuple(dict.fromkeys(labels)),
        tuple(sorted(spans, key=lambda span: span.start)),
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
    meanings = [atom.meaning for atom in atoms]
    dated = [each for each in meanings if isinstance(each, Day | Time | Repeat)]
    moments = [each for each in dated if isinstance(each, Day) and each.time]
    if moments:
        return (When(moments[0].day, moments[0].time), atoms) if len(dated) == 1 else (None, [])
    part = _find_part_of_day(meanings)
    if part is None or not atoms:
        return None, []
    has_day = any(isinstance(each, Day | Repeat) for each in meanings)
    times = [each for each in meanings if isinstance(each, Time)]
    is_one_time = len({(each.hour, each.minute) for each in times}) == 1
    at_time = _choose_time(words, times[0], part, clock, has_day=has_day) if is_one_time else None
    if times and at_time is None:
        return None, []
    if not times and has_day and part in PARTS:
        at_time = clock_time.fromisoformat(PARTS[part])
    day, repeat = _choose_day(meanings, at_time, clock)
    return (When(day, at_time, repeat, is_time_only=not has_day), atoms) if day else (None, [])


def _find_part_of_day(meanings: Sequence[Meaning]) -> str | None:
    """Returns the last part of the day, or ""; None if two days contradict each other."""
    part = ""
    for each in meanings:
        match each:
            case Day(part=other) if other:
                if part not in ("", other) and other != "tonight":
                    return None
                part = other
            case PartOfDay(name) if part != "tonight":
                part = name
            case Repeat(part=other):
                part = other or part
            case _:
                pass
    return part


def _choose_time(words: Words, time: Time, part: str, clock: Clock, *, has_day: bool) -> clock_time | None:
    """Returns the time; the words around it decide between morning and evening. None if they contradict it."""
    hour, minute = time.hour, time.minute
    if time.is_exact:
        is_other = (part == "morning" and hour >= 12) or (part in _LATE and 4 <= hour < 12)
        return None if is_other else clock_time(hour, minute)
    if part in _LATE:
        if (hour == 12 and part != "afternoon") or (hour < 5 and part in ("night", "tonight")):
            return None
        return clock_time(hour % 12 + 12, minute)
    if part == "morning":
        return clock_time(hour, minute) if 1 <= hour < 12 else None
    keys = {word.key for word in words.words}
    early, late = clock_time(hour, minute), clock_time(hour % 12 + 12, minute)
    if 1 <= hour <= 6:
        return early if hour >= 4 and not keys.isdisjoint(_MORNING_WORDS) else late
    if hour < 12 and not keys.isdisjoint(_EVENING_WORDS):
        return late
    is_evening = time.is_bare and not has_day and early <= clock.now.time() < late
    is_evening = is_evening and hour < 10 and clock.now.hour >= (12 if hour < 9 else 17)
    return late if is_evening and hour < 12 else early


def _choose_day(
    meanings: Sequence[Meaning], at_time: clock_time | None, clock: Clock
) -> tuple[date | None, str | None]:
    """Returns the day and the rule of the repeat; no day if the parts contradict each other."""
    dated = [each for each in meanings if isinstance(each, Day)]
    days = {add_days(each.day, -int(each.is_before and at_time is None)) for each in dated if not each.is_start}
    starts = {each.day for each in dated if each.is_start}
    repeats = [each for each in meanings if isinstance(each, Repeat)]
    ends = [each for each in meanings if isinstance(each, End)]
    ends += [End(each.last) for each in dated if each.is_start and each.last]
    if any(len(parts) > 1 for parts in (days, starts, repeats, ends)) or (days and starts and not repeats):
        return None, None
    is_past = at_time is not None and at_time < clock.now.time().replace(second=0, microsecond=0)
    start = next(iter([*starts, *days]), None) or add_days(clock.today, int(is_past))
    if not repeats:
        return start if start >= clock.today or clock.is_record else None, None
    rule, first = repeats[0].rule, repeats[0].first(start)
    if first is None or (days and first not in days and "FROM" not in rule):
        return None, None
    return _add_end(first, rule, ends)


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
        case Unread():
            kind, reason = "unread", atom.meaning.reason
        case _:
            kind = "repeat"
    return Span(start, end, kind, words.text[start:end], reason)
