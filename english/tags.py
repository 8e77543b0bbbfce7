"""Priorities and labels."""

import re

from english.atoms import Clock, Label, Meaning, Priority, Rule, rule

_LEVELS = {
    "high": "high",
    "top": "high",
    "urgent": "high",
    "highest": "high",
    "medium": "medium",
    "normal": "medium",
    "low": "low",
    "lowest": "low",
    "no": "none",
}
_MARKS = {
    "p1": "high",
    "p2": "medium",
    "p3": "low",
    "p4": "none",
    "!1": "high",
    "!2": "medium",
    "!3": "low",
    "!p1": "high",
    "!p2": "medium",
    "!p3": "low",
    "!high": "high",
    "!medium": "medium",
    "!low": "low",
}
_LEVEL = "|".join(_LEVELS)


def _read_priority(clock: Clock, match: re.Match[str]) -> Meaning:
    return Priority(_LEVELS[match["level"]])


def _read_label(clock: Clock, match: re.Match[str]) -> Meaning:
    return Label(match["label"])


TAGS: tuple[Rule, ...] = (
    rule(f"(?P<mark>{'|'.join(map(re.escape, _MARKS))})", lambda clock, match: Priority(_MARKS[match["mark"]])),
    rule(rf"(?:(?:with|as|at|and) )?(?:an? )?(?P<level>{_LEVEL}) (?:priority|prio)", _read_priority),
    rule(rf"(?:priority|prio)(?: :| is| =)? (?P<level>{_LEVEL})", _read_priority),
    rule(r"urgent(?= :)|(?<=[,(] )urgent", lambda clock, match: Priority("high")),
    rule(r"[#@](?P<label>[^\W\d_][\w-]{0,39})", _read_label),
    rule(
        r"(?:with )?(?:the )?(?:label|labelled|labeled|tagged|tag)(?: :| as| with)? #?(?P<label>[^\W\d_][\w-]{0,39})",
        _read_label,
    ),
)
