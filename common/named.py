"""Counts the tasks that the claims of an answer name, so that they can be compared with what was changed.

It counts too few rather than too many, as a truthful answer must not be doubted: numbers of tasks, enumerations and
lists in which a changed task occurs, and titles of calls that failed.
"""

import re
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from common.claims import clip_answer, find_claims

_MAX_TITLES = 200  # that are looked for
_MAX_ITEMS = 50  # of an enumeration
_TITLE = "\u2026"  # in place of each character of a title
_SAME = {
    0x2019: "'",
    0x2026: None,
    0xA0: " ",
    0xFE0F: None,
}  # apostrophe, dots of a short form, space, form of an emoji


def count_named(
    answer: str, *, changed: Collection[str], failed: Collection[str] = (), most: int, has_read: bool = False
) -> int | None:
    """Returns how many tasks the claims of an answer name, if those are more than `most`, the tasks that calls reached.

    `changed` are the titles of these tasks, and `failed` those of calls that were not made or not confirmed.
    """
    answer = _simplify(clip_answer(answer))
    sentences = [claim.sentence for claim in find_claims(answer, has_read=has_read)]
    if not sentences:
        return None
    known = [text for title in [*changed][:_MAX_TITLES] if (text := _simplify(title).casefold())]
    counts = [most + _count_failed(answer, sentences, known, failed), *_count_listed(answer, sentences, known)]
    for sentence in sentences:
        if not _read_table().joined.search(sentence):
            counts += _count_by_numbers(_mask_titles(sentence, known), has_read=has_read)
            counts += _count_enumerated(sentence, known)
    named = max(counts)
    return named if named > most else None


def admits_failure(answer: str) -> bool:
    """Whether an answer says that something was not done."""
    table = _read_table()
    text = table.polite.sub("", clip_answer(answer).replace("\u2019", "'"))
    return bool(table.failing.search(text) or table.honest.search(text))


def _simplify(text: str) -> str:
    """Leaves out what models write in another way than users do: composed accents, and characters without a form."""
    characters = (
        character for character in unicodedata.normalize("NFC", text) if unicodedata.category(character) != "Cf"
    )
    return "".join(characters).translate(_SAME).replace("...", "").strip()


def _mask_titles(sentence: str, known: Collection[str]) -> str:
    """Hides titles, as they may have numbers of tasks."""
    masked = _read_table().quoted.sub(lambda found: _TITLE * len(found[0]), sentence)
    if (titles := _compile_titles(known, masked)) is None:
        return masked
    return titles.sub(lambda found: _TITLE * len(found[0]), masked)


def _compile_titles(titles: Collection[str], text: str) -> re.Pattern[str] | None:
    """Returns the pattern of those titles that a text has, the longer ones first."""
    folded = text.casefold()
    present = sorted((title for title in titles if title in folded), key=len, reverse=True)
    return re.compile("|".join(map(_bound_title, present)), re.IGNORECASE) if present else None


def _bound_title(title: str) -> str:
    """Returns the pattern of a title, which is no part of a word in those scripts that have spaces."""
    unspaced = _read_table().unspaced
    before = rf"(?:(?<!\w)|(?<={unspaced.pattern})|(?<=\bو))"  # "and" is part of the next word in Arabic
    start = "" if unspaced.match(title[0]) else before
    end = "" if unspaced.match(title[-1]) else rf"(?:(?!\w)|(?={unspaced.pattern}))"
    return start + re.escape(title) + end


def _count_by_numbers(sentence: str, *, has_read: bool) -> Iterator[int]:
    table = _read_table()
    for clause in table.clause_ends.split(sentence):
        for found in (found for pattern in table.of_tasks for found in pattern.finditer(clause)):
            words = f"{found['before']} {found['between']}".casefold().split()
            subject = clause[: found.start("before")].rpartition(" ")[0].rpartition(" ")[2].casefold()
            if words[:1] == ["have"] and subject in ("i", "we") and find_claims(f"I {found['before']} it."):
                del words[0]  # it is of the verb, as in "I have added 3 tasks"
            is_of_list = not table.besides.isdisjoint(words) or table.left.match(found["after"]) is not None
            is_of_list = is_of_list or table.purpose.search(clause, 0, found.start("number")) is not None
            if not is_of_list and find_claims(clause, has_read=has_read):
                number = _fold_i(found["number"])
                yield int(number) if number.isdecimal() else table.numbers[number]
    for found in table.ids.finditer(sentence):
        if found["before"].strip().casefold() not in table.besides:
            yield len(set(re.findall(r"\d+", found[0])))


