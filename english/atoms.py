"""The parts of a date, and the rules that recognise them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from typing import Literal

from english.words import MONTHS, WEEKDAYS

DateOrder = Literal["day-first", "month-first"]
SHORT_WEEKDAYS = tuple(name[:3] for name in WEEKDAYS)
WEEKDAY = "|".join((*WEEKDAYS, *SHORT_WEEKDAYS))
MONTH = "|".join(MONTHS)
TH = "(?:st|nd|rd|th)"
COUNT = r"(?:\d{1,3}|an?|a couple of|a couple|other|half an)"
UNIT = "(?:day|week|fortnight|month|year)"


@dataclass(frozen=True)
class Clock:
    """The time when a text is read, which has a zone if lengths of hours are to be right when clocks change."""

    moment: datetime
    order: DateOrder | None = None
    is_record: bool = False
    """Whether dates may be in the past, as in a file, where a date without a year is of this year."""

    @property
    def now(self) -> datetime:
        return self.moment.replace(tzinfo=None)

    @property
    def today(self) -> date:
        return self.moment.date()

    def add_minutes(self, day: date, minutes: int) -> datetime:
        """Returns what the clock of the user shows so many minutes after the present time of a day."""
        start = datetime.combine(day, self.moment.timetz()).replace(second=0, microsecond=0, fold=self.moment.fold)
        if start.tzinfo is None:
            return start + timedelta(minutes=minutes)
        instant = start.astimezone(UTC) + timedelta(minutes=minutes)
        return instant.astimezone(start.tzinfo).replace(tzinfo=None)


@dataclass(frozen=True)
class Day:
    day: date
    time: clock_time | None = None
    """Of "in two hours", which names a day and a time."""
    is_start: bool = False
    """Whether a repeat begins on it, if there is one."""
    is_before: bool = False
    """Whether the day before is meant, unless there is a time: "before Friday", but "before Friday 5pm"."""
    is_sure: bool = False
    """Whether the words mean this day wherever they are."""
    is_short: bool = False
    """Whether it is "sun" or "sat", which are also other words."""
    part: str = ""
    """The part of the day in its words, or "tonight"."""
    needs_preposition: bool = False
    """Whether it is a holiday, which may be the subject of a task: only "by Christmas" is a date."""
    last: date | None = None
    """The last day of a range; with a repeat it is the day on which that ends."""

    @property
    def is_range(self) -> bool:
        """Returns whether its words stay in the title, because a task has no end."""
        return self.last is not None and not self.is_start


@dataclass(frozen=True)
class Time:
    hour: int
    minute: int = 0
    is_exact: bool = False
    """Whether morning or afternoon was named, or the hour can only be one of them."""
    is_bare: bool = False
    """Whether it is only a number, as in "at 3"."""
    is_doubtful: bool = False
    """Whether it is a time only next to a day."""
    is_range: bool = False


@dataclass(frozen=True)
class PartOfDay:
    name: str


@dataclass(frozen=True)
class Repeat:
    """A rule of RFC 5545; `first` returns the first day on or after another that it allows."""

    rule: str
    first: Callable[[date], date | None]
    part: str = ""
    needs_time: bool = False
    """Whether its words may be a range of days: only beside a time they are a repeat."""

    @property
    def names_day(self) -> bool:
        """Returns whether it allows some days only: it is no "every 2 weeks", which begins on any day."""
        monday = date(2029, 1, 1)
        return any(self.first(day) != day for day in (monday, monday + timedelta(days=1)))


@dataclass(frozen=True)
class End:
    """The end of a repeat: its last day, the number of times, or a duration as a number and a unit."""

    day: date | None = None
    count: int | None = None
    span: tuple[int, str] | None = None


@dataclass(frozen=True)
class Tag:
    kind: Literal["priority", "label"]
    level: str = ""
    """Of a priority; a label is the last word as it was written."""


@dataclass(frozen=True)
class Reminder:
    """A reminder: minutes before the due time, or "none"; None with a `reason` if it is not understood."""

    minutes: int | Literal["none"] | None = None
    is_bare: bool = False
    """Whether it is only "10 minutes before", without a word for reminders."""
    reason: str = ""


@dataclass(frozen=True)
class Unread:
    """Words about time without a meaning for a task, or with several."""

    is_quiet: bool = False
    """Whether they are reported only at the end of a text without a date."""
    is_loose: bool = False
    """Whether they may be a name or a number, so that a date next to them remains valid."""
    is_silent: bool = False
    """Whether they are never reported, because nobody means them as the date of a task: "yesterday", "monday's"."""
    is_plain: bool = False
    """Whether they are reported wherever they are."""
    reason: str = ""
    """The weekday of a date, if the text names another one."""


UNREAD = Unread()
Meaning = Day | Time | PartOfDay | Repeat | End | Tag | Reminder | Unread
Rule = tuple[re.Pattern[str], Callable[[Clock, re.Match[str]], Meaning | None]]


@dataclass(frozen=True)
class Atom:
    """The words from `first` to before `end`, and their meaning."""

    first: int
    end: int
    meaning: Meaning

    @property
    def names_time(self) -> bool:
        return isinstance(self.meaning, Day | Time | Repeat) and not getattr(self.meaning, "is_short", False)


def rule(pattern: str, meaning: Callable[[Clock, re.Match[str]], Meaning | None]) -> Rule:
    """Compiles a row of a table; `meaning` returns None if the words mean nothing."""
    return re.compile(rf"(?:{pattern})(?= |$)"), meaning


def list_unread(*patterns: str, meaning: Unread = UNREAD) -> tuple[Rule, ...]:
    return tuple(rule(pattern, lambda clock, match: meaning) for pattern in patterns)


class RuleTable:
    """Rules, with one pattern that tells at once where none of them matches, which is at most words."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._any = re.compile("|".join(_without_groups(pattern.pattern) for pattern, _ in rules))

    def match(self, line: str, position: int, clock: Clock) -> tuple[int, Meaning] | None:
        """Returns the end and the meaning of the longest match at a position, of several the first."""
        longest: tuple[int, Meaning] | None = None
        if not self._any.match(line, position):
            return None
        for pattern, meaning in self._rules:
            match = pattern.match(line, position)
            if match and (longest is None or match.end() > longest[0]):
                value = meaning(clock, match)
                if value is not None:
                    longest = match.end(), value
        return longest


def _without_groups(pattern: str) -> str:
    """Returns a pattern without names, which matches whatever the pattern matches: names are unique in one."""
    return re.sub(r"\(\?P=\w+\)", ".", re.sub(r"\(\?P<\w+>", "(?:", pattern))


def match_rules(tables: Sequence[RuleTable], line: str, position: int, clock: Clock) -> tuple[int, Meaning] | None:
    matches = [match for table in tables if (match := table.match(line, position, clock))]
    return max(matches, key=lambda match: match[0], default=None)


def parse_weekday(word: str) -> int:
    """Returns 0 for Monday, also for "mon" and "mondays"."""
    return SHORT_WEEKDAYS.index(word[:3])


def parse_month(word: str) -> int:
    return MONTHS.index(word) + 1


def parse_count(word: str) -> int:
    return int(word) if word.isdigit() else 2 if "couple" in word or word == "other" else 1
