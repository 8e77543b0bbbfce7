"""Combines the parts of a date: its day, time and repeat."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from datetime import time as clock_time

from english.atoms import Atom, Clock, Day, End, Meaning, PartOfDay, Repeat, Time
from english.calendar import add_days, add_units
from english.dates.grouping import Group
from english.phrases.times import PARTS
from english.words import WEEKDAYS, Words, word_set

_EVENING_WORDS = word_set(
    "dinner dinners supper drinks party movie movies film cinema theatre theater concert gig pub bar bbq barbecue "
    "evening table restaurant reservation opera musical nightclub disco"
)
_MORNING_WORDS = word_set("wake breakfast sunrise alarm flight flights airport")
_LATE = ("afternoon", "evening", "night", "tonight")


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


def combine_groups(words: Words, groups: Sequence[Group], clock: Clock) -> tuple[When | None, list[Atom]]:
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
