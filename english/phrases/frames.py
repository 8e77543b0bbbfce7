"""Polite words around a task, such as "please remind me to", which are no part of its title."""

import re
from collections.abc import Sequence

from english.atoms import Atom, Day, End, PartOfDay, Repeat, Time
from english.words import VERBS, Words

_POLITE = (
    r"(?:(?:hey|hi|hello|ok|okay|so|also)(?: ,)? )?(?:(?:please|pls|plz|kindly)(?: ,)? )?"
    r"(?P<question>(?:can|could|would|will) you (?:please |pls )?)?"
)
_REMINDER = r"(?:remind me|(?:set|add|create|make|give me)(?: me)? an? reminder|reminder)"
_DUTY = (
    r"(?:let me know|remember|(?:don't|dont|do not|never) forget|(?:make|be) sure|(?:i|we) (?:really |still |also )?"
    r"(?:need|have|ought|must not forget|mustn't forget|should not forget|shouldn't forget)"
    r"|(?:i've|we've|i have|we have) got|i'd like|i would like)"
)
_MODAL = r"(?:i|we) (?:really |still |also )?(?:must|should|gotta|will)|(?:please|pls|plz|kindly)(?: ,)?"
_WISH = r"(?:i|we) (?:really |still |also )?want"
_NEW_TASK = r"(?:add|create|make|put)(?: an?| another| the)?(?: new)? (?:task|todo|to - do|to do|item)"
_NOTE = r"note to self|todo|to - do|to do|task|new task"
# What follows each kind of head: words that end it, or, without any, one of the verbs with which tasks begin.
_HEADS = tuple(
    (re.compile(rf"{_POLITE}(?:{head})(?= |$)"), frozenset(tails.split()), needs_verb)
    for head, tails, needs_verb in (
        (_REMINDER, "to that about of :", False),
        (_DUTY, "to", False),
        (_WISH, "to", True),
        (_NEW_TASK, "to for", True),
        (f"{_NEW_TASK}|{_NOTE}", ":", False),
        (_MODAL, "", True),
    )
)
_TAIL = re.compile(
    r"(?:, |- )?(?P<please>please|pls|plz)(?: [.!])*$"
    r"|(?:[,.!-] )?(?:(?:please|pls|plz) )?(?:thanks|thank you|thx|ty|cheers)"
    r"(?: (?:so|very) much| a lot| in advance)?(?: [.!])*$"
)
_BEFORE_MENTION = frozenset(["say", "says", "saying", "said", "a", "the", "word", "my", "of", "with"])


def find_frames(words: Words, atoms: Sequence[Atom]) -> tuple[list[range], set[int]]:
    """Returns the words of frames, and where dates within them begin: "tomorrow" in "remind me tomorrow to"."""
    dated = {
        at
        for atom in atoms
        if isinstance(atom.meaning, Day | Time | PartOfDay | Repeat | End)
        for at in range(atom.first, atom.end)
    }
    for head, tails, needs_verb in _HEADS:
        match = head.match(words.line)
        if match is None:
            continue
        end = words.index_at(match.end())
        frames, within, rest = [range(end)], set[int](), end
        if tails:
            rest = _skip(words, dated, end)
            if words.key(rest) not in tails:
                continue
            within = set(range(end, rest))
            frames.append(range(rest, rest + 1))
            rest += 1
        if rest >= len(words.words) or (needs_verb and words.key(rest) not in VERBS):
            continue
        if match["question"] and words.key(len(words.words) - 1) == "?":
            frames.append(range(len(words.words) - 1, len(words.words)))
        return frames + _find_tail(words, dated), within
    return _find_tail(words, dated), set()


def _skip(words: Words, dated: set[int], at: int) -> int:
    """Returns the first word after the dates and their prepositions that begin at a word."""
    while at in dated or (
        at + 1 in dated and words.key(at) in ("on", "by", "at", "for", ",", "and", "from", "starting")
    ):
        at += 1
    return at


def _find_tail(words: Words, dated: set[int]) -> list[range]:
    size = len(words.words)
    for first in range(max(0, size - 8), size):
        match = _TAIL.match(words.line, words.starts[first])
        if match is None:
            continue
        is_apart = words.key(first) in (",", ".", "!", "-") or first - 1 in dated
        if is_apart or (match["please"] and words.key(first - 1) not in _BEFORE_MENTION):
            return [range(first, size)] if first else []
        return []
    return []