def _fold_i(word: str) -> str:
    """Folds the four forms of the letter I, which a pattern takes for the same."""
    return word.casefold().replace("\u0307", "").replace("\u0131", "i")


def _count_enumerated(sentence: str, known: Collection[str]) -> Iterator[int]:
    table = _read_table()
    for found in table.quoted_items.finditer(sentence):
        yield _count_items([item.strip(table.quotes) for item in table.quoted.findall(found[0])], known)
    for found in table.bold_items.finditer(sentence):
        items = [item.strip(table.quotes) for item in table.bold.findall(found[0])]
        if found["to_list"] or sum(_find_title(item, known) is not None for item in items) > 1:
            yield _count_items(items, known)  # or else they may be a title, a date and a priority
    for found in table.plain_items.finditer(sentence):
        first, *others = table.separator.split(found[0])  # the words before the first title may be part of it
        first = first.casefold()  # the title may be longer, too
        if title := next((title for title in known if first.endswith(title) or title.endswith(f" {first}")), None):
            yield _count_items([title, *others], known)
        else:
            yield _count_items(others, known)
    for found in table.plain_ends.finditer(sentence):
        first, *others = table.separator.split(found[0])
        title = next((title for title in known if first.casefold().endswith(title)), None)
        is_capital = first[-len(title or "") :][:1].isupper()  # adjectives, but no titles, are in small letters then
        if title and not any(
            _tells_more(item, known, table.detail.search) or (is_capital and item[:1].islower()) for item in others
        ):
            yield _count_items([title, *others], known)


def _tells_more(item: str, known: Collection[str], find_detail: Callable[[str], object]) -> bool:
    """Whether an item is no other task, but a date, a priority, another deed, or what was not done."""
    return _find_title(item, known) is None and bool(find_detail(item) or _read_table().honest.search(item))


def _count_items(items: Sequence[str], known: Collection[str]) -> int:
    """Counts the tasks of an enumeration, none if there is no changed one; several items may be parts of one title."""
    titles = [_find_title(item, known) for item in items]
    changed = {title for title in titles if title is not None}
    return len(changed) + titles.count(None) if changed else 0


def _find_title(item: str, known: Collection[str]) -> str | None:
    """Returns the title that an item is, or may be in other words."""
    text = item.casefold()
    return text if text in known else next((title for title in known if text in title or title in text), None)


def _count_listed(answer: str, sentences: Sequence[str], known: Collection[str]) -> Iterator[int]:
    """Counts the items of each list that a claim announces as what was changed, such as "I've added these:"."""
    table, lines = _read_table(), answer.splitlines()
    for position, line in enumerate(lines):
        is_lead = table.short_lead.match(line) or (table.lead.search(line) and not table.state.search(line))
        if not is_lead or not any(line.rstrip().endswith(sentence[-30:].strip()) for sentence in sentences):
            continue
        yield _count_lines(_read_items(lines[position + 1 :]), known)
    ticked = filter(None, map(table.ticked.match, lines))
    yield _count_lines([found["after"] or found["before"] for found in ticked], known)


def _read_items(lines: Sequence[str]) -> list[str]:
    items: list[re.Match[str]] = []
    for line in lines:
        if (item := _read_table().listed.match(line)) is not None:
            items.append(item)
        elif line.strip():
            break
    return [item["text"] for item in items if len(item["indent"]) <= len(items[0]["indent"])]


def _count_lines(items: Sequence[str], known: Collection[str]) -> int:
    """Counts the tasks of a list, none if it has something else, such as the date of one."""
    table = _read_table()
    if any(table.attribute.match(item) or _tells_more(item, known, table.detail.match) for item in items):
        return 0
    return _count_items(items, known)


