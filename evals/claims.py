"""What an answer claims to have done, by its words: sentences without a question, a doubt or a "not"."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

Deed = Literal["added", "deleted", "completed", "changed"]

_DEEDS: dict[Deed, str] = {
    "added": "added|created|scheduled",
    "deleted": "deleted",
    "completed": "completed|finished|ticked",
    "changed": "moved|rescheduled|postponed|snoozed|pushed|renamed|changed|updated|set|tagged|labell?ed|marked|cleared"
    "|removed|skipped|re-?opened|opened|restored|undone|undid|reverted|brought|took|stopped|put",
}
_FIRST = r"\bI(?:.ve| have)?(?: just| now| also| successfully)*"
_LEADING = r"^\W*(?:(?:done|ok|okay|sure|great|alright|all set|certainly|of course)\W+)*(?!put|set)"  # advice begins so
_PASSIVE = r"\b(?:has|have)(?: now| just| successfully)* been(?: successfully)?"
_BARE = re.compile(r"\W*(?:all )?(?:done|set|undone)\W*", re.IGNORECASE)
_DOUBTS = re.compile(
    r"n.t\b|\b(?:not|no|nothing|none|nobody|never|cannot|unable|failed|would|could|should|will|can|if|once|until|"
    r"already|earlier|before|previously|to be|want|shall|may|might)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'"[^"\n]*"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|`[^`\n]*`|\*\*[^*\n]*\*\*')
_OTHER_LANGUAGES: dict[str, dict[str, str]] = tomllib.loads((Path(__file__).parent / "claims.toml").read_text())
_ASKING = ("?", "\uff1f", "\u061f")
_SENTENCE = re.compile("[^.!?\u3002\uff01\uff1f\u061f\n]+[.!?\u3002\uff01\uff1f\u061f]*")


def find_claims(answer: str, language: str = "en", *, lists: bool = False) -> dict[Deed, str]:
    """What it says was done, and the first sentence that says so; "changed" may be anything.

    An answer that `lists` what was done says so of its user.
    """
    found: dict[Deed, str] = {}
    words = _OTHER_LANGUAGES.get(language)
    for sentence in _split_sentences(answer):
        if words and _has(words["deeds"], sentence) and not _has(words["doubts"], sentence):
            found.setdefault("changed", sentence)
        if not _DOUBTS.search(sentence):
            for deed in _find_in_english(sentence, lists=lists):
                found.setdefault(deed, sentence)
    return found


def is_question(answer: str) -> bool:
    return any(sign in answer for sign in _ASKING)


def _find_in_english(sentence: str, *, lists: bool) -> Iterator[Deed]:
    for deed, verbs in _DEEDS.items():
        if any(
            _has(rf"{way} ?\b(?:{verbs})\b", sentence) for way in ([_FIRST] if lists else [_FIRST, _LEADING, _PASSIVE])
        ):
            yield deed
    if not lists and _BARE.fullmatch(sentence):
        yield "changed"


def _split_sentences(answer: str) -> list[str]:
    """Without those that ask, and without what stands in quotes: titles of tasks."""
    pieces = [piece.strip() for piece in _SENTENCE.findall(_QUOTED.sub("…", answer))]
    return [piece for piece in pieces if not piece.endswith(_ASKING)]


def _has(pattern: str, sentence: str) -> bool:
    return re.search(pattern, sentence, re.IGNORECASE) is not None
