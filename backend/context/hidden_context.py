"""Hidden context: notes of the server for the model, apart from what users, tasks and tools say.

Nothing inside a block can close it, and nothing outside of one can look like it.
"""

import html
import re
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from backend.context.tag_letters import SPELLINGS
from backend.model.responses.hidden_frame import FRAME
from common.text import remove_invisible

_BEGINNING = FRAME.partition("{}")[0]
# What may be read as the beginning of a tag: what Unicode folds to it, and what its list of confusables says is alike.
_OPENING = "<\uff1c\ufe64\u226e\u2039\u3008\u2329\u27e8\u02c2\u1438\u16b2\u2770\u276c\u276e\U0001d236"
# What chat templates begin and end messages with, as <|im_start|> and, of some models, with full-width bars.
_TEMPLATE_TOKEN = re.compile("<(?=[|\uff5c][^\\s<>|\uff5c]{1,64}[|\uff5c]>)")
_AS_JSON = {ord(c): f"\\u{ord(c):04x}" for c in "<>" + _OPENING[1:]}
_NAME = "hiddencontext"
_H_OR_N = "H"
_PARTS = {chr(ord("P") + number): part for number, part in enumerate(SPELLINGS) if len(part) > 1}
_LETTERS = re.compile(r"[^\W_]+")
_PIECE = 50_000  # characters, between which other threads run
_LETTERS_END = 0x10000  # other letters beyond are rare, and are skipped like signs
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
    table = _create_spelling_table()
    pieces = (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
    spelling = "".join(piece.translate(table) for piece in pieces).replace(" ", "")
    for symbol, part in _PARTS.items():
        spelling = spelling.replace(symbol, part)
    # The "n" of the name is never before an "i", and its "h" always.
    return _NAME in spelling.replace(_H_OR_N + "i", "hi").replace(_H_OR_N, "n")


@cache
def _create_spelling_table() -> bytes:
    """Returns what each character may spell: a letter or part of the name, a dash for other letters, or a blank.

    One byte for each character, as translating with a dictionary that lacks some takes ten times as long.
    """
    table = bytearray(b" " * (sys.maxunicode + 1))
    for letters in _LETTERS.finditer("".join(map(chr, range(_LETTERS_END)))):
        table[letters.start() : letters.end()] = b"-" * len(letters[0])
    symbols = {"": " ", **{part: symbol for symbol, part in _PARTS.items()}}
    for part, characters in SPELLINGS.items():
        for character in characters:
            table[ord(character)] = ord(symbols.get(part, part))
    for character in {*SPELLINGS["h"]}.intersection(SPELLINGS["n"]):
        table[ord(character)] = ord(_H_OR_N)
    return bytes(table)
