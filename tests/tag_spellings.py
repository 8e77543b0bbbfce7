"""Writes the table of characters that may spell the name of the hidden context's tag: `python -m tests.tag_spellings`.

Run it with the newest Python, whose `unicodedata` knows most characters.
"""

import re
import sys
import unicodedata
from collections import defaultdict
from functools import partial
from pathlib import Path

TABLE = Path(__file__).parents[1] / "backend" / "context" / "tag_letters.py"
NAME = "hiddencontext"
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
_ALIKE = {letter: {letter, *alike} for letter, alike in _DRAWN_ALIKE.items()}
_PATTERN = re.compile("".join(f"[{letter}{_DRAWN_ALIKE[letter]}]" for letter in NAME))
_SPELLING = {character for alike in _ALIKE.values() for character in alike}
# By its name, the letter that a variant of a Latin one stands for: small capitals, squared letters, those with hooks.
_LATIN = re.compile(r"\b(?:LATIN|SQUARED|CIRCLED)\b.*\b(?:LETTER|CAPITAL) ([A-Z])\b")
_PARTS = sorted({NAME[first:last] for last in range(1, len(NAME) + 1) for first in range(last)})
_IN_A_ROW, _IN_ONE_LINE = 10, 16
_NO_LETTERS = re.compile(r"[\W_]+")


def simplify_character(character: str) -> str:
    """Returns what is left of a character to read.

    That is letters that may spell the name, a dash for all others, or nothing.
    """
    folded = _NO_LETTERS.sub("", unicodedata.normalize("NFKD", character).casefold())
    if not character.isascii() and (letter := _LATIN.search(unicodedata.name(character, ""))):
        folded = letter[1].lower()
    return folded if not folded or _SPELLING.intersection(folded) else "-"


def spells_name(text: str) -> bool:
    """Whether the name can be read in the text: the definition, character by character."""
    return _PATTERN.search("".join(map(simplify_character, text))) is not None


def collect_spellings() -> dict[str, str]:
    """Returns the characters that may spell each letter, each part of the name, and nothing although they are letters.

    Only the first character of the name can spell other letters before it, and only the last one others after it.
    """
    characters: dict[str, list[str]] = defaultdict(list)
    for character in map(chr, range(sys.maxunicode + 1)):
        letters = simplify_character(character)
        if letters == "" and re.match(r"[^\W_]", character):
            characters[""].append(character)
        if letters not in ("", "-"):
            for part in filter(partial(_may_spell, letters), _PARTS):
                characters[part].append(character)
    return {part: "".join(found) for part, found in sorted(characters.items())}


def _may_spell(letters: str, part: str) -> bool:
    if NAME.startswith(part):
        letters = letters[-len(part) :]
    if NAME.endswith(part):
        letters = letters[: len(part)]
    return len(letters) == len(part) and all(letter in _ALIKE[one] for letter, one in zip(letters, part, strict=True))


def render_table(spellings: dict[str, str]) -> str:
    lines = "".join(f"    {_quote(part)}: {_render_characters(found)},\n" for part, found in spellings.items())
    return f'''"""What may spell a part of the hidden context's name, written by `python -m tests.tag_spellings`."""

SPELLINGS = {{
{lines}}}
"""By the part; with no part, letters that fold to nothing."""
'''


def _render_characters(characters: str) -> str:
    escapes = [character if character.isascii() else _escape(character) for character in characters]
    if len(escapes) <= _IN_ONE_LINE:
        return f"({_quote(''.join(escapes))})"
    rows = [escapes[first : first + _IN_A_ROW] for first in range(0, len(escapes), _IN_A_ROW)]
    return "(\n" + "".join(f"        {_quote(''.join(row))}\n" for row in rows) + "    )"


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _quote(text: str) -> str:
    return f'"{text}"'


if __name__ == "__main__":
    TABLE.write_text(render_table(collect_spellings()))
