"""Priorities, labels and reminders."""

import re

from english.atoms import Clock, Meaning, Reminder, Rule, Tag, rule
from english.phrases.lengths import LENGTH, count_minutes

_LEVELS = {
    **dict.fromkeys(("high", "top", "urgent", "highest"), "high"),
    **dict.fromkeys(("medium", "normal"), "medium"),
    **dict.fromkeys(("low", "lowest"), "low"),
    "no": "none",
}
_MARKS = {"p4": "none"}
for _number, _name in enumerate(("high", "medium", "low"), 1):
    _MARKS |= dict.fromkeys((f"p{_number}", f"!{_number}", f"!!{_number}", f"!p{_number}", f"!{_name}"), _name)
_LEVEL = f"(?P<level>{'|'.join(_LEVELS)})"
_SIGNED_LABEL = r"[#@]+(?P<label>\S{1,40})"
_LABEL = r"(?:#+(?P<signed>\S{1,40})|(?P<label>[^\W\d_][\w-]{0,39}))"

MAX_REMINDER = 40_320  # minutes
TOO_EARLY = "A reminder can be at most 28 days before."
UNKNOWN_REMINDER = "Write it like \u201cremind me 10 minutes before\u201d."
POLITE = r"(?:(?:and|but|also) )?(?:(?:please|pls) )?(?:(?:can|could|will|would) you (?:please )?)?"
_NOUN = "(?:reminder|notification|alert|alarm)"
_REMIND = (
    rf"{POLITE}(?:(?:remind|alert|notify|warn) me(?: about (?:it|this|that))?|remind"
    rf"|(?:(?:set|add|with|give me) )?(?:an? |the )?{_NOUN}(?: set)?(?: for)?(?: :)?)"
)
_IT = r"(?:it|that|this|then|the (?:start|event|time))"
_BEFORE = rf"(?:before(?: {_IT}(?: starts| begins)?)?|beforehand|earlier|early|in advance|ahead of time|prior)"
_ENDS_TEXT = r"(?=$| [.!?]| please| thanks| thank| thx)"
_AT_THE_TIME = (
    r"(?:at the (?:due )?time|at (?:that|its|due) time|on time|when it(?:(?:'s| is) (?:due|time)| starts| begins))"
)


def _read_priority(clock: Clock, match: re.Match[str]) -> Meaning:
    return Tag("priority", (_LEVELS | _MARKS)[match["level"]])


def _read_label(clock: Clock, match: re.Match[str]) -> Meaning:
    return Tag("label")


TAGS: tuple[Rule, ...] = (
    rule(f"(?P<level>{'|'.join(_MARKS)})", _read_priority),
    rule(rf"(?:(?:with|as|at|and) )?(?:an? )?{_LEVEL} (?:priority|prio)", _read_priority),
    rule(rf"(?:priority|prio)(?: :| is| =)? {_LEVEL}", _read_priority),
    rule(r"(?P<level>urgent(?= :)|(?<=[,(] )urgent)", _read_priority),
    rule(_SIGNED_LABEL, _read_label),
    rule(rf"(?:with )?(?:the )?(?:label|labelled|labeled|tagged|tag)(?: :| as| with)? {_LABEL}", _read_label),
)


def _read_length(clock: Clock, match: re.Match[str]) -> Meaning:
    minutes = count_minutes(match["length"])
    if minutes is None:
        return Reminder(reason=UNKNOWN_REMINDER)
    return Reminder(minutes) if minutes <= MAX_REMINDER else Reminder(reason=TOO_EARLY)


def _read_end(clock: Clock, match: re.Match[str]) -> Meaning | None:
    meaning = _read_length(clock, match)
    return Reminder(meaning.minutes, is_bare=True) if isinstance(meaning, Reminder) and not meaning.reason else None


REMINDERS: tuple[Rule, ...] = (
    rule(rf"{_REMIND} {LENGTH} {_BEFORE}(?: \?$)?", _read_length),
    rule(rf"{POLITE}with an? {LENGTH} {_NOUN}", _read_length),
    rule(rf"{_REMIND} {_AT_THE_TIME}", lambda clock, match: Reminder(0)),
    rule(
        rf"{POLITE}(?:(?:with )?no|without(?: an?| any)?) (?:reminder|notification)s?",
        lambda clock, _: Reminder("none"),
    ),
    rule(rf"{POLITE}(?:don't|dont|do not|never) (?:remind|notify|alert) me", lambda clock, match: Reminder("none")),
    rule(rf"{LENGTH} {_BEFORE}{_ENDS_TEXT}", _read_end),
    rule(
        rf"{_REMIND}(?: \S+){{1,4}}? before(?:hand)?{_ENDS_TEXT}",
        lambda clock, match: Reminder(reason=UNKNOWN_REMINDER),
    ),
)
