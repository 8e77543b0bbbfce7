"""Lengths of time from now, of several units: "in 1 hour 30 minutes", "2 weeks and 3 days from now"."""

import re

from english.atoms import COUNT, UNIT, Clock, Day, Meaning, Rule, Unread, list_unread, parse_count, rule
from english.calendar import add_days, add_units

_ANY_UNIT = f"(?:{UNIT}|hour|minute)"
_ANY_COUNT = rf"(?:{COUNT}|\d{{1,3}}[.,]\d\d?|\d{{1,2}} 1/2|\d{{0,2}}\u00bd|a quarter of an)"
_PART = rf"(?:{_ANY_COUNT} {_ANY_UNIT}(?: and a half)?|\d{{1,3}}m)"
_PARTS = rf"{_PART}(?:(?: ,)?(?: and| &)? {_PART}){{0,4}}"
LENGTH = f"(?P<length>{_PARTS})"
_NUMBER_AND_UNIT = re.compile(
    rf"(?<!\S)(?:(?P<count>{_ANY_COUNT}) (?P<unit>{_ANY_UNIT})(?P<half> and a half)?|(?P<minutes>\d{{1,3}})m)(?!\S)"
)
_SIZES = {"year": 525_600, "month": 43_200, "fortnight": 20_160, "week": 10_080, "day": 1_440, "hour": 60, "minute": 1}


def _read_length(clock: Clock, match: re.Match[str]) -> Meaning:
    """Reads "in 2 weeks and 3 days" as a day, and "in 1 hour 30 minutes" as a moment."""
    start = match.groupdict().get("from") or ""
    day = add_days(clock.today, 1) if start.endswith("tomorrow") else clock.today
    minutes = 0
    sizes: list[int] = []
    for part in _NUMBER_AND_UNIT.finditer(match["length"]):
        unit = part["unit"] or "minute"
        number = _parse_number(part["count"] or part["minutes"]) + (0.5 if part["half"] else 0)
        sizes.append(_SIZES[unit])
        if unit in ("hour", "minute"):
            minutes += round(number * _SIZES[unit])
        elif number != int(number) or (shifted := add_units(day, int(number), unit)) is None:
            return Unread()
        else:
            day = shifted
    if sizes != sorted(set(sizes), reverse=True) or (minutes and start.endswith(("today", "tomorrow"))):
        return Unread()
    if not minutes:
        return Day(day, is_sure=True)
    moment = clock.add_minutes(day, minutes)
    return Day(moment.date(), moment.time(), is_sure=True)


def count_minutes(length: str) -> int | None:
    """Returns the minutes of "1 hour and 30 minutes"; None for months and years, which have no fixed length."""
    parts = [*_NUMBER_AND_UNIT.finditer(length)]
    if any(part["unit"] in ("month", "year") for part in parts):
        return None
    numbers = [_parse_number(part["count"] or part["minutes"]) + (0.5 if part["half"] else 0) for part in parts]
    return round(sum(number * _SIZES[part["unit"] or "minute"] for number, part in zip(numbers, parts, strict=True)))


def _parse_number(count: str) -> float:
    fractions = {"half an": 0.5, "a quarter of an": 0.25}
    digits = re.sub(" 1/2|\u00bd", ".5", count).replace(",", ".")
    return fractions.get(count) or (float(digits) if digits[0] in "0123456789." else parse_count(count))


LENGTHS: tuple[Rule, ...] = (
    rule(rf"(?:with)?in (?:about )?(?:the next )?{LENGTH}(?: '|'s)?(?: time)?", _read_length),
    rule(rf"{LENGTH} (?P<from>from (?:now|today|tomorrow))", _read_length),
    *list_unread(rf"(?:with)?in (?:{_PARTS})(?: and| or| to)? \d{{1,3}}(?=$| [^:/])"),
)
