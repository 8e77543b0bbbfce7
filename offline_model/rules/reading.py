"""From a message to intents: it is cut into requests, and each is tried on the tables of wishes."""

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from itertools import islice, pairwise

from english import DateOrder
from offline_model.rules import sentences
from offline_model.rules.intents import MAX_CALLS, Intent
from offline_model.rules.language.pattern import Pattern, Phrases, Reading, without
from offline_model.rules.language.text import Text
from offline_model.rules.plans.adding import add
from offline_model.rules.plans.new_tasks import is_bulleted
from offline_model.rules.plans.talking import say
from offline_model.rules.wishes import WISHES
from offline_model.rules.wishes.gaps import DEEDS, GAPS, NAMING
from offline_model.rules.wishes.talk import SMALL_TALK
from offline_model.rules.wishes.wish import Wish

MAX_CHARACTERS = 5_000
MAX_REQUESTS = 2 * MAX_CALLS

_SENTENCE_END = re.compile(r"(?:[!?;]|(?<!\W\w)(?<!\W\d\d)(?<!^\w)(?<!^\d\d)(?<!\b[DdMm]r)(?<!\b[Mm]rs)\.) |\n")
"""Not of "1. milk", "12. milk" and "e. g. milk"."""
_DOTTED_DATE = re.compile(r"\b\d\d\.\d\d\Z")
_LEAD = Phrases.of(
    "please|pls|plz|kindly|(hey|hi|hello) [there]|ok|okay|well|so|now|then|also|and|yes|great|thanks|thank you|oh|just"
    "|oops|sorry|actually|wait|hmm|um"
    "|:|alright|(can|could|would|will) (you|u)|go ahead and|let's|let us|(i (need|want|would like)|i'd like) you to"
)
_WISHED = Phrases.of("{would_like}")
_TRAIL = Phrases.of("please|pls|plz|thanks|thank you|thx|ty|for me|:")
_AND = Phrases.of("(and|then|and then|but) [please|also|then]")
_NEXT = (
    (Phrases.of("(delete|remove|complete|finish|(tick|check) off|rename) {number}|add|what ('s|is|do|else)"), ()),
    (Phrases.of("(show|list|tell) [me] (my|the|all|everything|what)"), ()),
    (Phrases.of("mark"), ("done", "completed", "complete", "finished")),
    (Phrases.of("(delete|remove|complete|finish) the"), ("task",)),
    (Phrases.of("move|reschedule|postpone|snooze|rename"), ("to", "by", "until")),
)
"""What starts another request after "and", as it can hardly be part of a title; one of the words has to follow it."""
_COMMANDS = Phrases.of("(add|put|create|delete|remove|complete|finish|move|rename|mark|tick) [off]")
_NEXT_COMMAND = Phrases.of("delete|remove|complete")
"""What starts another request after one that begins with a command."""


class Table:
    def __init__(self, wishes: Iterable[Wish]) -> None:
        self._rows = [(Pattern(wish.pattern), wish) for wish in wishes]
        if unknown := {gap for pattern, _ in self._rows for gap in pattern.gaps} - GAPS.keys():
            raise ValueError(f"no such gaps: {unknown}")

    def intent_of(self, text: Text) -> Intent | None:
        """Of the first wish that fits the whole text."""
        for pattern, wish in self._rows:
            if readings := [reading for reading in pattern.readings(text) if _fits(reading)]:
                naming = [gap for gap in NAMING if gap in readings[0]]
                phrases = [" ".join(reading[gap].shown() for gap in naming) for reading in readings if naming]
                told = not DEEDS.isdisjoint(readings[0])
                return Intent(wish.plan, wish.answer, readings, phrases, kind=wish.kind, told=told)
        return None


def _fits(reading: Reading) -> bool:
    return all(gap == "..." or (part and GAPS[gap](part)) for gap, part in reading.items())


_SMALL_TALK, TABLE = Table(SMALL_TALK), Table(WISHES)


def intents_of(
    request: str,
    *,
    now: datetime | None = None,
    order: DateOrder | None = None,
    wishes: Table = TABLE,
    longest: int = MAX_CHARACTERS,
) -> tuple[Intent, ...]:
    """What is asked for, in order; nothing if it cannot be told. Dates are of the calendar where `now` is known."""
    if len(request) > longest:
        return (Intent(say, sentences.TOO_LONG.format(limit=longest)),)
    text = Text.said(request, now, order)
    if is_bulleted(listed := _polite(text)) and (intent := wishes.intent_of(listed)):
        return (intent,)
    places = [0, *(match.end() for match in _SENTENCE_END.finditer(text.raw)), len(text.raw)]
    parts = (text.with_raw(text.raw[start:end]) for start, end in pairwise(places))
    intents = _all_of(parts, wishes) or _all_of([text], wishes)
    return tuple(intent for intent in intents if intent.kind != "aside") or tuple(intents[-1:])


def _all_of(texts: Iterable[Text], wishes: Table) -> list[Intent]:
    """The intents of texts that can all be understood, else nothing; additions that follow each other take one step."""
    found = (part for text in texts if text for part in _requests(text) if part)
    parts = list(islice(found, MAX_REQUESTS + 1))
    if len(parts) > MAX_REQUESTS:
        return [Intent(say, sentences.TOO_MANY.format(limit=MAX_CALLS))]
    intents: list[Intent] = []
    for part in parts:
        polite = _polite(part)
        intent = _SMALL_TALK.intent_of(part) or wishes.intent_of(without(polite, _WISHED)) or wishes.intent_of(polite)
        if not intent:
            return []
        if intents and intent.plan is add is intents[-1].plan and intent.answer == intents[-1].answer:
            intent = replace(intent, readings=[*intents.pop().readings, *intent.readings])
        intents.append(intent)
    return intents


def _requests(text: Text) -> list[Text]:
    keys = text.keys
    last = {key: at for at, key in enumerate(keys)}
    parts: list[Text] = []
    start = 0
    for first, end in _AND.places(keys):
        follow = [words for phrases, words in _NEXT if phrases.ends(keys, end)]
        begins = any(not words or any(last.get(word, 0) > end for word in words) for words in follow)
        begins = begins or bool(_COMMANDS.ends(keys, start) and _NEXT_COMMAND.ends(keys, end))
        if begins and first > start:
            parts.append(text.part(start, first))
            start = end
    return [*parts, text.part(start, len(keys))]


def _polite(text: Text) -> Text:
    """Without "please" and the like, and without the sentence's end, but for a question mark."""
    polite = without(text, _LEAD, _TRAIL).raw
    bare = polite.rstrip(" .!?;,")
    if polite.startswith(".", len(bare)) and (bare[-2:-1] == "." or _DOTTED_DATE.search(bare)):
        bare += "."  # of "5 p.m." and "05.12."
    return text.with_raw(bare + "?" if "?" in polite[len(bare) :] else bare)
