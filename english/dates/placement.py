"""Decides from their context which groups are the date of a task, and which were meant as one."""

from collections.abc import Iterable, Sequence, Set

from english.atoms import Atom, Day, End, PartOfDay, Repeat, Time, Unread
from english.dates.grouping import Group
from english.phrases.scanner import is_mark
from english.words import VERBS, WEEKDAYS, Words, word_set

PREPOSITIONS = word_set(
    "about after at before by for from in into near of on over to until with without via per because so if while when "
    "unless since during regarding re and then but or as"
)
_SEPARATORS = word_set(", ; : . ! ? ( ) [ ] - & /")
MARKS = frozenset(".,;:!\u2026-")
"""Characters of words that say nothing: "!!" or "..."."""
_BEFORE_FIRST_DATE = word_set("on by at due for starting")
_BEFORE_LAST_DATE = _BEFORE_FIRST_DATE | word_set("and or until before from")
_LEADS = (_BEFORE_FIRST_DATE, _BEFORE_LAST_DATE)
_POLITE_WORDS = word_set("please pls plz thanks thank you thx ty asap")
# A date after one of these words belongs to the title.
_UNFINISHED = word_set(
    "about after at before from in into near of over since to than versus vs with without like called named a an the "
    "my our your his her their this that these those last next black good every each no not happy bloody super cyber "
    "ash palm easter blue ruby fat shrove some more enough but except between"
)
# Of these, what a user may have written before the date of a task.
_BOUNDS = word_set("about after at before but except from since than to")
_AFTER_PARTICLE = word_set(f"today tomorrow tonight on {' '.join(WEEKDAYS)}")  # "hand it in tomorrow"
# "5/6" or "3:16" after one of these words counts something.
_COUNTED = word_set(
    "build cap chapter chapters class classes code episode episodes exercise exercises grade grades invoice lesson "
    "lessons level levels odds order page pages part parts psalm question questions ratio release scale score sdk "
    "section sections step steps ticket unit units v verse version volume volumes"
)
_AMOUNT_VERBS = word_set("reduce increase cut lower raise grow improve beat multiply divide shorten extend boost")
_NOT_SUN = word_set("up any much less morning evening afternoon against avoid direct full hot and he she it they cat")
# Words after which a date tells why a task is to be done, or what it is to find out.
_CLAUSE_WORDS = word_set("because whether")
# "tomorrow" or "friday" at the start of a text and before one of these words belongs to the title.
_TITLE_WORDS = word_set(
    "never is isn't are was were will would can may might must people land show belongs comes came knows times roast "
    "lights live fever school paper papers blues special club and or cream screen lotion nav"
)


class Edges:
    """The beginning and the end of a text, where only dates, tags, separators and polite words are."""

    def __init__(
        self, words: Words, atoms: Sequence[Atom], frame: Iterable[int] = (), within: Set[int] = frozenset()
    ) -> None:
        covered = {at for atom in atoms for at in range(atom.first, atom.end)}.union(frame)
        self._within = within
        free = [at for at in range(len(words.words)) if at not in covered and not _is_joint(words.key(at))]
        inner = [[at for at in free if words.key(at) not in leads or at + 1 not in covered] for leads in _LEADS]
        self._first = inner[0][0] if inner[0] else len(words.words)
        self._last = inner[1][-1] if inner[1] else -1

    def is_within_frame(self, at: int) -> bool:
        """Returns whether a word is in a polite phrase: "tomorrow" in "remind me tomorrow to"."""
        return at in self._within

    def reach_back_from(self, at: int) -> bool:
        """Returns whether nothing else comes before a word."""
        return at <= self._first

    def reach_on_from(self, at: int) -> bool:
        """Returns whether nothing else comes from a word on."""
        return at > self._last


def _is_joint(key: str) -> bool:
    return key in _SEPARATORS or key in _POLITE_WORDS or MARKS.issuperset(key)


def choose_dates(words: Words, groups: Sequence[Group], edges: Edges) -> list[Group]:
    """A weekday before a noun needs a time elsewhere.

    A time alone is no date if a day is not understood, and no repeat begins today if the text names another day.
    """
    clauses = _list_words_in_clauses(words)
    chosen = [group for group in groups if is_date(words, group, edges) and group.first not in clauses]
    ends = {group.end for group in chosen}
    rest = [group for group in groups if group.end not in ends and group.names_day]
    if any(group.has(Day) or group.has(Repeat, "names_day") for group in chosen):
        return chosen
    if not rest:
        return chosen
    first = rest[0]
    is_name = words.raw(first.end).istitle() or words.key(first.end) in _TITLE_WORDS
    is_name = first.has(Unread) or (is_name and not _has_digit(words, first))
    if len(rest) == 1 and chosen and not is_name and edges.reach_back_from(first.first):
        return [first, *chosen]
    return []


