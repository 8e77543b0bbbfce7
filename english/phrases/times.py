"""Clock times and parts of the day."""

import re
from dataclasses import replace

from english.atoms import MONTH, UNIT, Clock, Meaning, PartOfDay, Rule, Time, Unread, list_unread, rule

PARTS = {"morning": "09:00", "afternoon": "15:00", "evening": "19:00", "night": "20:00"}
"""The time of a part of the day without an hour."""
_ABOUT = "(?:(?:at|by|from|around|about|approx|approximately|before|for|starting at) ){0,2}"
_CLOCK = r"(?P<hour>\d\d?)(?:[:.](?P<minute>\d\d))?"
_NO_DATE = rf"(?! (?:of )?(?:{MONTH}|{UNIT}|minute|hour|- \d|to \d|or \d)\b)"
_OCLOCK = "o'? ?clock"
_FOUR_DIGITS = r"(?P<hour>[01]\d|2[0-3])(?P<minute>[0-5]\d)"
_ZONES = r"(?:utc|gmt|[ecmp][sd]t|ces?t|bst|ist|jst|et|pt|(?:[a-z]+ ){1,2}time)"


def _read_12_hour(clock: Clock, match: re.Match[str]) -> Meaning:
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    if not 1 <= hour <= 12 or minute > 59:
        return Unread()
    return Time(hour % 12 + (12 if match["half"] == "pm" else 0), minute, is_exact=True)


def _read_24_hour(clock: Clock, match: re.Match[str]) -> Meaning:
    hour, minute = int(match["hour"]), match.groupdict().get("minute")
    if hour > 23 or int(minute or 0) > 59:
        return Unread()
    return Time(hour, int(minute or 0), is_exact=hour > 12 or match["hour"][0] == "0", is_bare=minute is None)


def _read_four_digits(clock: Clock, match: re.Match[str]) -> Meaning:
    return Time(int(match["hour"]), int(match["minute"]), is_exact=True)


def _need_day(meaning: Meaning) -> Meaning:
    """A number with a dot may be a price or a version; it is a time only next to a day."""
    return replace(meaning, is_doubtful=True) if isinstance(meaning, Time) else Unread(is_silent=True, is_loose=True)


def _read_spoken(clock: Clock, match: re.Match[str]) -> Meaning:
    """Reads "quarter to five" as 4:45."""
    past = {"half": 30, "quarter": 15, "a quarter": 15}.get(match["minutes"]) or int(match["minutes"].split()[0])
    hour = int(match["hour"])
    if not 1 <= hour <= 12 or past > 59:
        return Unread()
    return Time(hour, past) if match["side"] == "past" else Time((hour - 2) % 12 + 1, 60 - past)


def _read_range(clock: Clock, match: re.Match[str]) -> Meaning:
    """Reads the beginning of "2-3pm"; two plain numbers may mean anything."""
    hour, last = int(match["hour"]), int(match["last"])
    half = match["half"] or match["last_half"]
    if half and not match["half"] and hour > last:
        half = "am" if half == "pm" and hour < 12 else half
    minute = int(match["minute"] or 0)
    if hour > (12 if half else 23) or minute > 59 or (half and hour < 1):
        return Unread()
    is_pm = half == "pm" and hour < 12
    return Time(
        hour + 12 * is_pm if half != "am" else hour % 12, minute, is_exact=bool(half) or hour > 12, is_range=True
    )


