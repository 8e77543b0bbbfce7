"""Rows of bars as an SVG, which is light or dark as its reader's screen is, and needs nothing else to be drawn.

The type is monospaced, so that it is known without any font where a text ends: none runs into another.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

Kind = Literal["plain", "good", "bad", "beside"]

_COLUMN, _LINE, _BAR = 7.3, 16, 10  # pixels of a character of 12, from line to line, and a bar's height
_NAME, _VALUE, _VERDICT = 34, 24, 24  # characters
_EDGE, _GAP, _WIDE = 16, 12, 280
_BARS_AT = _EDGE + _NAME * _COLUMN + _GAP
_VALUE_AT = _BARS_AT + _WIDE + _GAP
_VERDICT_AT = _VALUE_AT + _VALUE * _COLUMN + _GAP
_WIDTH = round(_VERDICT_AT + _VERDICT * _COLUMN + _EDGE)
_UNDRAWABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML has no room for
_STYLE = """
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2328 }
.title { font-weight: 600 } .dim { fill: #59636e } .ground { fill: #ffffff }
.plain { fill: #0969da } .good { fill: #1a7f37 } .bad { fill: #cf222e } .beside { fill: #8c959f }
.mark { stroke: #1f2328; stroke-width: 2 } .range { stroke: #1f2328; stroke-width: 1 } .line { stroke: #d1d9e0 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .dim { fill: #9198a1 } .ground { fill: #0d1117 }
  .plain { fill: #4493f8 } .good { fill: #3fb950 } .bad { fill: #f85149 } .beside { fill: #6e7681 }
  .mark, .range { stroke: #e6edf3 } .line { stroke: #30363d }
}
"""


@dataclass(frozen=True)
class Bar:
    """As long as its share of the row's width, None where there is nothing to draw; it may as well be `between` two."""

    share: float | None
    text: str
    kind: Kind = "plain"
    between: tuple[float, float] | None = None


@dataclass(frozen=True)
class Row:
    """Bars below each other, a mark at what must be reached, and lines of words on what is to be seen."""

    name: str
    bars: Sequence[Bar]
    mark: float | None = None
    verdict: Sequence[str] = ()


def svg(title: str, description: str, *, legend: Sequence[tuple[Kind, str]], rows: Sequence[Row], below: str) -> str:
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria-labelledby": "title what"})
    SubElement(root, "title", id="title").text = _drawable(title)
    SubElement(root, "desc", id="what").text = _drawable(description)
    SubElement(root, "style").text = _STYLE
    ground = _rectangle(root, 0, 0, _WIDTH, 0, "ground")
    top = _lines(root, _EDGE, 2 * _EDGE, _wrapped(title, _across()), "title")
    top = _legend(root, top, legend)
    for row in rows:
        top = _row(root, top, row)
    height = str(_lines(root, _EDGE, top + _LINE + _GAP / 2, _wrapped(below, _across()), "dim"))
    ground.set("height", height)
    root.attrib.update(width=str(_WIDTH), height=height, viewBox=f"0 0 {_WIDTH} {height}")
    indent(root)
    return tostring(root, encoding="unicode") + "\n"


def _legend(root: Element, top: float, legend: Sequence[tuple[Kind, str]]) -> float:
    left = float(_EDGE)
    for kind, text in legend:
        wide = _GAP + 4 + (_columns(text) + 2) * _COLUMN
        if left > _EDGE and left + wide > _WIDTH:
            left, top = float(_EDGE), top + _LINE
        _rectangle(root, left, top - _BAR, _BAR, _BAR, kind)
        _lines(root, left + _GAP + 4, top, [_clipped(text, _across() - 4)], "dim")
        left += wide
    return top + _GAP


def _row(root: Element, top: float, row: Row) -> float:
    names, verdict = _wrapped(row.name, _NAME), [line for part in row.verdict for line in _wrapped(part, _VERDICT)]
    height = max(len(names), len(row.bars), len(verdict)) * _LINE + _GAP
    group = SubElement(root, "g")
    SubElement(group, "path", {"class": "line", "d": f"M{_EDGE} {top:g}H{_WIDTH - _EDGE}"})
    first = top + _LINE
    _lines(group, _EDGE, first, names)
    _lines(group, _VERDICT_AT, first, verdict, "dim")
    for number, bar in enumerate(row.bars):
        _bar(group, first + number * _LINE, bar)
    if row.mark is not None:
        here, down = _BARS_AT + _WIDE * _within(row.mark), len(row.bars) * _LINE
        SubElement(group, "path", {"class": "mark", "d": f"M{here:g} {top + 3:g}v{down:g}"})
    return top + height


def _bar(group: Element, base: float, bar: Bar) -> None:
    _lines(group, _VALUE_AT, base, [_clipped(bar.text, _VALUE)])
    if bar.share is None:
        return
    _rectangle(group, _BARS_AT, base - _BAR, max(1, _WIDE * _within(bar.share)), _BAR, bar.kind)
    if bar.between is not None:
        low, high = (_BARS_AT + _WIDE * _within(share) for share in bar.between)
        middle = base - _BAR / 2
        SubElement(group, "path", {"class": "range", "d": f"M{low:g} {middle:g}H{high:g}"})


def _rectangle(inside: Element, x: float, y: float, width: float, height: float, kind: str) -> Element:
    place = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{width:.1f}", "height": f"{height:g}"}
    return SubElement(inside, "rect", {"class": kind, **place})


def _lines(inside: Element, x: float, y: float, lines: Sequence[str], kind: str = "") -> float:
    """Returns where a line below them would stand."""
    for line in lines:
        SubElement(inside, "text", {"x": f"{x:g}", "y": f"{y:g}", **({"class": kind} if kind else {})}).text = line
        y += _LINE
    return y


def _across() -> int:
    return int((_WIDTH - 2 * _EDGE) / _COLUMN)


def _within(share: float) -> float:
    return min(1.0, max(0.0, share))


def _wrapped(text: str, columns: int) -> list[str]:
    lines = [""]
    for word in _words(text, columns):
        longer = f"{lines[-1]} {word}".strip()
        if _columns(longer) <= columns:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _words(text: str, columns: int) -> Iterator[str]:
    """What is longer than a line in pieces."""
    for word in _drawable(text).split():
        piece = ""
        for sign in word:
            if _columns(piece + sign) > columns:
                yield piece
                piece = ""
            piece += sign
        yield piece


def _clipped(text: str, columns: int) -> str:
    text = _drawable(text)
    if _columns(text) <= columns:
        return text
    while _columns(text) >= columns:
        text = text[:-1]
    return f"{text}…"


def _columns(text: str) -> int:
    """Chinese, Japanese and Korean signs and most pictures are two wide."""
    return sum(0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)


def _drawable(text: str) -> str:
    return _UNDRAWABLE.sub("�", text)
