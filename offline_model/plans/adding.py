"""The plan that adds tasks, with the titles, descriptions and dates in a request."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import Any

import english
from offline_model import replies
from offline_model.language import slots
from offline_model.language.text import JOINT, Template, Text
from offline_model.language.words import PREPOSITIONS, VERBS, tokens
from offline_model.plans import MAX_TASKS, Calls, Context, Intent, PlannedCall, Steps, Stop, tell_notifications

_LIST_HEAD = Template("the following|these|this (:|(to|on) <our_list>)|[:] (to|on) <our_list>|:")
_HEAD = Template(
    "[an|a|another|the|those|one|two|three|four|five|#] [new|more|following|another] <noun> [(to|on) <our_list>]"
    " [called|named|titled|saying|to|for|about] {new}"
)
_DESCRIPTION = Template(
    "(with|and) [the|a|an] <note> [of|saying|that says] [:]|(description|note|notes|details|detail) :|described as"
)
_NUMBERED = re.compile(r"(?:^|(?<=[ \n]))[0-9]{1,2}[.)] ")
_BEFORE_ITEM = Template("and|then|also|to|remind me to")
_Span = tuple[int, int]


@dataclass(frozen=True)
class Draft:
    """The arguments of `add_task` for one task, and the parsed text."""

    title: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    reading: english.ParsedTask = field(default_factory=lambda: english.ParsedTask(""))


def add(intent: Intent, context: Context) -> Steps:
    drafts = [draft for reading in intent.readings for draft in _create_drafts(reading)]
    if not drafts:
        return replies.NO_TITLE
    for span in (span for draft in drafts for span in draft.reading.spans if span.reason):
        # The user must say whether the weekday or the date is wrong, or at what time a reminder is due.
        raise Stop(replies.NOT_CLEAR.format(words=span.text, reason=span.reason))
    unread = dict.fromkeys(f'"{words}"' for draft in drafts for words in draft.reading.unread)
    is_dated = any("due" in draft.fields for draft in drafts)
    if not is_dated:
        unread |= {f'"{reading["when"].raw}"': None for reading in intent.readings if "when" in reading}
    results = yield _create_calls(drafts)
    parts = [replies.report(intent.answer, results)]
    if unread and not any(result.error for result in results):
        parts.append(replies.NOT_UNDERSTOOD.format(words=" and ".join(unread)))
    if any("FROM=DONE" in draft.fields.get("repeat", "") for draft in drafts):
        parts.append(replies.FIRST_TIME)
    answer = "\n\n".join(parts)
    is_reminder = any(isinstance(draft.fields.get("remind"), int) for draft in drafts)
    return tell_notifications(answer, context) if is_reminder else answer


def add_reminder(intent: Intent, context: Context) -> Steps:
    """Adds what the user wants to be reminded of."""
    return tell_notifications((yield from add(intent, context)), context)


def _create_calls(drafts: Sequence[Draft]) -> Calls:
    """Groups tasks in sequence that differ only in their titles."""
    if len(drafts) > MAX_TASKS:
        raise Stop(replies.TOO_MANY.format(limit=MAX_TASKS))
    calls: list[PlannedCall] = []
    for fields, group in groupby(drafts, key=lambda draft: draft.fields):
        first, *others = [draft.title for draft in group]
        calls.append(PlannedCall("add_task", {"title": first, **({"also": others} if others else {}), **fields}))
    return tuple(calls)


def _create_drafts(reading: Mapping[str, Text]) -> list[Draft]:
    """Labels all three titles of "milk, eggs and bread to shopping", because there is only one list."""
    if "title" in reading:
        return [Draft(reading["title"].unquote())]
    text = list(reading.values())[-1]
    when = reading["when"].raw if "when" in reading else ""
    text, list_name = slots.split_list_name(text)
    text = _LIST_HEAD.strip_leading(text)
    for head in _HEAD.readings(text):
        if head["new"] and head["new"].keys[:1] != ["#"]:  # "task 0 and task 1" are titles
            text = head["new"]
    is_numbered = len(_NUMBERED.findall(text.raw)) > 1
    lines = re.split("[\n;]", _NUMBERED.sub("\n", text.raw) if is_numbered else text.raw)
    return [draft for line in lines for draft in _read_line(text.replace_raw(line), list_name or "", when)]


def _read_line(line: Text, list_name: str, when: str) -> list[Draft]:
    """A description extends to the end of the line and belongs to the last title before it."""
    titles, described = line, {}
    for first, end in list(_DESCRIPTION.find_all(line))[:1]:
        before, after = line.part(0, first), line.part(end, len(line.keys)).unquote()
        if before and after:
            titles = line.replace_raw(before.raw.rstrip(" ,:("))
            described = {"description": after.removesuffix(")").strip()}
    texts = _split_titles(titles)
    if when and texts:
        texts[-1] = texts[-1].replace_raw(f"{texts[-1].raw} {when}")
    readings = [slots.read_task(text) for text in texts]
    # "every Monday water the plants and feed the cat"
    is_leading = bool(readings and readings[0].when and readings[0].spans[0].start == 0)
    dates = _share_fields([slots.create_fields(reading.when) for reading in readings], is_leading=is_leading)
    priorities = _share_fields([{"priority": reading.priority} if reading.priority else {} for reading in readings])
    labels = _share_fields([{"labels": list(reading.labels)} if reading.labels else {} for reading in readings])
    reminders = _share_fields([{} if reading.remind is None else {"remind": reading.remind} for reading in readings])
    drafts = []
    for text, reading, date, priority, label, reminder in zip(
        texts, readings, dates, priorities, labels, reminders, strict=True
    ):
        title, own_list = slots.split_list_name(text.replace_raw(reading.title))
        names = dict.fromkeys(filter(None, [*label.get("labels", []), list_name or own_list]))
        tags = {"labels": list(names)} if names else {}
        drafts.append(Draft(title.unquote(), {**date, **priority, **tags, **reminder}, reading))
    if drafts:
        drafts[-1] = replace(drafts[-1], fields={**drafts[-1].fields, **described})
    return drafts


def _share_fields(fields: list[dict[str, Any]], *, is_leading: bool = False) -> list[dict[str, Any]]:
    """Fields that only the last title has, or that precede all titles, apply to all."""
    has = [at for at, one in enumerate(fields) if one]
    if has == [len(fields) - 1] or (has == [0] and is_leading):
        return [fields[has[0]] for _ in fields]
    return fields


def _split_titles(line: Text) -> list[Text]:
    """Splits at commas and "and" if the rest is a separate task."""
    spans = _join_tags(line)
    items = [_get_item(line, span) for span in spans]
    verbs = [not VERBS.isdisjoint(item.keys[:1]) for item in items]
    has_commas = any("," in line.raw[before[1] : after[0]] for before, after in pairwise(spans))
    is_verb_for_all = verbs[:1] == [True] and not any(verbs[1:]) and PREPOSITIONS.isdisjoint(items[0].keys)
    if len(items) > 2 and is_verb_for_all and has_commas and _are_nouns(items[1:]):
        verb = items[0].raw.split()[0]  # "buy milk, eggs and bread"
        return [items[0], *(line.replace_raw(f"{verb} {noun.raw}") for noun in items[1:])]
    are_nouns = _are_nouns(items, longest=3 if has_commas else 2)
    titles: list[_Span] = []
    for (start, end), is_verb in zip(spans, verbs, strict=True):
        if not titles or is_verb or (not verbs[0] and (are_nouns or "," in line.raw[titles[-1][1] : start])):
            titles.append((start, end))
        else:
            titles[-1] = (titles[-1][0], end)
    return [item for span in titles if (item := _get_item(line, span)).unquote()]


def _join_tags(line: Text) -> list[_Span]:
    """Returns the pieces; a date, priority or label belongs to the title before it, or else to the next."""
    joints = [match.span() for match in JOINT.finditer(line.raw)]
    pieces = zip([0, *(end for _, end in joints)], [*(start for start, _ in joints), len(line.raw)], strict=True)
    spans: list[_Span] = []
    for start, end in (piece for piece in pieces if _get_item(line, piece)):
        is_tag = _is_tag(_get_item(line, (start, end))) and spans and "\n" not in line.raw[spans[-1][1] : start]
        if is_tag or (len(spans) == 1 and _is_tag(_get_item(line, spans[0]))):
            start = spans.pop()[0]
        spans.append((start, end))
    return spans


def _is_tag(text: Text) -> bool:
    return any(slots.read_task(text.replace_raw(f"{title}, {text.raw}")).title == "x" for title in ("x", "x at 15:00"))


def _get_item(line: Text, span: _Span) -> Text:
    return _BEFORE_ITEM.strip_leading(line.replace_raw(slots.strip_bullet(line.raw[slice(*span)])))


def _are_nouns(items: list[Text], longest: int = 3) -> bool:
    return all(len(words := tokens(item.raw)) <= longest and not PREPOSITIONS.intersection(words) for item in items)
