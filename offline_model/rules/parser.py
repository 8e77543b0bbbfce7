"""From a message to intents: it is split into requests, and each is tried against the grammar's rules in turn."""

import re

from offline_model.rules import sentences
from offline_model.rules.grammar import REQUESTS, SMALL_TALK, WISHES
from offline_model.rules.intents import Add, Intent, Say
from offline_model.rules.new_tasks import listed_tasks
from offline_model.rules.rule import Rule
from offline_model.rules.words import Masked, compiled

MAX_CHARACTERS = 5000

_SENTENCE_END = re.compile(r"(?<=[.!?;])(?<!\b\w\.)(?<!\b\d\d\.)\s+|\n")
# After "and", only what can hardly be part of a task's title starts another request.
_NEXT_REQUEST = compiled(
    r",? (?:and|then|and then|but) (?=(?:please |also |then )*(?:"
    r"(?:delete|remove|complete|finish|tick off|check off|rename) (?:(?:task|number) )?#?[0-9]+\b"
    r"|(?:delete|remove|complete|finish) the .+ task\b|mark .+ (?:done|completed?|finished)\b"
    r"|(?:show|list|tell) (?:me )?(?:my|the|all|everything|what)\b|what(?:'s| is| do| else)\b|add\b))"
)
_LEAD = compiled(
    r"(?:please|pls|plz|kindly|(?:hey|hi|hello)(?: there)?|ok|okay|well|so|now|then|also|and|yes|great|thanks|thank you"
    r"|oh|just|alright|(?:can|could|would|will) (?:you|u)|go ahead and|let's|let us|help me(?: to)?)\b[\s,!.:]*(?=\S)"
)
_WANT = compiled(r"i(?:'d| would)? (?:(?:like|want|wish) (?:you )?|need you )to ")
_TRAIL = compiled(r"[\s,]+(?:please|pls|plz|thanks|thank you|thx|ty|for me)\W*$|(?<!\.\w)[\s.!?;,]+$")


def parse(request: str) -> tuple[Intent, ...]:
    """What is asked for, in order; nothing if it cannot be told."""
    if len(request) > MAX_CHARACTERS:  # the rules' time grows faster than the text
        return (Say(sentences.TOO_LONG.format(limit=MAX_CHARACTERS)),)
    masked = Masked.of(request)
    if listed := listed_tasks(_stripped(masked.text), masked):
        return (Add(listed),)
    intents = _all_of(_SENTENCE_END.split(masked.text), masked) or _all_of([masked.text], masked)
    return tuple(_joined(_without_asides(intents)))


def _all_of(texts: list[str], masked: Masked) -> list[Intent]:
    """The intents of texts that can all be understood, else nothing."""
    parts = [part for text in texts for part in _NEXT_REQUEST.split(text) if part.strip(" \t.!?;,")]
    intents = [_one(part, masked) for part in parts]
    return [intent for intent in intents if intent] if all(intents) else []


def _one(text: str, masked: Masked) -> Intent | None:
    text = text.strip()
    polite = _stripped(text)
    wanted = _WANT.sub("", polite, count=1) if _WANT.match(polite) else polite
    return (
        _match(text, masked, SMALL_TALK)
        or _match(polite, masked, (*REQUESTS, *SMALL_TALK))
        or _match(wanted, masked, REQUESTS)
        or _match(polite, masked, WISHES)
    )


def _match(text: str, masked: Masked, rules: tuple[Rule, ...]) -> Intent | None:
    for rule in rules:
        for pattern in rule.patterns:
            if (match := pattern.fullmatch(text)) and (intent := rule.build(match, masked)):
                return intent
    return None


def _stripped(text: str) -> str:
    for _ in range(4):
        text = _TRAIL.sub("", _LEAD.sub("", text, count=1) if _LEAD.match(text) else text).strip()
    return text


def _joined(intents: list[Intent]) -> list[Intent]:
    """Additions that follow each other are one, so that they take one step."""
    joined: list[Intent] = []
    for intent in intents:
        if joined and isinstance(intent, Add) and isinstance(before := joined[-1], Add):
            joined[-1] = Add(before.tasks + intent.tasks, before.remark or intent.remark)
        else:
            joined.append(intent)
    return joined


def _without_asides(intents: list[Intent]) -> list[Intent]:
    requests = [intent for intent in intents if not (isinstance(intent, Say) and intent.aside)]
    return requests or intents[-1:]
