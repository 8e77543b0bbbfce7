"""What a rule of the grammar is, and how the intents are built from what it matched."""

import re
from collections.abc import Callable
from itertools import islice
from string import punctuation
from typing import Literal, NamedTuple

from offline_model.rules import sentences
from offline_model.rules.intents import Add, Complete, Delete, Intent, NewTask, Say, Update
from offline_model.rules.new_tasks import new_tasks
from offline_model.rules.vocabulary import AROUND_WHOLE_LIST, NOT_DEEDS, POINTING, WHOLE_LIST
from offline_model.rules.words import Masked, compiled, is_known_past, is_past, numbers_in, points, tokens

MAX_READINGS = 20

Build = Callable[[re.Match[str], Masked], Intent | None]

_TIME = compiled(
    r"\b(?:at (?:[0-9]|noon|midnight|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
    r"|tomorrow|tonight|today|next (?:week|month|year)|(?:every|each) \w+"
    r"|on (?:mon|tues|wednes|thurs|fri|satur|sun)day|in (?:[0-9]+|an?|one|two|half an) (?:minute|hour|day|week)s?)\b"
)
_NO_STATEMENT = compiled(
    r"(?:what|which|who|why|how|is|are|was|did|do|does|has|have|that|it|this|i|we|you|nothing|never)\b.*"
    r"|(?:.*\b)?(?:not|isn't|aren't|if|when|whether|until|once|unless|after|before)\b.*"
)
_BETWEEN = compiled(r"(?:to|into|as)\b")
_BESIDE_TITLE = compiled(r"^ ?(?:the )?(?:(?:title|name|text) of )?|(?:'s (?:title|name|text))?[\s,:]*$")


class Rule(NamedTuple):
    """The first of the patterns that fits the whole request builds the intent, or passes on with None."""

    patterns: tuple[re.Pattern[str], ...]
    build: Build


def rule(build: Build, *patterns: str) -> Rule:
    return Rule(tuple(map(compiled, patterns)), build)


def say(text: str, *, aside: bool = False) -> Build:
    return lambda match, masked: Say(text, aside)


def add(*, timed: bool = False) -> Build:
    def build(match: re.Match[str], masked: Masked) -> Intent:
        tasks = new_tasks(match["x"], masked)
        if not tasks:
            return Say(sentences.NO_TITLE)
        return Add(tasks, sentences.TIME_IS_TEXT if timed and _TIME.search(match["x"]) else "")

    return build


def add_called(match: re.Match[str], masked: Masked) -> Intent | None:
    tasks = new_tasks(match["x"], masked, single=True)
    return Add(tasks) if tasks else None


def target(kind: type[Complete] | type[Delete]) -> Build:
    def build(match: re.Match[str], masked: Masked) -> Intent:
        phrase = masked.named(match["x"].strip(" \t\n.,:;"))
        words = set(tokens(phrase))
        if not words or words <= POINTING:
            return Say(sentences.NO_SUBJECT)
        if words <= AROUND_WHOLE_LIST and words & WHOLE_LIST:
            return Say(sentences.NO_BULK)
        return kind(phrase)

    return build


def add_reminder(match: re.Match[str], masked: Masked) -> Intent | None:
    """Of "remind me tomorrow to call mum": "call mum tomorrow"."""
    tasks = new_tasks(match["x"], masked)
    timed = tuple(NewTask(f"{task.title} {masked.shown(match['when'])}", task.description) for task in tasks)
    return Add(timed, sentences.TIME_IS_TEXT) if timed else None


def add_duty(match: re.Match[str], masked: Masked) -> Intent | None:
    """Of "I should call mum", but not "I should have called her"."""
    have, _, verb = match["x"].partition(" ")
    is_past_duty = have.casefold() == "have" and is_past(verb.partition(" ")[0].casefold())
    return None if is_past_duty else add(timed=True)(match, masked)


def stated(match: re.Match[str], masked: Masked) -> Intent | None:
    """Of "the milk is done", or "the rent is paid" with its verb."""
    verb = match.groupdict().get("verb")
    if set(tokens(match["x"])) <= POINTING:
        return Say(sentences.NO_SUBJECT)
    if _NO_STATEMENT.fullmatch(match["x"]) or (verb and not is_known_past(verb.casefold())):
        return None
    intent = target(Complete)(match, masked)
    return Complete(f"{verb} {intent.phrase}", told=True) if verb and isinstance(intent, Complete) else intent


def told(match: re.Match[str], masked: Masked) -> Intent | None:
    """Of "I called mum" or "bought the milk"."""
    verb = match["verb"].casefold()
    is_deed = is_past(verb) and verb not in NOT_DEEDS if match["who"] else is_known_past(verb)
    if is_deed and set(tokens(match["x"])) <= POINTING:
        return Say(sentences.NO_SUBJECT)
    return Complete(masked.named(f"{match['verb']} {match['x']}"), told=True) if is_deed else None


def update(field: Literal["title", "description"], separators: str, *, value_first: bool = False) -> Build:
    between = compiled(separators)

    def build(match: re.Match[str], masked: Masked) -> Intent | None:
        whole = match["x"].strip()
        pairs = [(whole[: cut.start()], whole[cut.end() :]) for cut in islice(between.finditer(whole), MAX_READINGS)]
        if value_first:
            pairs = [(phrase, value) for value, phrase in reversed(pairs)]
        readings = [(masked.named(_BESIDE_TITLE.sub("", phrase)), masked.shown(value)) for phrase, value in pairs]
        readings = [(phrase, value) for phrase, value in readings if phrase and _is_value(value)]
        if readings and points(readings[0][0]):
            return Say(sentences.NO_SUBJECT)
        return Update(field, tuple(readings)) if readings else None

    return build


def rename_number(match: re.Match[str], masked: Masked) -> Intent | None:
    value = masked.shown(match["x"])
    if numbers_in(match["n"]) and not numbers_in(value) and _is_value(value) and not _BETWEEN.match(value):
        return Update("title", ((match["n"], value),))
    return None


def _is_value(text: str) -> bool:
    """Not of nothing but quotation marks or other signs."""
    return bool(text.strip(punctuation + " "))


def clear_description(match: re.Match[str], masked: Masked) -> Intent | None:
    return Update("description", ((masked.named(match["x"]), ""),))
