"""Clock times as people say them. An hour without "am" or "pm" is one of the day: 7 to 12, then 1 to 6 after noon."""

import re

PARTS_OF_DAY = {"morning": "09:00", "afternoon": "15:00", "evening": "19:00", "night": "20:00"}
LATE = ("tonight", "evening", "night", "afternoon")
"""Said of a time, its hours are those after noon."""
_HOURS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_HOUR = rf"(?:\d\d?|{'|'.join(_HOURS)})"
_AT = r"(?:(?:at|by|@|from|around|before) ?)"
_IN_THE = r"(?: in the (?:morning|afternoon|evening)| at night)"
CLOCK = (
    rf"(?:{_AT}?\d\d?(?:[:.]\d\d)? ?(?:am|pm|a\.m\.?|p\.m\.?)|(?:at |by |@ ?){_HOUR}(?: o'clock)?"
    rf"|{_AT}?\d\d?:\d\d|(?:at |by |before )?(?:noon|midday)"
    rf"|{_AT}?(?:half past|quarter past|quarter to) {_HOUR}|{_AT}?{_HOUR}(?= in the)){_IN_THE}?"
)
"""Of a regular expression, without groups."""
OTHER_CLOCK = re.compile(
    r"\d ?(?:[ap]\.?m\.?)? (?:(?:[A-Z][a-z]+ ){1,2}[Tt]ime|UTC|GMT|[CEMP][DS]T|CES?T|BST|IST|JST)\b"
)
"""A time with the name of another place or zone."""
_TIME = re.compile(rf"(half past |quarter past |quarter to )?\b({_HOUR})(?:[:.](\d\d))? ?([ap]\b|am|pm)?")
_MINUTES = {"half past ": 30, "quarter past ": 15, "quarter to ": -15}


def time_of(clock: str, *, late: bool = False) -> str | None:
    """Of "at 5 pm" and "5 in the afternoon": "17:00"; None if no clock shows it. `late` says that it is after noon."""
    if clock in PARTS_OF_DAY:
        return PARTS_OF_DAY[clock]
    if clock.endswith(("noon", "midday")) and not clock.endswith("afternoon"):
        return "12:00"
    found = _TIME.search(clock)
    if not found:
        return None
    before, word, after, half = found.groups()
    hour = _HOURS.index(word) + 1 if word in _HOURS else int(word)
    if half and not 1 <= hour <= 12:
        return None
    if half or clock.endswith("morning"):
        hour = hour % 12 + (12 if half and half[0] == "p" else 0)
    elif hour < 12 and (late or clock.endswith(LATE) or (not after and 1 <= hour <= 6)):
        hour += 12
    minutes = 60 * hour + int(after or 0) + _MINUTES.get(before or "", 0)
    is_shown = hour < 24 and int(after or 0) < 60
    return f"{minutes // 60:02}:{minutes % 60:02}" if is_shown else None