def _count_failed(answer: str, sentences: Sequence[str], known: Collection[str], failed: Collection[str]) -> int:
    """Counts the titles of failed calls that are claimed by an answer that says nothing of a failure."""
    titles = {_simplify(title).casefold() for title in [*failed][:_MAX_TITLES]}
    titles = {title for title in titles if _is_clear(title) and not any(title in other for other in known)}
    if not titles or _tells_failure(answer, titles):
        return 0
    claimed = " ".join(sentences)
    pattern = _compile_titles([*known, *titles], claimed)
    found = {title.casefold() for title in pattern.findall(claimed)} if pattern else set[str]()
    # A title that has a changed one in it may be the changed one in other words.
    return sum(all(title in found for title in known if title in one) for one in titles & found)


def _is_clear(title: str) -> bool:
    """Whether a title is long enough to be no common word by chance."""
    return len(title) > 2 or (len(title) == 2 and all(map(_read_table().unspaced.match, title)))


def _tells_failure(answer: str, titles: Collection[str]) -> bool:
    table, pattern = _read_table(), _compile_titles(titles, answer)
    for sentence in table.sentence_ends.split(table.polite.sub("", answer)):
        if table.failing.search(sentence) or (pattern and pattern.search(sentence) and table.honest.search(sentence)):
            return True
    return False


@dataclass(frozen=True)
class _Table:
    """What `named.toml` has."""

    numbers: dict[str, int]
    of_tasks: list[re.Pattern[str]]
    besides: frozenset[str]
    left: re.Pattern[str]
    purpose: re.Pattern[str]
    ids: re.Pattern[str]
    separator: re.Pattern[str]
    quoted: re.Pattern[str]
    bold: re.Pattern[str]
    quotes: str
    unspaced: re.Pattern[str]
    quoted_items: re.Pattern[str]
    bold_items: re.Pattern[str]
    plain_items: re.Pattern[str]
    plain_ends: re.Pattern[str]
    short_lead: re.Pattern[str]
    ticked: re.Pattern[str]
    detail: re.Pattern[str]
    joined: re.Pattern[str]
    clause_ends: re.Pattern[str]
    lead: re.Pattern[str]
    state: re.Pattern[str]
    listed: re.Pattern[str]
    attribute: re.Pattern[str]
    polite: re.Pattern[str]
    sentence_ends: re.Pattern[str]
    failing: re.Pattern[str]
    honest: re.Pattern[str]


@cache
def _read_table() -> _Table:
    row: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    words = {_fold_i(word): int(number) for number, line in row["numbers"].items() for word in line.split()}
    of_tasks = [
        pattern.replace("{number}", r"\d{1,3}|" + "|".join(words)).replace("{characters}", row["characters"])
        for pattern in row["of_tasks"]
    ]
    characters = {character: number for number, character in enumerate(row["characters"][1:], start=2)}
    last, item, quoted, bold, to_list = (row[name] for name in ("and", "item", "quoted", "bold", "to_list"))
    patterns = (
        "left purpose ids quoted bold unspaced joined clause_ends lead short_lead state listed attribute detail ticked"
    )
    return _Table(
        numbers={**words, row["characters"][0]: 2, **characters},
        of_tasks=[re.compile(pattern, re.IGNORECASE) for pattern in of_tasks],
        besides=frozenset(row["besides"].split()),
        separator=re.compile(f"{last}|, ", re.IGNORECASE),
        quotes=row["quotes"],
        quoted_items=re.compile(
            f"{quoted}(?:(?:, {quoted}){{0,{_MAX_ITEMS}}}{last}{quoted}|(?:, {quoted}){{2,{_MAX_ITEMS}}})",
            re.IGNORECASE,
        ),
        bold_items=re.compile(
            f"{bold}(?:, {bold}){{0,{_MAX_ITEMS}}}(?:{last}{bold}(?P<to_list>{to_list})?|, {bold})", re.IGNORECASE
        ),
        plain_items=re.compile(rf"\b{item}(?:, {item}){{0,20}}?{last}{item}?(?={to_list})", re.IGNORECASE),
        plain_ends=re.compile(rf"\b{item}(?:, {item}){{1,20}}?{last}{item}(?={row['ends']})", re.IGNORECASE),
        **{
            name: re.compile(row[name].replace("{deeds}", row["deeds"]).replace("{to_list}", to_list), re.IGNORECASE)
            for name in [*patterns.split(), "polite", "sentence_ends", "failing", "honest"]
        },
    )
