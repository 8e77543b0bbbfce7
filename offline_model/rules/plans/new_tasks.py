"""The titles and descriptions in what follows "add"."""

import re
from itertools import islice
from typing import Any

from offline_model.rules.language import dates
from offline_model.rules.language.pattern import Pattern, Phrases, without
from offline_model.rules.language.text import JOINT, Text
from offline_model.rules.language.vocabulary import PREPOSITIONS, VERBS
from offline_model.rules.language.words import tokens

_LIST_HEAD = Phrases.of("the following|these|this|[:] (to|on) {our_list}|:")
_HEAD = Pattern(
    "[an|a|another|the|those|one|two|three|four|five|#] [new|more|following|another] {noun} [(to|on) {our_list}]"
    " [called|named|titled|saying|to|for|about] <new>"
)
_ON_LIST = Phrases.of("[back] (on|onto|to|in|into) ({our_list}|[my|the|our] ({errands}|({errands}|{other_list}) list))")
_OTHER_LISTS = Phrases.of("{errands}|{other_list}").first_words
_DESCRIPTION = Phrases.of(
    "(with|and) [the|a|an] {note} [of|saying|that says] [:]|(description|note|notes|details|detail) :|described as"
)
_PRIORITIES = {
    level: Phrases.of(f"[with|as|at] [a] ({said}) priority")
    for level, said in (("high", "high|top|urgent"), ("medium", "medium|normal"), ("low", "low"))
}
_TAGS = re.compile(r"(?: #[^\W\d_][\w-]{0,39}){1,9}$")
_URGENCY = re.compile(r" !(high|medium|low)$", re.IGNORECASE)
_NUMBERED = re.compile(r"(?:^|(?<=[ \n]))[0-9]{1,2}[.)] ")
_BULLETS = re.compile(r"^(?:(?:[-*\u2022\u2013]|\[ ?\]|[0-9]{1,2}[.)]) )+")
_BEFORE_ITEM = Phrases.of("and|then|also|to")


NewTask = dict[str, Any]
"""The arguments of `add_task` for one."""


def new_tasks(text: Text, when: str = "") -> list[NewTask]:
    """Of "milk, eggs and bread to shopping": three, each labelled "shopping", as there is one list only.

    `when` is what else was said of their time; what of it is no date stays as words of the titles.
    """
    list_name = list_named_in(text) or ""
    text = without(text, _LIST_HEAD, _ON_LIST)
    for reading in _HEAD.readings(text):
        if reading["new"].keys[:1] != ["#"]:  # "task 0 and task 1" are titles
            text = reading["new"]
    numbered = len(_NUMBERED.findall(text.raw)) > 1
    lines = re.split("[\n;]", _NUMBERED.sub("\n", text.raw) if numbered else text.raw)
    return [task for line in lines for task in _tasks_in(text.with_raw(line), list_name, when)]


def list_named_in(text: Text) -> str | None:
    """Of "milk to shopping" or "milk to my work list" the list's name; empty for "my list", None if there is none."""
    for start in _ON_LIST.starts(text.keys, len(text.keys)):
        return next((key for key in text.keys[start:] if key in _OTHER_LISTS), "")
    return None


def is_bulleted(text: Text) -> bool:
    """Whether it is a list and nothing else."""
    lines = text.raw.split("\n")
    return len(lines) > 1 and all(_BULLETS.match(line) for line in lines)


def _tasks_in(line: Text, list_name: str, when: str) -> list[NewTask]:
    """What describes goes on to the end of the line, and describes the last title before it."""
    titles, described = line, NewTask()
    for first, end in islice(_DESCRIPTION.places(line.keys), 1):
        before, after = line.part(0, first), line.part(end, len(line.keys)).shown()
        if before and after:
            titles = line.with_raw(before.raw.rstrip(" ,:("))
            described = {"description": after.removesuffix(")").strip()}
    titles, labels, priority = _tags(titles, [list_name] if list_name else [], {})
    titles, date = dates.taken_from(_with_when(titles, when))
    if date:
        titles, labels, priority = _tags(titles, labels, priority)
        named = list_named_in(titles)
        labels = [*labels, named] if named and named not in labels else labels
        titles = without(titles, None, _ON_LIST)
    details = priority | ({"labels": labels} if labels else {})
    tasks = [{"title": title.shown(), **when, **details} for title, when in _dated(_titles(titles), date)]
    return [*tasks[:-1], tasks[-1] | described] if tasks else []


