"""Finds the sentences of an answer that claim a change, by a table of how languages say that something was done."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

Deed = Literal["added", "deleted", "completed", "changed"]

MAX_CHARS = 8_000
"""Of an answer that is longer, as many characters are searched: half of them at its beginning, half at its end."""
_MAX_SENTENCE_CHARS = 400  # so that the time grows only with the length of the text
_MAX_TITLE_CHARS = 300
_TITLE = "\u2026"  # in place of each character of a title
_RUN = re.compile(rf"{_TITLE}{{2,}}|[^\w\s{_TITLE}]{{3,}}|\s{{3,}}")
_QUOTED_LINE = re.compile(r"\s*(?:>|\|)")
_CHECKED = re.compile(r"\[[xX]\]\s+")
_LIST_LINE = re.compile(r"\s*(?:[-*+\u2013\u2014\u2022\u00b7\u25aa\u25e6]|\d{1,3}[.)]|#{1,6}|\[[ xX]\])\s")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_WORD = re.compile(r"(?<!\d')[^\W\d_]+(?:'[^\W\d_]+)?")


class Claim(NamedTuple):
    deed: Deed
    """`changed` may be any change."""
    sentence: str


def find_claims(text: str, *, has_read: bool = False) -> list[Claim]:
    """Returns the claims of an answer in the languages of the table, in order.

    What was done by others, or is so, is no claim of an answer that `has_read` the list: it may tell what is there.
    """
    if not has_read and _read_table().marks.ticked.fullmatch(text.strip()):
        return [Claim("changed", text.strip())]
    sentences = list(_read_sentences(clip_answer(text)))
    main = sum((_count_words(sentence.masked) for sentence in sentences), Counter[str]())
    claims: list[Claim] = []
    for number, sentence in enumerate(sentences):
        tells_of_now = _is_list_of_now(sentences[number + 1 : number + 2]) and not sentence.is_listed
        if (deed := _find_claim(sentence, main, has_read=has_read and not tells_of_now)) is not None:
            claims.append(Claim(deed, sentence.original.strip()))
    return claims


def clip_answer(text: str) -> str:
    """Returns what is searched of an answer: a long one says what was done at its beginning or its end."""
    half = MAX_CHARS // 2
    return text if len(text) <= MAX_CHARS else f"{text[:half]}\n{text[-half:]}"


def _is_list_of_now(following: Sequence["_Sentence"]) -> bool:
    """Whether the sentence that follows tells what the list is like now: the one before tells then what was changed."""
    return any(_read_table().marks.now.match(sentence.masked.strip()) for sentence in following)


def is_question(text: str) -> bool:
    return any(sign in text for sign in _read_table().marks.asking)


class _Sentence(NamedTuple):
    original: str
    masked: str
    """Without titles: what is quoted, bold or code."""
    is_listed: bool
    is_above_code: bool = False
    """Whether it ends with a colon, and the next line that is not empty begins code or quotes a text."""


def _read_sentences(text: str) -> Iterator[_Sentence]:
    marks, is_code, lines = _read_table().marks, False, text.splitlines()
    for number, line in enumerate(lines):
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code and not _QUOTED_LINE.match(line):
            listed = _LIST_LINE.match(line)
            original = line[listed.end() :] if listed else line
            if checked := _CHECKED.match(original):  # what is ticked there may be a claim as any other line
                listed, original = None, original[checked.end() :]
            masked = marks.title.sub(_mask, original).replace("\u2019", "'")
            for found in marks.sentence.finditer(masked):
                sentence = original[found.start() : found.end()]
                is_lead = found[0].rstrip(" *_").endswith(marks.leading)
                is_above_code = is_lead and found.end() == len(masked) and _begins_code(lines[number + 1 : number + 3])
                yield _Sentence(sentence, _shorten_runs(found[0]), listed is not None, is_above_code)
                if listed:
                    break


def _shorten_runs(text: str) -> str:
    """Shortens titles and runs of other signs: patterns can divide a long run in too many ways."""
    return _RUN.sub(lambda found: _TITLE if found[0][0] == _TITLE else found[0][:2], text)


def _begins_code(lines: Sequence[str]) -> bool:
    first = next((line for line in lines if line.strip()), "")
    return bool(_FENCE.match(first) or first.lstrip().startswith(">"))


def _mask(found: re.Match[str]) -> str:
    """Hides a title; what is bold at the beginning of a line and ends as a sentence does is none."""
    bold = found["bold"]
    if bold and bold[-1] in "!.:" and not found.string[: found.start()].strip():
        return f"  {bold}  "
    return _TITLE * len(found[0])


def _find_claim(sentence: _Sentence, main: Counter[str], *, has_read: bool) -> Deed | None:
    clauses = list(_split_clauses(sentence.masked))
    asks = sentence.masked.rstrip().endswith(_read_table().marks.asking)
    if asks:
        clauses = clauses[:-1]
    elif sentence.is_listed:
        clauses = clauses[:1]
    only_first = has_read or asks or sentence.is_listed
    for language in _find_languages(sentence.masked, main) if clauses else ():
        if language.past.search(sentence.masked):
            continue
        is_of_list = language.tasks.search(sentence.masked) is not None
        if sentence.is_above_code and (not is_of_list or language.texts.search(sentence.masked)):
            continue
        for start, clause in clauses:
            if sentence.is_listed and not language.listed.match(clause):
                continue
            patterns = language.first if only_first else (*language.first, *language.other)
            deed = _find_in_clause(clause, patterns, language, is_of_list=is_of_list)
            if deed is not None and not language.conditions.search(sentence.masked, 0, start):
                return deed
    return None


def _split_clauses(sentence: str) -> Iterator[tuple[int, str]]:
    """Yields each clause that has words, with its position."""
    start = 0
    for separator in (*_read_table().marks.clause_end.finditer(sentence), None):
        end = separator.start() if separator else len(sentence)
        if clause := sentence[start:end].strip():
            yield start, clause
        start = separator.end() if separator else end


def _find_in_clause(
    clause: str, patterns: tuple[re.Pattern[str], ...], language: "_Language", *, is_of_list: bool
) -> Deed | None:
    is_of_text = not is_of_list and language.texts.search(clause) is not None
    for pattern in patterns:
        found = pattern.search(clause)
        if found is None or language.objects.match(clause, found.end()) or is_of_text:
            continue
        before = clause[: found.end()]
        if not (language.doubts.search(before) or language.conditions.search(before)):
            deed = found.lastgroup
            return deed if deed in ("added", "deleted", "completed") else "changed"
    return None


def _find_languages(sentence: str, main: Counter[str]) -> list["_Language"]:
    """Returns those languages of the table that a sentence is in by most of its frequent words, or else the text."""
    languages = _read_table().languages
    words = _count_words(sentence) or main
    if not words:  # a few words, none of them frequent: the verb tells
        return list(languages.values())
    most = max(words.values())
    best = [name for name, count in words.items() if count == most]
    in_text = max(main[name] for name in best)
    return [languages[name] for name in best if main[name] == in_text and name in languages]


def _count_words(sentence: str) -> Counter[str]:
    """Counts the frequent words of each language, and the letters of a script that tells it."""
    table, counts = _read_table(), Counter[str]()
    for word in _WORD.findall(sentence.casefold()):
        counts.update(table.words.get(word, ()))
    if not sentence.isascii():
        for name, script in table.scripts.items():
            if count := len(script.findall(sentence)):
                counts[name] += count
    return counts


@dataclass(frozen=True)
class _Language:
    """How a language tells that something was done.

    `first` are patterns of what the assistant says of itself, `other` those of all else. It is no claim after `doubts`
    in its clause or `conditions` in its sentence, before `objects`, and beside a time in the `past`. Nor is what is
    done to `texts` in its clause, or above code, in a sentence without `tasks`. In a list only clauses that begin as
    `listed` count.
    """

    first: tuple[re.Pattern[str], ...]
    other: tuple[re.Pattern[str], ...]
    listed: re.Pattern[str]
    doubts: re.Pattern[str]
    conditions: re.Pattern[str]
    objects: re.Pattern[str]
    texts: re.Pattern[str]
    tasks: re.Pattern[str]
    past: re.Pattern[str]


@dataclass(frozen=True)
class _Marks:
    """How sentences, clauses and titles are told apart, in all languages."""

    title: re.Pattern[str]
    sentence: re.Pattern[str]
    clause_end: re.Pattern[str]
    asking: tuple[str, ...]
    leading: tuple[str, ...]
    now: re.Pattern[str]
    ticked: re.Pattern[str]


@dataclass(frozen=True)
class _Table:
    marks: _Marks
    languages: Mapping[str, _Language]
    words: Mapping[str, tuple[str, ...]]
    """The languages in which a word is frequent, among them some that are only told apart."""
    scripts: Mapping[str, re.Pattern[str]]


@cache
def _read_table() -> _Table:
    rows: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    marks, words = rows.pop("marks"), dict[str, tuple[str, ...]]()
    for name, row in rows.items():
        for word in row.get("words", "").split():
            words[word] = (*words.get(word, ()), name)
    return _Table(
        _compile_marks(marks),
        {name: _compile_language(row) for name, row in rows.items() if "first" in row},
        words,
        {name: re.compile(row["script"]) for name, row in rows.items() if "script" in row},
    )


def _compile_marks(row: Mapping[str, Any]) -> _Marks:
    pairs = [f"{opening}[^{opening}{closing}\n]{{0,{_MAX_TITLE_CHARS}}}{closing}" for opening, closing in row["quotes"]]
    title = "|".join([*pairs, *row["titles"]]).replace("{most}", str(_MAX_TITLE_CHARS))
    ends = row["ends"]
    # A point is no end within "9.30" and "list.md".
    sentence = rf"(?:[^{ends}]|\.(?=\w)){{1,{_MAX_SENTENCE_CHARS}}}[{ends}]*"
    return _Marks(
        re.compile(title),
        re.compile(sentence),
        re.compile(row["clause_ends"], re.IGNORECASE),
        tuple(row["asking"]),
        tuple(row["leading"]),
        re.compile(row["now"], re.IGNORECASE),
        re.compile(row["ticked"]),
    )


def _compile_language(row: Mapping[str, Any]) -> _Language:
    verbs = "(?:" + "|".join(f"(?P<{deed}>{forms})" for deed, forms in row["verbs"].items()) + ")"

    def compile_all(name: str) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(pattern.replace("{verbs}", verbs), re.IGNORECASE) for pattern in row[name])

    def compile_one(name: str) -> re.Pattern[str]:
        return re.compile(row.get(name, "(?!)").replace("{verbs}", verbs), re.IGNORECASE)

    return _Language(
        compile_all("first"),
        compile_all("other"),
        compile_one("listed"),
        compile_one("doubts"),
        compile_one("conditions"),
        compile_one("objects"),
        compile_one("texts"),
        compile_one("tasks"),
        compile_one("past"),
    )