TIMES: tuple[Rule, ...] = (
    rule(rf"{_ABOUT}(?:@ ?)?{_CLOCK} ?(?P<half>am|pm)(?: sharp)?", _read_12_hour),
    rule(rf"{_ABOUT}(?:@ ?)?(?P<hour>\d\d?):(?P<minute>\d\d)(?: hour| {_OCLOCK}| sharp)?", _read_24_hour),
    rule(r"(?:at |by |@ ?)(?P<hour>\d\d?)\.(?P<minute>\d\d)(?: hour)?", _read_24_hour),
    rule(r"(?P<hour>\d\d?)\.(?P<minute>\d\d)", lambda clock, match: _need_day(_read_24_hour(clock, match))),
    rule(rf"{_ABOUT}(?P<hour>\d\d?)h(?P<minute>\d\d)", _read_24_hour),
    rule(rf"(?:(?:at|by|at around|at about) |@ ?)(?P<hour>\d\d?)(?: {_OCLOCK}| sharp| hour)?{_NO_DATE}", _read_24_hour),
    rule(rf"(?:around|about) (?P<hour>\d\d?){_NO_DATE}", lambda clock, match: _need_day(_read_24_hour(clock, match))),
    rule(rf"(?P<hour>\d\d?) {_OCLOCK}", _read_24_hour),
    rule(r"(?:at |by |around |about )(?P<hour>\d\d?) (?P<minute>15|30|45)", _read_24_hour),
    rule(rf"(?=0){_FOUR_DIGITS}", lambda clock, match: _need_day(_read_four_digits(clock, match))),
    rule(
        rf"{_ABOUT}(?P<minutes>half|quarter|a quarter|\d\d?(?: minute)?) (?P<side>past) (?P<hour>\d\d?)", _read_spoken
    ),
    rule(rf"{_ABOUT}(?P<minutes>quarter|a quarter|\d\d? minute) (?P<side>to) (?P<hour>\d\d?)", _read_spoken),
    rule(r"(?:at |by )(?P<minutes>5|10|20|25) (?P<side>to) (?P<hour>\d\d?)", _read_spoken),
    rule(rf"(?:at |by ){_FOUR_DIGITS}(?: hour)?", _read_four_digits),
    rule(rf"{_FOUR_DIGITS} hour", _read_four_digits),
    rule(f"{_ABOUT}(?:noon|lunchtime)", lambda clock, _: Time(12, is_exact=True)),
    rule(
        r"(?:from |between )?(?P<hour>\d\d?)(?:[:.](?P<minute>\d\d))? ?(?P<half>am|pm)? ?(?:-|to|until|and) ?"
        r"(?P<last>\d\d?)(?:[:.]\d\d)? ?(?P<last_half>am|pm)",
        _read_range,
    ),
    rule(
        r"(?:from |between )?(?P<hour>\d\d?):(?P<minute>\d\d)(?P<half>) (?:-|to|until|and) "
        r"(?P<last>\d\d?):\d\d(?P<last_half>)",
        _read_range,
    ),
    rule(
        "(?:in the )?(?P<part>morning|afternoon|evening|am|pm)|(?:at )?(?P<night>night)",
        lambda clock, match: PartOfDay(
            {"am": "morning", "pm": "afternoon"}.get(match["part"], match["part"]) or "night"
        ),
    ),
)
NOT_TIMES = list_unread(
    rf"{_ABOUT}{_CLOCK} ?(?:am|pm)? {_ZONES}",
    r"at \d\d?(?:(?: ,| and| , and| &) \d\d?)+(?: ?(?:am|pm))?",
    "(?:at|by|around|before|about) midnight",
    r"(?:at |around |by )?half (?:\d\d?)",
    r"(?:after|past|since|until) \d\d?(?:[:.]\d\d)? ?(?:am|pm)|(?:after|past|since|until) \d\d?:\d\d|after noon",
    r"(?:at )?\d\d?(?:[:.]\d\d)? ?(?:am|pm)? or \d\d?(?:[:.]\d\d)? ?(?:am|pm)",
    r"(?:at )?\d{1,3}:\d\d",
    r"\d\d? in the (?:morning|afternoon|evening)",  # an hour, or how many
    r"within the hour|(?:by|before|after) lunch|end of play",
    r"first thing in the morning|(?:at |around |about )?\d\d?ish",
) + list_unread("midnight", meaning=Unread(is_quiet=True))