def _tags(text: Text, labels: list[str], priority: NewTask) -> tuple[Text, list[str], NewTask]:
    """The labels and the priority at the end, in either order."""
    for _ in range(2):
        text, labels = _labels(text, labels)
        text, priority = (text, priority) if priority else _priority(text)
    return text, labels, priority


def _labels(text: Text, labels: list[str]) -> tuple[Text, list[str]]:
    """Of "milk #shopping" the milk, with the label."""
    tags = _TAGS.search(text.raw)
    if not tags or not tags.start():
        return text, labels
    found = [*tags[0].replace("#", " ").split(), *labels]
    return text.with_raw(text.raw[: tags.start()]), list(dict.fromkeys(found))


def _with_when(text: Text, when: str) -> Text:
    """Of "call mum", said with "tomorrow": "call mum tomorrow"."""
    return text.with_raw(f"{text.raw} {when}") if when and text else text


def _priority(text: Text) -> tuple[Text, NewTask]:
    """Of "pay the rent, high priority" and "pay the rent !high" both."""
    if (mark := _URGENCY.search(text.raw)) and mark.start():
        return text.with_raw(text.raw[: mark.start()]), {"priority": mark[1].lower()}
    for level, phrases in _PRIORITIES.items():
        if (rest := without(text, None, phrases)).keys != text.keys:
            return text.with_raw(rest.raw.rstrip(" ,:;(-")), {"priority": level}
    return text, {}


def _dated(titles: list[Text], date: dates.When) -> list[tuple[Text, dates.When]]:
    """A date of its own counts; the one at the line's end is everyone's where nobody has such, else the last one's."""
    own = [dates.taken_from(title, inside=True) for title in titles]
    is_of_all = not any(when for _, when in own)
    return [(title, when or (date if is_of_all or at == len(own) - 1 else {})) for at, (title, when) in enumerate(own)]


def _titles(line: Text) -> list[Text]:
    """Parted at commas and "and", where what follows is a task of its own and goes not on with the one before."""
    pieces = JOINT.split(line.raw)
    found = [(joint, raw, _bare(line, raw)) for joint, raw in zip(["", *pieces[1::2]], pieces[::2], strict=True)]
    found = [one for one in found if one[2]]
    items = [item for _, _, item in found]
    verbs = [not VERBS.isdisjoint(item.keys[:1]) for item in items]
    with_commas = any("," in joint for joint, _, _ in found[1:])
    if len(items) > 2 and verbs[0] and not any(verbs[1:]) and with_commas and _are_nouns(items[1:]):
        verb = items[0].raw.split()[0]  # "buy milk, eggs and bread"
        return [items[0], *(line.with_raw(f"{verb} {noun.raw}") for noun in items[1:])]
    are_nouns = _are_nouns(items, longest=3 if with_commas else 2)
    titles: list[str] = []
    for (joint, raw, _), verbal in zip(found, verbs, strict=True):
        if not titles or verbal or (not verbs[0] and (are_nouns or "," in joint)):
            titles.append(raw)
        else:
            titles[-1] += joint + raw
    return [bare for title in titles if (bare := _bare(line, title)).shown()]


def _bare(line: Text, raw: str) -> Text:
    """Without bullets and a leading "then"."""
    return without(line.with_raw(_BULLETS.sub("", raw.lstrip(" ,:"))), _BEFORE_ITEM)


def _are_nouns(items: list[Text], longest: int = 3) -> bool:
    """Whether all are short enough for things of a list, and none says more of a thing."""
    return all(len(words := tokens(item.raw)) <= longest and not PREPOSITIONS.intersection(words) for item in items)
