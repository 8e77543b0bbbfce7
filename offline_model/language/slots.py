"""The texts that fit each slot of a template, and their meanings."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from string import punctuation
from typing import Any

import english
from english.words import word_set
from offline_model.language import words
from offline_model.language.text import Template, Text

_OTHER_CLOCK = re.compile(
    r"\d ?(?:[ap]\.?m\.?)? (?:(?:[A-Z][a-z]+ ){1,2}[Tt]ime|UTC|GMT|[CEMP][DS]T|CES?T|BST|IST|JST)\b"
)
"""A time in another place or zone."""
_MAX_WORDS_OF_DATE = 25  # longer texts take long to compare
_MAX_WORDS_OF_DAYS = 10  # at the end of a question
_PLANNED = frozenset(["due", "planned", "scheduled", "happening", "coming", "for", "on"])
MAX_LABEL_LENGTH = 40  # characters
PRIORITIES = {"top": "high", "urgent": "high", "normal": "medium", "no": "none"}
PRIORITIES |= {level: level for level in ("high", "medium", "low", "none")}
_FOR_MODEL = Template("(tell|give|send) me|let me know|show|list|report|summarise|summarize|sum up|what|which|how many")
_ON_LIST = Template(
    "{new} [back] (on|onto|to|in|into) (<our_list>|[my|the|our] (<errands>|(<errands>|<other_list>) list))"
)
_LIST_NAMES = frozenset(f"{words.RULES['errands']}|{words.RULES['other_list']}".split("|"))
_BULLET = re.compile(r"^(?:(?:[-*\u2022\u2013]|\[ ?\]|[0-9]{1,2}[.)]) )+")
_GROUPS = [
    Template("(all [of] [my|the] <things>|everything|all|anything|whatever) [<that_is>] [<planned>] {days}"),
    Template("[all] [of] [my|the] <things> [<that_is>] <planned> {days}"),
    Template("[all] [of] [my|the] {days} ['s] <things>"),
    Template("(everything|all [of] [my|the] <things>) (with the label|labelled|labeled|tagged [with|as]) {label}"),
    Template("all [of] [my|the|our] {label} [<things>]"),
]
Fields = dict[str, Any]
"""The arguments `due`, `repeat` and `remind` of a tool."""


@lru_cache(1_000)
def read_task(text: Text) -> english.ParsedTask:
    return english.read_task(text.raw, text.now, text.order)


@lru_cache(1_000)
def read_when(text: Text) -> english.When | None:
    return english.read_when(text.raw, text.now, text.order) if len(text.keys) <= _MAX_WORDS_OF_DATE else None


@lru_cache(1_000)
def read_schedule(text: Text) -> english.ParsedSchedule | None:
    """Accepts "every Friday at 16:00 summarise what I did", but not "every Friday at 16:00 call mum"."""
    read = english.read_schedule(text.raw, text.now, text.order) if text.now else None
    is_for_model = read is not None and _FOR_MODEL.starts(text.replace_raw(read.text), 0)
    return read if read is not None and read.time is not None and is_for_model else None


def create_fields(when: english.When | None) -> Fields:
    if when is None:
        return {}
    return {"due": when.due, **({"repeat": when.repeat} if when.repeat else {})}


def read_date(text: Text) -> Fields | None:
    """Reads a whole text as a date. A bare time keeps the day of an existing task."""
    when = read_when(text)
    if when and when.is_time_only and when.time:
        return {"due": f"{when.time:%H:%M}"}
    return create_fields(when) or None


def read_new_date(text: Text) -> Fields | None:
    """Reads a day, a time, or "a week" as a shift."""
    shift = english.read_shift(text.raw)
    return {"due": shift} if shift else read_date(text)


def read_earlier(text: Text) -> Fields | None:
    """Reads "a day" as "-1d"."""
    shift = english.read_shift(text.raw)
    return {"due": shift.replace("+", "-")} if shift else None


def read_reminder(text: Text) -> Fields | None:
    """Reads "30 minutes", before which a task reminds."""
    reading = read_task(text.replace_raw(f"x at 15:00, remind me {text.raw} before"))
    return {"remind": reading.remind} if reading.title == "x" and isinstance(reading.remind, int) else None


def read_correction(text: Text) -> Fields | None:
    """Reads the first date of "at 14:30, not 14:00"."""
    end = next((at for at, key in enumerate(text.keys) if key in ("not", "instead", "rather")), len(text.keys))
    fields = read_date(text.part(0, end)) if end else None
    return None if fields and "repeat" in fields else fields


@lru_cache(1_000)
def read_days(text: Text) -> str | None:
    is_short = len(text.keys) <= _MAX_WORDS_OF_DATE
    return english.read_coming_range(text.raw, text.now, text.order) if is_short else None


def read_past_days(text: Text) -> str | None:
    return english.read_past_range(text.raw, text.now)


def find_days_at_end(text: Text) -> Text | None:
    """Returns the days in "do I have to do this week", after "what"; None if there are none."""
    size = len(text.keys)
    tails = (text.part(first, size) for first in range(max(0, size - _MAX_WORDS_OF_DAYS), size))
    tail = next((tail for tail in tails if read_days(tail) or read_past_days(tail)), None)
    is_about_list = tail and (words.LIST_WORDS | _PLANNED).issuperset(text.keys[: size - len(tail.keys)])
    return tail if is_about_list else None


def _is_list_on_days(text: Text) -> object:
    """Accepts past days only for what was done, because no open task is planned for them."""
    days = find_days_at_end(text)
    return days and (read_days(days) or not words.DONE_WORDS.isdisjoint(text.keys[: len(text.keys) - len(days.keys)]))


def find_filters(text: Text) -> Mapping[str, str] | None:
    """Returns arguments of `list_tasks` for a group such as "everything due today"."""
    for template in _GROUPS:
        for reading in template.readings(text):
            label, days = reading.get("label"), reading.get("days")
            if label and is_label(label):
                return {"label": label.unquote()}
            if days and (due := "overdue" if days.keys == ["overdue"] else read_days(days)):
                return {"due": due}
    return None


def is_label(text: Text) -> bool:
    """Accepts "shopping" in "all the shopping", but not "tasks" or a number."""
    is_short = 0 < len(text.keys) <= 3 and len(text.unquote()) <= MAX_LABEL_LENGTH
    return is_short and words.LIST_WORDS.isdisjoint(text.keys) and "#" not in text.keys


def split_list_name(text: Text) -> tuple[Text, str | None]:
    """Removes "to my work list"; the name is "work", empty for "my list", None without a list."""
    for reading in _ON_LIST.readings(text):
        rest = text.part(0, len(reading["new"].keys))
        return rest, next((key for key in text.keys[len(rest.keys) :] if key in _LIST_NAMES), "")
    return text, None


def is_bulleted(text: Text) -> bool:
    lines = text.raw.split("\n")
    return len(lines) > 1 and all(_BULLET.match(line) for line in lines)


def strip_bullet(line: str) -> str:
    return _BULLET.sub("", line.lstrip(" ,:"))


def _is_list(text: Text) -> bool:
    return not words.LIST_SUBJECTS.isdisjoint(text.keys) and words.LIST_WORDS.issuperset(text.keys)


def _is_bare_list(text: Text) -> bool:
    """Accepts "my tasks" and "all open tasks", but not "done" or "do it"."""
    is_noun = text.keys[-1:] and text.keys[-1] in words.LIST_NOUNS and text.keys[0] not in ("complete", "finish")
    return _is_list(text) and bool(is_noun or text.keys in (["all"], ["everything"]))


def _is_subject(text: Text) -> bool:
    """Accepts "the milk" in "the milk is done", but not "what", "nothing" or "tell me when it"."""
    no_subject = (words.NOT_A_TASK - words.POINTING) | {"add", "create", "remind"}
    return no_subject.isdisjoint(text.keys[:1]) and (words.NEGATIONS | words.UNSURE).isdisjoint(text.keys)


def _is_duty(text: Text) -> bool:
    """Accepts "call mum" in "I should call mum", but not "have called her"."""
    verb, following, *_ = [*text.keys, "", ""]
    no_duty = words.NEGATIONS | words.POINTING | {"you"}
    return verb not in no_duty and not (verb == "have" and words.is_past(following))


def is_errand(text: Text) -> bool:
    """Accepts "buy flowers" and "this evening buy flowers", but not "hold on"."""
    reading = read_task(text)
    if reading.when and reading.spans[0].start == 0:
        text = text.replace_raw(reading.title)
    verb, *rest = text.keys or [""]
    if verb not in words.ERRANDS or not rest or rest in (["on"], ["back"], ["away"], ["up"]):
        return False
    is_for_model = rest[0] in words.POINTING or words.NO_ERRANDS.intersection(rest)
    return not is_for_model and words.may_be_task(text.raw)


def _is_thing_at_time(text: Text) -> bool:
    """Accepts "dentist tomorrow at 3pm", but not "I am tired today"."""
    reading = read_task(text)
    keys = text.replace_raw(reading.title).keys
    no_thing = (words.POINTING | words.LIST_FILLERS) - words.UNSAID
    is_thing = no_thing.isdisjoint(keys[:1]) and not words.LIST_WORDS.issuperset(keys)
    is_for_model = not words.NO_ERRANDS.isdisjoint(keys)
    is_dated = reading.when is not None and len(keys) <= 6
    return is_dated and is_thing and not is_for_model and words.may_be_task(text.raw)


def _is_repeating(text: Text) -> object:
    is_chore = not (words.VERBS - words.CHANGING_VERBS).isdisjoint(text.keys[:1])
    return is_chore and "repeat" in create_fields(read_task(text).when)


VALUES: dict[str, Callable[[Text], Fields | None]] = {
    "date": read_new_date,
    "earlier": read_earlier,
    "new_date": read_correction,
    "reminder": read_reminder,
    "period": lambda text: read_date(text.replace_raw(f"every {text.raw}")),
}
"""Functions that read the text of a slot as fields of a task."""

SLOTS: dict[str, Callable[[Text], object]] = {
    **VALUES,
    **dict.fromkeys(("title", "new", "task", "number", "priority", "rest"), bool),  # whatever there is
    "old_date": read_date,
    "when": lambda text: {"to", "about", "of"}.isdisjoint(text.keys),
    "new_on_list": lambda text: split_list_name(text)[1] is not None,
    "bullets": is_bulleted,
    "undated": lambda text: not (read_task(text).when or read_task(text).unread),
    "thing_at_time": _is_thing_at_time,
    "schedule": read_schedule,
    "past_work": lambda text: text.keys[:1] in (["what"], ["everything"]) and words.DONE_WORDS & {*text.keys},
    "at_other_clock": lambda text: _OTHER_CLOCK.search(text.raw),
    "days": read_days,
    "list_on_days": _is_list_on_days,
    "group": find_filters,
    "errand": is_errand,
    "new_repeating": _is_repeating,
    "duty": _is_duty,
    "value": lambda text: text.unquote().strip(punctuation + " "),
    "label": is_label,
    "list": _is_list,
    "bare_list": _is_bare_list,
    **dict.fromkeys(("search", "search_of_deed"), lambda text: not words.LIST_WORDS.issuperset(text.keys)),
    "numbers": lambda text: words.find_numbers(text.unquote()),
    "own_deed": lambda text: len(text.keys) > 1 and words.is_past(text.keys[0]) and text.keys[0] not in words.NOT_DEEDS,
    "deed": lambda text: len(text.keys) > 1 and words.is_known_past(text.keys[0]),
    "deed_not_done": lambda text: len(text.keys) > 1 and not words.is_pointer(text.raw),
    "subject": _is_subject,
    "past": lambda text: text.keys and words.is_known_past(text.keys[0]) and words.PARTICLES.issuperset(text.keys[1:]),
}
"""Conditions for the text of each slot."""
NAMING = ("past", "own_deed", "deed", "deed_not_done", "subject", "task", "numbers", "number", "group")
"""The slots whose texts, in this order, name tasks."""
TARGETS = ("subject", "task", "group")
"""Slots that may also mean a group of tasks."""
TYPED = word_set("""
    schedule past_work bullets new_repeating undated when at_other_clock days list_on_days new_date group
    date old_date earlier reminder period priority label list bare_list numbers number
    """)
"""Slots that accept only a certain kind of text."""
DEEDS = word_set("past own_deed deed deed_not_done search_of_deed")
"""Slots such as "bought the milk", whose verb need not be in the title."""
