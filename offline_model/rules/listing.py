"""Questions about the list: which tasks they ask for."""

import re

from offline_model.rules.intents import Find, List, Status
from offline_model.rules.vocabulary import (
    ALL_WORDS,
    AROUND_VERB,
    DONE_WORDS,
    DUE_WORDS,
    LIST_FILLERS,
    LIST_SUBJECTS,
    OPEN_WORDS,
)
from offline_model.rules.words import Masked, compiled, numbers_in, tokens

_COMMAND = compiled(
    r"(?:list|show|display|print|view|see|read(?: out)?|give|get|tell|fetch|find|search(?: for)?|look for)\b"
)
_SEARCH = compiled(r"(?:show|find|search(?: for)?|look for|view|display)(?: me)? (?P<x>.+)")
_OPEN_QUESTION = compiled(r"(?:what|which|how many|how much|anything|whats|any|where|give|list|tell)\b")
_YES_NO_QUESTION = compiled(
    r"(?:(?:is|are|was|were)(?: there)?|(?:did|have) (?:i|we)|do (?:i|we) have|am i|has)\b ?(?P<x>.*)"
)
_DID = compiled(r"\bdid (?:i|we) (?:do|get done)\b")
_FILLERS = compiled(r"\b(?:already|yet|still|ever|finally|actually|really|just) | (?:already|yet|still)$")
_TASK = compiled(r"\b(?:tasks?|items?|to-?dos?|anything|something)\b")
_ABOUT = compiled(r".*\b(?:about|with|containing|mention(?:s|ing)?|matching|for) (?P<x>.+)")
_AROUND = compiled(
    r"^(?:(?:to|an?|the|any|got) )+| (?:(?:still|already) )?(?:on|in) (?:my|the) (?:\w+ )?list$"
    r"| (?:done|finished|completed?|open|pending|there|left)(?: (?:yet|already|now))?$"
)


def listing_of(text: str, masked: Masked) -> List | Find | None:
    words = [re.sub(r".+n't$", "not", word) for word in tokens(text)]
    asked = _COMMAND.match(text) or _OPEN_QUESTION.match(text) or _YES_NO_QUESTION.match(text)
    if words[:1] and words[0] in ("complete", "finish") and set(words[1:2]) & AROUND_VERB:
        return None
    if set(words) <= LIST_SUBJECTS | LIST_FILLERS and set(words) & LIST_SUBJECTS and (asked or _is_bare(words)):
        return List("completed" if _DID.search(text) else _status(set(words)))
    return _find(text, masked)


def _is_bare(words: list[str]) -> bool:
    """Of "my tasks" or "all open tasks", but not "done" or "do it"."""
    return bool(words) and (
        words[-1] in ("list", "tasks", "todos", "todo", "items", "overview") or words in (["all"], ["everything"])
    )


def _status(words: set[str]) -> Status:
    if words & OPEN_WORDS and words & DONE_WORDS and words & {"and", "or", "both"}:
        return "all"
    if words & OPEN_WORDS:
        return "pending"
    if words & DONE_WORDS:
        return "pending" if words & DUE_WORDS and "been" not in words else "completed"
    return "all" if words & ALL_WORDS else "pending"


def _find(text: str, masked: Masked) -> Find | None:
    if match := _SEARCH.fullmatch(text):
        about = _ABOUT.fullmatch(match["x"])
        return _found((about or match)["x"], masked)
    if _OPEN_QUESTION.match(text) and set(tokens(text)) & {"task", "tasks", "list", "todos", "items"}:
        return _found(match["x"], masked) if (match := _ABOUT.fullmatch(text)) else None
    if match := _YES_NO_QUESTION.fullmatch(text):
        said = _FILLERS.sub("", match["x"])
        about = _ABOUT.fullmatch(said) if _TASK.search(said) else None
        return _found(about["x"] if about else said, masked, told=not about)
    return None


def _found(part: str, masked: Masked, *, told: bool = False) -> Find | None:
    before = None
    while part != before:
        before, part = part, _AROUND.sub("", part.strip())
    phrase = masked.named(part)
    return Find(phrase, told) if tokens(phrase) else None


def details_of(text: str, masked: Masked) -> Find | None:
    """Of "tell me more about 11", but not of "more about my tasks"."""
    if set(tokens(text)) <= LIST_SUBJECTS | LIST_FILLERS:
        return None
    return _found(text, masked)


def numbered_of(text: str) -> Find | None:
    return Find(text) if numbers_in(text) else None
