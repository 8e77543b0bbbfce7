"""Priorities and labels."""

import re

from english.atoms import Clock, Meaning, Rule, Tag, rule

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
