"""Days as people say them: a row for each way to say one, and how the tools' word for it is found.

A row is an expression and a function, which is given today and what the expression's groups found. To add a way of
saying a day, add a row. Ranges of days are in `ranges`.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterable
from datetime import date, timedelta

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WEEKDAY = "|".join(WEEKDAYS)
_SHORT_WEEKDAY = "mon|tues?|wed|thu(?:rs?)?|fri|sat|sun"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNTS = {word: at for at, word in enumerate(_NUMBERS, 1)} | {"a": 1, "an": 1, "a couple of": 2}
COUNT = rf"[1-9]\d{{0,2}}|{'|'.join(_COUNTS)}"
UNIT = "(day|week|month|year)s?"
_TH = "(?:st|nd|rd|th)"
_YEAR = r"(?:,? (20\d\d))?"
_ON = "(?:due )?(?:on |by |until |till |for )?(?:the )?"
_SURELY_ON = "(?:due )?(?:on|by|until|till|for|due) the "
_BEFORE = "before "
MOST_YEARS = 99
_SHIFTS = {"day": "d", "week": "w", "month": "m"}

Day = date | str | None
"""A day, or the tools' own words for one, or none."""


def count_of(word: str) -> int:
    return _COUNTS[word] if word in _COUNTS else int(word)


def weekday_of(word: str) -> int:
    """Monday is 0."""
    return next(at for at, name in enumerate(WEEKDAYS) if name.startswith(word[:3]))


def shown(day: date) -> str:
    """As the tools take it, with the weekday, which they check."""
    return f"{WEEKDAYS[day.weekday()][:3].title()} {day}"


