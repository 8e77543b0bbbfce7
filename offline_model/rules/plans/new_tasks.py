"""The titles and descriptions in what follows "add"."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from english import Reading
from offline_model.rules import dates
from offline_model.rules.language.pattern import Pattern, Phrases, without
from offline_model.rules.language.text import JOINT, Text
from offline_model.rules.language.vocabulary import PREPOSITIONS, VERBS
from offline_model.rules.language.words import tokens

_LIST_HEAD = Phrases.of("the following|these|this (:|(to|on) {our_list})|[:] (to|on) {our_list}|:")
_HEAD = Pattern(
    "[an|a|another|the|those|one|two|three|four|five|#] [new|more|following|another] {noun} [(to|on) {our_list}]"
    " [called|named|titled|saying|to|for|about] <new>"
)
_ON_LIST = Phrases.of("[back] (on|onto|to|in|into) ({our_list}|[my|the|our] ({errands}|({errands}|{other_list}) list))")
_OTHER_LISTS = Phrases.of("{errands}|{other_list}").first_words
_DESCRIPTION = Phrases.of(
    "(with|and) [the|a|an] {note} [of|saying|that says] [:]|(description|note|notes|details|detail) :|described as"
)
_NUMBERED = re.compile(r"(?:^|(?<=[ \n]))[0-9]{1,2}[.)] ")
_BULLETS = re.compile(r"^(?:(?:[-*\u2022\u2013]|\[ ?\]|[0-9]{1,2}[.)]) )+")
_BEFORE_ITEM = Phrases.of("and|then|also|to")


@dataclass(frozen=True)
class NewTask:
    """The arguments of `add_task` for one, and what they were read from."""

    arguments: dict[str, Any]
    reading: Reading


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
    titles, described = line, {}
    for first, end in islice(_DESCRIPTION.places(line.keys), 1):
        before, after = line.part(0, first), line.part(end, len(line.keys)).shown()
        if before and after:
            titles = line.with_raw(before.raw.rstrip(" ,:("))
            described = {"description": after.removesuffix(")").strip()}
    texts = _titles(titles)
    if when and texts:
        texts[-1] = texts[-1].with_raw(f"{texts[-1].raw} {when}")
    readings = [dates.reading_of(text) for text in texts]
    dated = _shared([dates.fields_of(reading.when) for reading in readings], is_leading=_is_leading(readings))
    labelled = _shared([{"labels": list(reading.labels)} if reading.labels else {} for reading in readings])
    urgent = _shared([{"priority": reading.priority} if reading.priority else {} for reading in readings])
    tasks = []
    for text, reading, *fields in zip(texts, readings, dated, urgent, labelled, strict=True):
        named = text.with_raw(reading.title)
        label = list_name or list_named_in(named) or ""
        arguments = {"title": without(named, None, _ON_LIST).shown(), **fields[0], **fields[1]}
        labels = dict.fromkeys([*fields[2].get("labels", []), *([label] if label else [])])
        tasks.append(NewTask(arguments | ({"labels": list(labels)} if labels else {}), reading))
    if tasks:
        tasks[-1] = replace(tasks[-1], arguments=tasks[-1].arguments | described)
    return tasks


def _is_leading(readings: Sequence[Reading]) -> bool:
    """Whether a date stands before all titles: "every Monday water the plants and feed the cat"."""
    return bool(readings and readings[0].when and readings[0].spans[0].start == 0)


def _shared(fields: list[dict[str, Any]], *, is_leading: bool = False) -> list[dict[str, Any]]:
    """What only the last title has, or only the first one begins with, is every title's."""
    has = [at for at, one in enumerate(fields) if one]
    if has == [len(fields) - 1] or (has == [0] and is_leading):
        return [fields[has[0]] for _ in fields]
    return fields


def _titles(line: Text) -> list[Text]:
    """Parted at commas and "and", where what follows is a task of its own and goes not on with the one before."""
    pieces = JOINT.split(line.raw)
    found = [(joint, raw, _bare(line, raw)) for joint, raw in zip(["", *pieces[1::2]], pieces[::2], strict=True)]
    found = _with_tags([one for one in found if one[2]])
    items = [item for _, _, item in found]
    verbs = [not VERBS.isdisjoint(item.keys[:1]) for item in items]
    with_commas = any("," in joint for joint, _, _ in found[1:])
    is_verb_for_all = (
        bool(verbs) and verbs[0] and not any(verbs[1:]) and PREPOSITIONS.union(["to"]).isdisjoint(items[0].keys)
    )
    if len(items) > 2 and is_verb_for_all and with_commas and _are_nouns(items[1:]):
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


def _with_tags(found: list[tuple[str, str, Text]]) -> list[tuple[str, str, Text]]:
    """Puts what is only a date, a priority or a label to the piece before it: "call mum at 8, high priority".

    At the start it goes to the piece after it: "every Monday, water the plants".
    """
    pieces: list[tuple[str, str, Text]] = []
    if len(found) > 1 and _is_tag(found[0][2]):
        (_, first, text), (joint, raw, _), *rest = found
        found = [("", f"{first}{joint}{raw}", text.with_raw(f"{text.raw}{joint}{raw}")), *rest]
    for joint, raw, text in found:
        is_tag = bool(pieces) and "\n" not in joint and _is_tag(text)
        if is_tag:
            before_joint, before, whole = pieces.pop()
            pieces.append((before_joint, before + joint + raw, whole.with_raw(f"{whole.raw}{joint}{raw}")))
        else:
            pieces.append((joint, raw, text))
    return pieces


def _is_tag(text: Text) -> bool:
    return dates.reading_of(text.with_raw(f"x, {text.raw}")).title == "x"


def _bare(line: Text, raw: str) -> Text:
    """Without bullets and a leading "then"."""
    return without(line.with_raw(_BULLETS.sub("", raw.lstrip(" ,:"))), _BEFORE_ITEM)


def _are_nouns(items: list[Text], longest: int = 3) -> bool:
    """Whether all are short enough for things of a list, and none says more of a thing."""
    return all(len(words := tokens(item.raw)) <= longest and not PREPOSITIONS.intersection(words) for item in items)
