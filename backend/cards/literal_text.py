"""Renders arguments of calls as they are written: nothing is left out, nothing hidden, and each text looks different.

What cannot be seen is escaped, `\\u{200b}`; long runs of blanks are counted, `⟨1,200 spaces⟩`.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from common.text import FLAG, is_ignorable

_NO_BREAK_SPACE = "\u00a0"
INDENT = _NO_BREAK_SPACE * 2
"""Begins each line of a text of several lines; no other line begins so."""

_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_JOINING_SCRIPTS = "\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u17ff\ufb50-\ufdff\ufe70-\ufefc"
# Invisible characters with which emoji and letters are written that look different with them.
_DRAWN = re.compile(
    f"{FLAG}|(?<=[{_EMOJI}])\ufe0f|(?<=[0-9#*])\ufe0f(?=\u20e3)|(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])"
    f"|(?<=[{_JOINING_SCRIPTS}])[\u200c\u200d](?=[{_JOINING_SCRIPTS}])"
)
# Controls, formats, surrogates, private use, unassigned, and all blanks but the ordinary one.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
_OTHERS = frozenset("\u2800⟨")  # looks like a blank; begins what is counted
_MAX_MARKS = 4  # on one letter: more hide the lines above and below

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.-]{0,63}")
_MAX_BLANKS = 16
_COUNTED = re.compile(rf" {{{_MAX_BLANKS + 1},}}| +$|\t+|(\\u\{{[0-9a-f]+\}})\1{{4,}}")
_BLANKS = re.compile("^ +| +(?= )")
_MAX_EMPTY_LINES = 2

_WORD = re.compile(r"[^\W\d_]+")
_HOST = re.compile(r"://([^/\s?#]+)")
_LOOKALIKES = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")
_MAX_NOTES, _MAX_NOTED = 5, 60


def render_arguments(given: Mapping[str, Any]) -> list[str]:
    """Renders each argument in a line, or with its lines below its name, and notes about letters that look alike."""
    lines = [line for name, value in given.items() for line in _render_argument(name, value)]
    texts = (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in given.values())
    notes = dict.fromkeys(note for text in texts for note in _find_notes(text))
    return [*lines, *[*notes][:_MAX_NOTES]]


def render_line(text: str) -> str:
    """Renders a text in one line; its line breaks are escaped, too."""
    return _count_blanks(_escape(text).replace("\n", "\\u{a}"))


def _render_argument(name: str, value: Any) -> Iterator[str]:
    shown = name if _NAME.fullmatch(name) else render_line(json.dumps(name, ensure_ascii=False))
    if not isinstance(value, str):
        yield f"{shown}: {render_line(json.dumps(value, ensure_ascii=False))}"
    elif "\n" in value:
        yield f"{shown}:"
        yield from (f"{INDENT}{line}" for line in _render_lines(value))
    elif value == "":
        yield f"{shown}: ⟨empty⟩"
    else:
        yield f"{shown}: {render_line(json.dumps(value, ensure_ascii=False) if _is_json(value) else value)}"


def _render_lines(text: str) -> Iterator[str]:
    empty = 0
    for line in [*text.split("\n"), None]:
        if line == "":
            empty += 1
            continue
        if empty:
            yield from [f"⟨{empty:,} empty lines⟩"] if empty > _MAX_EMPTY_LINES else [""] * empty
            empty = 0
        if line is not None:
            yield render_line(line)


def _escape(text: str) -> str:
    """Escapes all that cannot be seen, except line breaks, tabs and spaces, and what looks like an escape."""
    text = text.replace("\\u{", "\\u{5c}u{")
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    drawn = {place for found in _DRAWN.finditer(text) for place in range(*found.span())}
    result, marks = list[str](), _MAX_MARKS  # a mark without a letter would be drawn on what is before the text
    for place, c in enumerate(text):
        category = unicodedata.category(c)
        marks = marks + 1 if category[0] == "M" else 0 if category[0] in "LN" else _MAX_MARKS
        is_shown = c in "\n\t " or place in drawn or (category not in _HIDDEN and not is_ignorable(c))
        if is_shown and c not in _OTHERS and (category[0] != "M" or place in drawn or marks <= _MAX_MARKS):
            result.append(c)
        else:
            result.append(f"\\u{{{ord(c):x}}}")
    return "".join(result)


def _count_blanks(line: str) -> str:
    """Counts long runs, those of tabs, and the spaces at the end; keeps all other spaces where HTML would join them."""
    return _BLANKS.sub(lambda found: _NO_BREAK_SPACE * len(found[0]), _COUNTED.sub(_count, line))


def _count(found: re.Match[str]) -> str:
    if found[1]:
        return f"⟨{len(found[0]) // len(found[1]):,} times {found[1]}⟩"
    count, unit = len(found[0]), "space" if found[0][0] == " " else "tab"
    return f"⟨{count:,} {unit}{'' if count == 1 else 's'}⟩"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _find_notes(text: str) -> Iterator[str]:
    """Yields a note for each word that mixes scripts whose letters look alike, and each host that is not Latin."""
    if text.isascii():
        return
    for word in _WORD.findall(text):
        if not word.isascii() and len(scripts := _list_scripts(word)) > 1:
            yield f"⟨“{render_line(word[:_MAX_NOTED])}” mixes {' and '.join(scripts)} letters⟩"
    for host in _HOST.findall(text):
        if not host.isascii():
            yield f"⟨The host “{render_line(host[:_MAX_NOTED])}” has letters that may look like others⟩"


def _list_scripts(word: str) -> list[str]:
    names = {unicodedata.name(c, "").partition(" ")[0] for c in word}
    return [name.capitalize() for name in _LOOKALIKES if name in names]
