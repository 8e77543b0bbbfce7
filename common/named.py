"""Counts the tasks that the claims of an answer name, so that they can be compared with what was changed.

It counts too few rather than too many, as a truthful answer must not be doubted: numbers of tasks, enumerations and
lists in which a changed task occurs, and titles of calls that failed.
"""

import re
import tomllib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from common.claims import clip_answer, find_claims

_MAX_TITLES = 200  # that are looked for
_MAX_ITEMS = 50  # of an enumeration


def count_named(
    answer: str, *, changed: Collection[str], failed: Collection[str] = (), most: int, has_read: bool = False
) -> int | None:
    """Returns how many tasks the claims of an answer name, if those are more than `most`, the tasks that calls reached.

    `changed` are the titles of these tasks, and `failed` those of calls that were not made or not confirmed.
    """
    answer = clip_answer(answer)
    sentences = [claim.sentence for claim in find_claims(answer, has_read=has_read)]
    if not sentences:
        return None
    known = [title.casefold() for title in [*changed][:_MAX_TITLES]]
    counts = [most + _count_failed(answer, sentences, known, failed), *_count_listed(answer, sentences, known, most)]
    for sentence in sentences:
        counts += [*_count_by_numbers(sentence, has_read=has_read), *_count_enumerated(sentence, known, most)]
    named = max(counts)
    return named if named > most else None


def _count_by_numbers(sentence: str, *, has_read: bool) -> Iterator[int]:
    table = _read_table()
    for clause in table.clause_ends.split(sentence):
        for found in (found for pattern in table.of_tasks for found in pattern.finditer(clause)):
            words = f"{found['before']} {found['between']}".casefold().split()
            is_of_list = not table.besides.isdisjoint(words) or table.left.match(found["after"]) is not None
            if not is_of_list and find_claims(clause, has_read=has_read):
                number = found["number"].casefold()
                yield table.numbers[number] if number in table.numbers else int(number)
    for found in table.ids.finditer(sentence):
        if found["before"].strip().casefold() not in table.besides:
            yield len(set(re.findall(r"\d+", found[0])))


def _count_enumerated(sentence: str, known: Collection[str], most: int) -> Iterator[int]:
    table = _read_table()
    for found in table.quoted_items.finditer(sentence):
        yield _count_items([item.strip(table.quotes) for item in table.quoted.findall(found[0])], known, most)
    for found in table.plain_items.finditer(sentence):
        first, *others = table.separator.split(found[0])  # the words before the first title may be part of it
        if title := next((title for title in known if first.casefold().endswith(title)), None):
            yield _count_items([title, *others], known, most)
        else:
            yield _count_items(others, known, most)


def _count_items(items: Sequence[str], known: Collection[str], most: int) -> int:
    """Counts the tasks of an enumeration, none if there is no changed one; an item may be a part of a title."""
    unknown = sum(not _is_known(item, known) for item in items)
    return most + unknown if unknown < len(items) else 0


def _is_known(item: str, known: Collection[str]) -> bool:
    text = item.casefold()
    return any(text in title or title in text for title in known)


def _count_listed(answer: str, sentences: Sequence[str], known: Collection[str], most: int) -> Iterator[int]:
    """Counts the items of each list that a claim announces as what was changed, such as "I've added these:"."""
    table, lines = _read_table(), answer.splitlines()
    for position, line in enumerate(lines):
        if not table.lead.search(line) or table.state.search(line):
            continue
        if not any(line.rstrip().endswith(sentence[-30:].strip()) for sentence in sentences):
            continue
        items: list[re.Match[str]] = []
        for following in lines[position + 1 :]:
            if (item := table.listed.match(following)) is not None:
                items.append(item)
            elif following.strip():
                break
        texts = [item["text"] for item in items if len(item["indent"]) <= len(items[0]["indent"])]
        if not any(map(table.attribute.match, texts)):
            yield _count_items(texts, known, most)


def _count_failed(answer: str, sentences: Sequence[str], known: Collection[str], failed: Collection[str]) -> int:
    """Counts the titles of failed calls that are claimed by an answer that says nothing of a failure."""
    titles = {title.casefold() for title in [*failed][:_MAX_TITLES] if len(title) > 2 and not _is_known(title, known)}
    if not titles or _read_table().honest.search(answer):
        return 0
    claimed = " ".join(sentences).casefold()
    return sum(re.search(rf"(?<!\w){re.escape(title)}(?!\w)", claimed) is not None for title in titles)


@dataclass(frozen=True)
class _Table:
    """What `named.toml` has."""

    numbers: dict[str, int]
    of_tasks: list[re.Pattern[str]]
    besides: frozenset[str]
    left: re.Pattern[str]
    ids: re.Pattern[str]
    separator: re.Pattern[str]
    quoted: re.Pattern[str]
    quotes: str
    quoted_items: re.Pattern[str]
    plain_items: re.Pattern[str]
    clause_ends: re.Pattern[str]
    lead: re.Pattern[str]
    state: re.Pattern[str]
    listed: re.Pattern[str]
    attribute: re.Pattern[str]
    honest: re.Pattern[str]


@cache
def _read_table() -> _Table:
    row: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    words = {word: number for number, line in enumerate(row["numbers"], start=2) for word in line.split()}
    of_tasks = [
        pattern.replace("{number}", r"\d{1,3}|" + "|".join(words)).replace("{characters}", row["characters"])
        for pattern in row["of_tasks"]
    ]
    characters = {character: number for number, character in enumerate(row["characters"][1:], start=2)}
    last, item, quoted = row["and"], row["item"], row["quoted"]
    compiled = {
        name: re.compile(row[name], re.IGNORECASE)
        for name in ("left", "ids", "quoted", "clause_ends", "lead", "state", "listed", "attribute", "honest")
    }
    return _Table(
        numbers={**words, row["characters"][0]: 2, **characters},
        of_tasks=[re.compile(pattern, re.IGNORECASE) for pattern in of_tasks],
        besides=frozenset(row["besides"].split()),
        separator=re.compile(f"{last}|, ", re.IGNORECASE),
        quotes=row["quotes"],
        quoted_items=re.compile(f"{quoted}(?:, {quoted}){{0,{_MAX_ITEMS}}}(?:{last}|, ){quoted}", re.IGNORECASE),
        plain_items=re.compile(rf"\b{item}(?:, {item}){{0,20}}?{last}{item}?(?={row['to_list']})", re.IGNORECASE),
        **compiled,
    )