def _has_digit(words: Words, group: Group) -> bool:
    return any(words.key(at)[0].isdigit() for at in range(group.first, group.end))


def is_date(words: Words, group: Group, edges: Edges) -> bool:
    return not group.has(Unread) and _can_be_date(words, group) and _is_placed_as_date(words, group, edges)


def list_intended(words: Words, groups: Sequence[Group], edges: Edges, *, has_date: bool) -> list[Group]:
    """Returns the groups that are where a date of the task would be, also those that are not understood."""
    clauses = _list_words_in_clauses(words)
    intended = [group for group in groups if group.first not in clauses and _is_intended(words, group, edges)]
    # A time that is not taken because of a day elsewhere is reported with that day.
    is_blocked = any(is_date(words, group, edges) for group in intended)
    is_blocking = Day if has_date else (Day, Repeat, Unread)
    return [
        group for group in groups if group in intended or (is_blocked and group.names_day and group.has(is_blocking))
    ]


def is_intended_alone(words: Words, atom: Atom, edges: Edges) -> bool:
    """Returns whether a month or number at the end of a text is meant as a date: "holiday june", not "call June"."""
    before = words.key(atom.first - 1)
    is_object = before in VERBS and words.key(atom.first) not in PREPOSITIONS
    return edges.reach_on_from(atom.end) and not is_object and before not in _UNFINISHED | _COUNTED


def _is_intended(words: Words, group: Group, edges: Edges) -> bool:
    is_bound = words.key(group.first - 1) in _BOUNDS and edges.reach_on_from(group.end)
    return is_bound or group.has(Unread, "is_plain") or _is_placed_as_date(words, group, edges)


def _can_be_date(words: Words, group: Group) -> bool:
    if all(isinstance(each, PartOfDay | End | Time) and getattr(each, "is_doubtful", True) for each in group.meanings):
        return False
    if not group.is_prepositional and group.has(Day, "needs_preposition"):
        return False
    if not group.has(Time) and group.has(Repeat, "needs_time"):
        return False
    is_number = words.key(group.first) == "by" and group.has(Time, "is_bare")
    return not (is_number and any(word.key in _AMOUNT_VERBS for word in words.words))  # "reduce it by 5"


def _is_placed_as_date(words: Words, group: Group, edges: Edges) -> bool:
    before, after = words.key(group.first - 1), words.key(group.end)
    is_short = group.has(Day, "is_short") and len(group.atoms) == 1 and not group.is_prepositional
    if (
        (before in _UNFINISHED and not (before == "in" and words.key(group.first) in _AFTER_PARTICLE))
        or after.startswith("'")
        or (before in _COUNTED and not words.key(group.first).isalpha() and not group.is_prepositional)
        or (
            after == "-"
            and words.raw(group.end + 1).isalpha()
            and not edges.reach_on_from(group.end)
            and (group.first > 0 or is_short)
            and words.words[group.end].start == words.words[group.end - 1].end
        )
    ):
        return False
    if edges.is_within_frame(group.first):
        return True
    if edges.reach_on_from(group.end):
        return not (is_short and (before in _NOT_SUN or (words.raw(group.first).istitle() and before in VERBS)))
    if edges.reach_back_from(group.first):
        return _can_begin_text(words, group, after)
    if after in PREPOSITIONS or after in _SEPARATORS or after in _POLITE_WORDS:
        return not is_short
    return group.is_sure or (group.is_prepositional and after in VERBS)


def _list_words_in_clauses(words: Words) -> set[int]:
    """Returns the words after "because" and the like, up to the next separator."""
    inside: set[int] = set()
    is_inside = False
    for at, word in enumerate(words.words):
        if is_inside:
            inside.add(at)
        is_inside = word.key not in _SEPARATORS and (is_inside or word.key in _CLAUSE_WORDS)
    return inside


def _can_begin_text(words: Words, group: Group, after: str) -> bool:
    if after in _SEPARATORS:
        return True
    if after in _TITLE_WORDS:
        return False
    if group.has((Repeat, Unread)) and group.end - group.first == 1 and words.key(group.first).isalpha():
        return False  # "daily" in "daily standup"
    return (after in VERBS and after != "be") or group.is_prepositional or group.is_sure or group.has((Time, Repeat))


def is_edge_tag(words: Words, atom: Atom, edges: Edges) -> bool:
    at_start = edges.reach_back_from(atom.first)
    return edges.reach_on_from(atom.end) or (at_start and (is_mark(words, atom) or words.key(atom.end) in _SEPARATORS))
