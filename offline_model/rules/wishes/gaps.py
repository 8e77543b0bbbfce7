"""What a text must be to stand in a gap of a pattern."""

import re
from collections.abc import Callable
from string import punctuation

from offline_model.rules import dates
from offline_model.rules.language import vocabulary, words
from offline_model.rules.language.text import Text
from offline_model.rules.plans import groups, new_tasks

_OTHER_CLOCK = re.compile(
    r"\d ?(?:[ap]\.?m\.?)? (?:(?:[A-Z][a-z]+ ){1,2}[Tt]ime|UTC|GMT|[CEMP][DS]T|CES?T|BST|IST|JST)\b"
)
"""A time with the name of another place or zone."""


def _is_list(text: Text) -> bool:
    """Whether all its words are about the list."""
    return not vocabulary.LIST_SUBJECTS.isdisjoint(text.keys) and vocabulary.LIST_WORDS.issuperset(text.keys)


def _is_bare_list(text: Text) -> bool:
    """Of "my tasks" or "all open tasks", but not "done" or "do it"."""
    first, *_, last = [*text.keys, *text.keys]
    is_noun = last in vocabulary.LIST_NOUNS and first not in ("complete", "finish")
    return _is_list(text) and (is_noun or text.keys in (["all"], ["everything"]))


def _is_subject(text: Text) -> bool:
    """Of "the milk", from "the milk is done", but not of "what", "nothing" or "tell me when it"."""
    no_subject = vocabulary.NOT_A_TASK - vocabulary.POINTING
    unsure = vocabulary.NEGATIONS | vocabulary.UNSURE
    no_subject |= {"add", "create", "remind"}
    return no_subject.isdisjoint(text.keys[:1]) and unsure.isdisjoint(text.keys)


def _is_own_deed(text: Text) -> bool:
    """Of "called mum", from "I called mum"."""
    verb, *rest = text.keys or [""]
    return bool(rest) and words.is_past(verb) and verb not in vocabulary.NOT_DEEDS


def _is_duty(text: Text) -> bool:
    """Of "call mum", from "I should call mum", but not of "have called her"."""
    verb, following, *_ = [*text.keys, "", ""]
    no_duty = vocabulary.NEGATIONS | vocabulary.POINTING | {"you"}
    return verb not in no_duty and not (verb == "have" and words.is_past(following))


def _is_errand(text: Text) -> bool:
    """Of "buy flowers", which is no question and asks nothing of this model; "hold on" is none."""
    verb, *rest = text.keys or [""]
    if verb not in vocabulary.ERRANDS or not rest or rest in (["on"], ["back"], ["away"], ["up"]):
        return False
    is_asked_of_me = rest[0] in vocabulary.POINTING or vocabulary.NO_ERRANDS.intersection(rest)
    return not is_asked_of_me and words.may_be_task(text.raw)


def _is_thing_at_time(text: Text) -> bool:
    """Of "dentist tomorrow at 3pm", but not of "I am tired today"."""
    reading = dates.reading_of(text)
    rest = text.with_raw(reading.title)
    no_thing = (vocabulary.POINTING | vocabulary.LIST_FILLERS) - vocabulary.UNSAID
    is_thing = no_thing.isdisjoint(rest.keys[:1]) and not vocabulary.LIST_WORDS.issuperset(rest.keys)
    is_said_to_me = not vocabulary.NO_ERRANDS.isdisjoint(rest.keys)
    return (
        reading.when is not None
        and len(rest.keys) <= 6
        and is_thing
        and not is_said_to_me
        and words.may_be_task(text.raw)
    )


def _is_repeating(text: Text) -> bool:
    """Of "change the filter every three months"."""
    is_chore = text.keys[0] in vocabulary.VERBS - vocabulary.CHANGING_VERBS if text.keys else False
    when = dates.reading_of(text).when
    return is_chore and when is not None and when.repeat is not None


def _has_time(text: Text) -> object:
    """Whether some of its words tell a time, be they a date that is understood or not."""
    reading = dates.reading_of(text)
    return reading.when or reading.unread


def _is_dated_errand(text: Text) -> bool:
    """Of "every Monday at 9 water the plants"."""
    reading = dates.reading_of(text)
    return bool(reading.when and reading.spans[0].start == 0) and _is_errand(text.with_raw(reading.title))


GAPS: dict[str, Callable[[Text], object]] = {
    **dict.fromkeys(("...", "title", "new", "task"), bool),  # whatever there is
    "when": lambda text: {"to", "about", "of"}.isdisjoint(text.keys),
    "new on other list": new_tasks.list_named_in,
    "new on list": lambda text: new_tasks.list_named_in(text) is not None,
    "bullets": new_tasks.is_bulleted,
    "new at time": _has_time,
    "dated errand": _is_dated_errand,
    "undated": lambda text: not _has_time(text),
    "thing at time": _is_thing_at_time,
    "new repeating": _is_repeating,
    "at other clock": lambda text: _OTHER_CLOCK.search(text.raw),
    "days": dates.range_of,
    "list of today": lambda text: dates.is_today(text) and "due" not in text.keys,
    "list on days": dates.asked_for,
    "done on days": dates.asked_for_done,
    "shift": dates.shift_of,
    "new date": dates.corrected,
    "group": groups.filters_of,
    "label": groups.is_label,
    "date": dates.new_due,
    "period": dates.period,
    "from date to date": dates.moved,
    "priority": lambda text: text.raw.casefold() in ("high", "medium", "low", "none"),
    "errand": _is_errand,
    "errand at time": lambda text: _is_errand(text) and _has_time(text),
    "duty": _is_duty,
    "value": lambda text: text.shown().strip(punctuation + " "),
    "list": _is_list,
    "bare list": _is_bare_list,
    **dict.fromkeys(("search", "search of deed"), lambda text: not vocabulary.LIST_WORDS.issuperset(text.keys)),
    "numbers": lambda text: words.numbers_in(text.shown()),
    "own deed": _is_own_deed,
    "deed": lambda text: len(text.keys) > 1 and words.is_known_past(text.keys[0]),
    "deed not done": lambda text: len(text.keys) > 1 and not words.points(text.raw),
    "subject": _is_subject,
    "past": lambda text: words.is_known_past(text.keys[0]) and vocabulary.PARTICLES.issuperset(text.keys[1:]),
}
"""What a text must be to stand there."""
NAMING = ("past", "own deed", "deed", "deed not done", "subject", "task", "numbers")
"""The gaps whose texts, in this order, name tasks, which are looked up, and asked about where several fit."""
DEEDS = {"past", "own deed", "deed", "deed not done", "search of deed"}
"""Those that tell of something done, as "bought the milk" does, whose verb need not be in the title."""
