"""Hidden context: notes of the server for the model, apart from what users, tasks and tools say.

Nothing inside a block can close it, and nothing outside of one can look like it.
"""

import html
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from backend.model.hidden_frame import FRAME
from common.text import remove_invisible

_BEGINNING = FRAME.partition("{}")[0]
# What may be read as the beginning of a tag: what Unicode folds to it, and what its list of confusables says is alike.
_OPENING = "<\uff1c\ufe64\u226e\u2039\u3008\u2329\u27e8\u02c2\u1438\u16b2\u2770\u276c\u276e\U0001d236"
# What is drawn like a letter of the name, small or capital, as it is after case folding.
_DRAWN_ALIKE = {
    "h": "\u04bb\u0570\u043d\u03b7\u13bb\u13c2",
    "i": "l1\u0456\u0131\u03b9\u04cf",
    "d": "\u0501\u13a0",
    "e": "3\u0435\u03b5\u13ac",
    "n": "\u0578\u043f\u03b7\u03bd",
    "c": "\u0441\u03f2\u13df",
    "o": "0\u043e\u03bf\u0585\u03c3",
    "t": "\u0442\u03c4\u13a2",
    "x": "\u0445\u03c7",
}
_NAME = re.compile("".join(f"[{letter}{_DRAWN_ALIKE[letter]}]" for letter in "hiddencontext"))
_LETTERS = [{letter, *alike} for letter, alike in _DRAWN_ALIKE.items()]
# By its name, the letter that a variant of a Latin one stands for: small capitals, squared letters, those with hooks.
_LATIN = re.compile(r"\b(?:LATIN|SQUARED|CIRCLED)\b.*\b(?:LETTER|CAPITAL) ([A-Z])\b")
# What chat templates begin and end messages with, as <|im_start|> and, of some models, with full-width bars.
_TEMPLATE_TOKEN = re.compile("<(?=[|\uff5c][^\\s<>|\uff5c]{1,64}[|\uff5c]>)")
_NO_LETTERS = re.compile(r"[\W_]+")
# Letters that look like none of the name's.
_CJK_LETTERS = re.compile("(?:(?=[^\\W\\d_])[\u3400-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff])+")
_SPELLING = {*"hiddencontext", *"".join(_DRAWN_ALIKE.values())}
_AS_JSON = {ord(c): f"\\u{ord(c):04x}" for c in "<>" + _OPENING[1:]}
_NOT_ASCII_OPENING = re.compile(f"[{_OPENING[1:]}]")


def block(text: str) -> str:
    return FRAME.format(escaped(text))


def is_block(text: str) -> bool:
    return text.startswith(_BEGINNING)


def sanitize(text: str) -> str:
    """Changes text of users and tools so that nothing in it looks like hidden context or a token of a chat template."""
    text = remove_invisible(text)
    return escaped(text) if _is_like_tag(text) else _TEMPLATE_TOKEN.sub("&lt;", text)


def sanitize_item(item: Any) -> Any:
    """Sanitizes an item of the model's input, unless it is a message of the user, which is sanitized or a `block`."""
    match item:
        case {"type": "function_call", "arguments": arguments}:
            return {**item, "arguments": _sanitize_json(arguments)}
        case {"type": "function_call_output", "output": output}:
            return {**item, "output": _sanitize_value(output, _sanitize_json)}
        case {"role": "assistant", "content": content}:
            return {**item, "content": _sanitize_value(content, sanitize)}
        case {"type": "reasoning"}:  # in either, as the provider's field is called
            return {
                **item,
                **{name: _sanitize_value(item[name], sanitize) for name in ("summary", "content") if item.get(name)},
            }
        case _:
            return item


def _sanitize_value(value: Any, tame: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return tame(value)
    return [{**part, "text": tame(part["text"])} if part.get("text") else part for part in value]


def _sanitize_json(text: str) -> str:
    text = remove_invisible(text)
    return text.translate(_AS_JSON) if _is_like_tag(text) else _TEMPLATE_TOKEN.sub(r"\\u003c", text)


def escaped(text: str) -> str:
    """Escapes a text so that no tag begins or ends in it, and removes what cannot be seen."""
    text = html.escape(remove_invisible(text), quote=False)
    return _NOT_ASCII_OPENING.sub(lambda match: f"&#{ord(match[0])};", text)


def _is_like_tag(text: str) -> bool:
    """Whether a tag in the text could be taken for a block's, whatever is between its letters and looks like them."""
    if not any(c in text for c in _OPENING):
        return False
    text = _CJK_LETTERS.sub("z", text)  # a letter that is not in the name either
    simplified = {ord(c): _simplify_character(c) for c in set(text)}
    spelt = set("".join(simplified.values()))
    if any(letters.isdisjoint(spelt) for letters in _LETTERS):
        return False
    return _NAME.search(text.translate(simplified)) is not None


@lru_cache(maxsize=65_536)
def _simplify_character(character: str) -> str:
    """Returns what is left of a character to read: letters that may spell the name, a dash for all others, or nothing.

    Some fold to many letters, which is a way to make a text long.
    """
    folded = _NO_LETTERS.sub("", unicodedata.normalize("NFKD", character).casefold())
    if not character.isascii() and (letter := _LATIN.search(unicodedata.name(character, ""))):
        folded = letter[1].lower()
    return folded if not folded or _SPELLING.intersection(folded) else "-"
