"""Splits a text into words with their positions, in the spelling that the rules expect.

The rules are regular expressions over the words with one space between them, so that spaces, capitals, abbreviations
and typing errors need no rules of their own. A quotation, a link or an address is one word that matches no rule.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


VERBS = word_set("""
    adjust answer apologise apologize apply arrange ask assemble attend bake bathe be bill book borrow brainstorm
    bring brush build buy call cancel cash cc change charge chase check choose clean clear collate collect commit
    compare compile complete confirm congratulate contact convert cook copy count create cut debug decide defrost
    deliver deploy deposit descale design dig discuss dispose do donate download draft draw dress drill drink drive
    drop dry dust dye eat edit email empty enrol enroll enter evaluate exercise explain extend feed fetch file fill
    finalise finalize find finish fix fly fold follow forward freeze fry fund gather get give go grab greet grill
    grow hand hang harvest help hike hire hold hoover host inform inspect install insure inventory invite invoice
    iron jog join keep kick label launch lay learn leave lend listen load lock log look mail make measure meet mend
    merge message migrate mop move mow nap negotiate note notify nudge oil open order organise organize pack paint
    park pay phone pick pitch plan plant play polish post practice practise pray prep prepare present print
    proofread prune pull punch purchase push put quit raise rake rank rate read rebook recharge recycle redeem
    refill register remind remove renew rent repair replace reply report request reschedule research resend reserve
    restock return review rewrite ring rinse roast rotate run save scan schedule secure see sell send set sew share
    shave shop shovel shower sign skype sleep solder sort speak spray stain start sterilise stock stop store strip
    study style submit swap sweep swim switch take talk teach tell test text thank throw tidy tile toss track train
    transcribe transfer translate trim try turn type unpack unsubscribe update upgrade upload vacuum validate verify
    visit volunteer vote wait wake walk wash watch water wax weed wipe withdraw work wrap write
    """)
"""Verbs with which tasks begin."""

_OTHER_SPELLINGS = {
    **{month: month[:3] for month in MONTHS},
    "september": "sep sept",
    "tomorrow": "tmrw tmr tmw tmrrw tomoz 2moro 2morrow 2mrw tomorow tommorow tommorrow tomorro tomorrrow tomrow "
    "tommorw",
    "tonight": "tonite 2nite tonght",
    **{"tue": "tues", "wed": "weds", "wednesday": "wensday wendsday", "thu": "thur thurs"},
    **{"hour": "hours hr hrs h", "minute": "minutes min mins", "day": "days d", "week": "weeks wk wks w"},
    **{"month": "months mth mths", "year": "years yr yrs", "fortnight": "fortnights"},
    **{"until": "till til 'til", "o'clock": "oclock", "noon": "midday", "night": "nite", "every": "evry eveyr"},
    **{"am": "a.m a.m.", "pm": "p.m p.m.", "-": "\u2013 \u2014"},
    **{str(number): word for number, word in enumerate(_NUMBERS, 1)},
    **{"15": "fifteen", "20": "twenty", "30": "thirty", "40": "forty", "90": "ninety"},
}
_SPELLINGS = {other: word for word, others in _OTHER_SPELLINGS.items() for other in others.split()}
# Words that are one letter away from the name of a day or month.
_OTHER_WORDS = word_set("sundae sundry sundaes mundane match marsh larch parch starch augusta augusts monde")
_MIN_LETTERS = 5  # of a name in which one wrong letter is accepted
_NAMES = tuple(name for name in (*WEEKDAYS, *MONTHS, "tomorrow") if len(name) >= _MIN_LETTERS)
DUE_WORDS = word_set("due deadline when date")
"""Words before a colon and the date of a task."""
_UNIT_SIGNS = word_set("% \u2030 \u00b0 $ \u20ac \u00a3 \u00a5 \0")
_GLUE = word_set(": / - . ' \u2019 _ + = @ # * ~ ^ | \\")
_SUFFIX = r"(?:[ap]\.m\.?|[ap]m|st|nd|rd|th|hrs?|h|mins?|minutes?|hours?|days?|d|wks?|weeks?|w|months?"
_SUFFIX += r"|jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?![^\W_])"
# What a list can store, up to its last character that is no mark; a number such as "#12" names something else.
_LABEL = r"(?:#{1,3}(?=[^\s#]{0,60}[^\s\d#.,:;/!?()\[\]+-])|@{1,3}(?=[^\s\d@#.,:;/!?()\[\]+-])(?!_DAY(?!\w)))"
_LABEL = _LABEL.replace("_DAY", rf"(?:today|tomorrow|tonight|(?:{'|'.join(WEEKDAYS)})|(?:mon|tue|wed|thu|fri|sat|sun))")
_LABEL += r"[^\s#]{0,60}[^\s#.,:;!?\u2026()\[\]{}\"'\u2019\u201d]"
_MARKS_AND_SPACE = re.compile(r"[.,;:!?\u2026)\]-]*(?!\S)")
_TOKEN = re.compile(
    r"(?P<opaque>(?<!\w)(?P<mark>[\"'`\u201c])(?! )[^\"`\u201c\u201d\n]{1,300}?(?<! )(?:(?P=mark)|\u201d)(?!\w)"
    r"|\w{1,30}+://\S+|[\w.+-]{1,64}+@[\w-]+\.\S+|[^\W\d_][\w-]{0,62}\.[a-z]{2,}(?:/\S*)?(?![\w.]))"
    r"|(?P<word>\d{1,3}(?=h\d\d?m(?:ins?)?(?!\w))|h(?=\d\d?m(?:ins?)?(?!\w))"  # "1h30m"
    r"|\d{4}-\d\d?-\d\d?(?:[tT]\d\d:\d\d)?(?!\d)|\d{4}[/.]\d\d?[/.]\d\d?(?!\d)"
    r"|\d\d?([/.-])\d\d?\4\d{2,4}(?!\d)|\d\d?/\d\d?(?![/\d])|\d\d?\.\d\d?\.(?!\d)"
    r"|\d\d?[:.]\d\d(?![\d:])|\d+[.,]\d+|\d\d?h\d\d(?!\w)|(?:1[3-9]|2[0-3])h(?!\w)|\d\d?(?:st|nd|rd|th)(?!\w)|\d+(?="
    + _SUFFIX
    + r")|\d[^\W_]*"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec)(?=\d\d?(?!\w))|[ap]\.m\.?(?!\w)|every!|'til(?!\w)"
    rf"|{_LABEL}|\+[^\W\d_][\w-]*|![\w!]*"
    r"|[^\W\d_]+-(?:about|after|around|at|by|for|in|on|over|to)(?![\w-])"  # "check-in tomorrow" is no "in tomorrow"
    r"|[^\W\d_][^\W_]*(?:['\u2019][^\W_]+)*|\S)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Word:
    key: str
    """The word in the spelling of the rules."""
    start: int
    end: int
    raw: str
    is_corrected: bool = False
    """Whether one letter was wrong."""


@dataclass(frozen=True)
class Words:
    text: str
    words: tuple[Word, ...]

    @cached_property
    def line(self) -> str:
        return " ".join(word.key for word in self.words)

    @cached_property
    def starts(self) -> list[int]:
        """Where each word begins in the line, and where another one would."""
        return [0, *accumulate(len(word.key) + 1 for word in self.words)]

    def index_at(self, position: int) -> int:
        return bisect_left(self.starts, position)

    def key(self, index: int) -> str:
        return self.words[index].key if 0 <= index < len(self.words) else ""

    def stand_alone(self, first: int, end: int) -> bool:
        """Returns whether white space or an end of the text is around some words, or marks are between it and them."""
        start = self.words[first].start
        is_begun = start == 0 or self.text[start - 1].isspace()
        return is_begun and _MARKS_AND_SPACE.match(self.text, self.words[end - 1].end) is not None

    def widen(self, first: int, end: int) -> tuple[int, int]:
        """Adds the words that touch some words, also with a sign between them, as in "half-yearly" and "1:1"."""
        return first - self._count_touching(first - 1, -1), end + self._count_touching(end, 1)

    def _count_touching(self, at: int, step: int) -> int:
        touching = count = 0
        while 0 <= at < len(self.words) and self.words[min(at, at - step)].end == self.words[max(at, at - step)].start:
            raw = self.words[at].raw
            count += 1
            if raw[-1].isalnum() or raw in _UNIT_SIGNS:
                touching = count
            elif raw not in _GLUE or (step < 0 and raw == ":" and self.key(at - 1) in DUE_WORDS):
                break
            at += step
        return touching

    def raw(self, index: int) -> str:
        return self.words[index].raw if 0 <= index < len(self.words) else ""


def split_words(text: str) -> Words:
    return Words(text, tuple(_create_word(match) for match in _TOKEN.finditer(text)))


def _create_word(match: re.Match[str]) -> Word:
    raw = match[0]
    key, is_corrected = ("\0", False) if match["opaque"] else _spell(raw.lower().replace("\u2019", "'"))
    if key[-1] == "h" and key[:-1].isdigit():
        key += "00"  # of "15h"
    return Word(key, *match.span(), raw, is_corrected)


@lru_cache(maxsize=10_000)
def _spell(word: str) -> tuple[str, bool]:
    if word in _SPELLINGS:
        return _SPELLINGS[word], False
    if len(word) < _MIN_LETTERS or not word.isalpha() or word in _NAMES or word in _OTHER_WORDS:
        return word, False
    plural = word.removesuffix("s")
    if plural in WEEKDAYS:
        return word, False
    name = next((name for name in _NAMES if _is_one_slip(word, name)), None)
    return (name, True) if name else (word, False)


def _is_one_slip(word: str, name: str) -> bool:
    """Accepts one letter that is wrong, missing or too many, or two neighbours that are swapped."""
    if word[0] != name[0] or abs(len(word) - len(name)) > 1:
        return False
    at = next((i for i, (a, b) in enumerate(zip(word, name, strict=False)) if a != b), min(len(word), len(name)))
    rest, expected = word[at:], name[at:]
    swapped = rest[1:2] + rest[:1] + rest[2:] == expected and len(rest) > 1
    return rest[1:] == expected[1:] or rest[1:] == expected or rest == expected[1:] or swapped