def plus_months(day: date, months: int) -> date:
    """The same day of another month, or that month's last if it is shorter."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def plus(day: date, count: int, unit: str) -> date:
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    return plus_months(day, count * (12 if unit == "year" else 1))


def week(today: date, later: int = 0) -> date:
    """Its Monday; of this week, or one so many weeks later."""
    return today + timedelta(days=7 * later - today.weekday())


def month(today: date, later: int = 0) -> date:
    """Its first day."""
    return plus_months(today.replace(day=1), later)


def last_of_month(today: date, later: int = 0) -> date:
    return month(today, later + 1) - timedelta(days=1)


def weekend(today: date, later: int = 0) -> date:
    """Its Saturday."""
    return week(today, later) + timedelta(days=5)


def day_of_month(today: date, day: str) -> date | None:
    """The next day of that number, today being one."""
    return _first_real(today, ((month(today, more), int(day)) for more in range(9)))


def day_of_year(today: date, day: str, name: str, year: str | None = None) -> date | None:
    """The next such day, or that of the year; None if no calendar has it."""
    months = [date(of, _MONTHS.index(name[:3]) + 1, 1) for of in range(today.year, today.year + 9)]
    if year:
        today, months = date.min, [months[0].replace(year=int(year))]
    return _first_real(today, ((one, int(day)) for one in months))


def _first_real(today: date, wanted: Iterable[tuple[date, int]]) -> date | None:
    real = (of.replace(day=day) for of, day in wanted if 1 <= day <= monthrange(of.year, of.month)[1])
    return next((day for day in real if day >= today), None)


def next_weekday(today: date, word: str) -> date:
    """After today."""
    return today + timedelta(days=(weekday_of(word) - today.weekday() - 1) % 7 + 1)


def _checked(word: str, day: date | None) -> str | None:
    """The day with the weekday that was said beside it, for the tools to compare."""
    return f"{_full(word)[:3].title()} {day}" if day else None


def _shift(count: str, unit: str) -> str | None:
    number = count_of(count)
    if unit == "year":
        return f"+{12 * number}m" if number <= MOST_YEARS else None
    return f"+{number}{_SHIFTS[unit]}"


def _full(word: str) -> str:
    return WEEKDAYS[weekday_of(word)]


Row = tuple[re.Pattern[str], Callable[..., Day]]


def _rows(*rows: tuple[str, Callable[..., Day]]) -> tuple[Row, ...]:
    return tuple((re.compile(source), function) for source, function in rows)


_WORDS = _rows(
    (f"{_ON}(today|tomorrow)", lambda word: word),
    ("tonight", lambda: "today"),
    (rf"{_ON}(?:this |next |coming )?({WEEKDAY})", lambda word: word),
    (rf"(?:due )?(?:on|by|until|till|for|due|this|next) ({_SHORT_WEEKDAY})", _full),
    (rf"{_ON}(20\d\d-\d\d-\d\d)", lambda word: word),
    (rf"(?:with)?in ({COUNT}) {UNIT}(?: time)?", _shift),
    (rf"({COUNT}) {UNIT} from (?:now|today)", _shift),
)
"""Ways that need no calendar: the tools know what they mean."""
_CALENDAR = _rows(
    (rf"{_ON}day after tomorrow", lambda today: plus(today, 2, "day")),
    (rf"{_ON}(\d\d?){_TH}?(?: of)? ({MONTH})\.?{_YEAR}", day_of_year),
    (
        rf"{_ON}({MONTH})\.? (?:the )?(\d\d?){_TH}?{_YEAR}",
        lambda today, of, day, year: day_of_year(today, day, of, year),
    ),
    (
        rf"{_ON}({WEEKDAY}|{_SHORT_WEEKDAY}),? (?:the )?(\d\d?){_TH}?(?: of)? ({MONTH})\.?{_YEAR}",
        lambda today, word, day, of, year: _checked(word, day_of_year(today, day, of, year)),
    ),
    (
        rf"{_ON}({WEEKDAY}|{_SHORT_WEEKDAY}),? ({MONTH})\.? (?:the )?(\d\d?){_TH}?{_YEAR}",
        lambda today, word, of, day, year: _checked(word, day_of_year(today, day, of, year)),
    ),
    (rf"{_SURELY_ON}(\d\d?){_TH}(?: of (?:this|the) month)?", day_of_month),
    (rf"{_ON}(\d\d?){_TH} of next month", lambda today, day: day_of_month(month(today, 1), day)),
    (f"{_ON}next week", lambda today: week(today, 1)),
    (f"{_ON}(?:this|at the|on the) weekend", lambda today: max(today, weekend(today))),
    (f"{_ON}next weekend", lambda today: weekend(today, 1)),
    ("(?:at |by )?(?:the )?end of (?:the|this) week", lambda today: week(today, 1) - timedelta(days=1)),
    ("(?:at |by )?(?:the )?end of next week", lambda today: week(today, 2) - timedelta(days=1)),
    (f"{_ON}next month", lambda today: month(today, 1)),
    (f"{_ON}next year", lambda today: date(today.year + 1, 1, 1)),
    ("(?:at |by )?(?:the )?end of (?:the |this )?month", last_of_month),
    ("(?:at |by )?(?:the )?end of next month", lambda today: last_of_month(today, 1)),
    (
        rf"(?:at |by )?(?:the )?end of ({MONTH})",
        lambda today, of: last_of_month(day_of_year(last_of_month(today, -1), "1", of) or today),
    ),
    ("(?:at |by )?(?:the )?end of (?:the |this )?year", lambda today: date(today.year, 12, 31)),
    (
        "(?:at |by )?(?:the )?(?:start|beginning) of next (week|month)",
        lambda today, unit: (week, month)[unit == "month"](today, 1),
    ),
)


def without_groups(rows: Iterable[tuple[re.Pattern[str], object]]) -> str:
    """What any of the rows is said with, as one expression."""
    return "|".join(re.sub(r"\((?!\?)", "(?:", pattern.pattern) for pattern, _ in rows)


DAY = f"(?:{_BEFORE})?(?:{without_groups((*_WORDS, *_CALENDAR))})"


def day_of(said: str, today: date | None) -> Day:
    """What a day is called means; None for what is none, or is found only by the calendar while today is not known."""
    if said.startswith(_BEFORE):
        then = said.removeprefix(_BEFORE)
        last = as_date(day_of(then, today) or day_of(f"on {then}", today), today) if today else None
        return plus(last, -1, "day") if last else None
    for rows, given in ((_WORDS, ()), (_CALENDAR, (today,))):
        for pattern, function in rows if given != (None,) else ():
            if found := pattern.fullmatch(said):
                return function(*given, *found.groups())
    return None


def as_date(day: Day, today: date) -> date | None:
    """The day that a word of the tools means."""
    if isinstance(day, date) or not day:
        return day or None
    if day[0] == "+":
        unit = {letter: unit for unit, letter in _SHIFTS.items()}[day[-1]]
        return plus(today, int(day[1:-1]), unit)
    if day in WEEKDAYS:
        return next_weekday(today, day)
    if day in ("today", "tomorrow"):
        return plus(today, int(day == "tomorrow"), "day")
    try:
        return date.fromisoformat(day.split(" ")[-1])
    except ValueError:
        return None
