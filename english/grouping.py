"""Groups adjacent parts of dates, and decides from their context whether a group is the date of the task."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from english.atoms import Atom, Clock, Day, End, Meaning, PartOfDay, Repeat, RuleTable, Tag, Time, Unread, match_rules
from english.calendar import add_days
from english.days import DAYS, NOT_DAYS
from english.repeats import ENDS, NOT_REPEATS, REPEATS
from english.tags import TAGS
from english.times import NOT_TIMES, TIMES
from english.words import VERBS, Words, word_set

_TABLES = [*map(RuleTable, (DAYS, REPEATS, TIMES, ENDS, TAGS, NOT_DAYS, NOT_REPEATS, NOT_TIMES))]
_MAX_WORDS = 1_000
PREPOSITIONS = word_set(
    "about after at before by for from in into near of on over to until with without via per because so if while when "
    "unless since during regarding re and then but or as"
)
_SEPARATORS = word_set(", ; : . ! ? ( ) [ ] - & /")
MARKS = frozenset(".,;:!\u2026-")
"""Characters of words that say nothing: "!!" or "..."."""
_JOINTS = word_set(", ( ) - at on and &")  # between parts of one date
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
_BOUNDS = word_set("about after at before but except from since than")
# "5/6" after one of these words counts something.
_COUNTED = word_set(
    "chapter chapters class classes episode episodes exercise exercises grade grades lesson lessons level levels page "
    "pages part parts question questions section sections step steps unit units volume volumes"
)
_MONEY_WORDS = word_set(
    "pay owe owes cost costs transfer spend price charge refund lend donate invoice \u20ac $ \u00a3 eur usd gbp"
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


@dataclass(frozen=True)
class Group:
    atoms: tuple[Atom, ...]
    is_prepositional: bool = False
    """Whether "on", "by" or "due" precedes a day."""

    @property
    def first(self) -> int:
        return self.atoms[0].first

    @property
    def end(self) -> int:
        return self.atoms[-1].end

    @property
    def meanings(self) -> list[Meaning]:
        return [atom.meaning for atom in self.atoms]

    def has(self, kind: type | tuple[type, ...], flag: str = "") -> bool:
        return any(isinstance(each, kind) and (not flag or getattr(each, flag)) for each in self.meanings)

    @property
    def names_day(self) -> bool:
        """Also counts days and repeats that are not understood."""
        return self.has((Day, Repeat)) or any(isinstance(each, Unread) and not each.is_quiet for each in self.meanings)

    @property
    def is_sure(self) -> bool:
        return self.has(Day, "is_sure") or self.has(Time, "is_exact")


class Edges:
    """The beginning and the end of a text, where only dates, tags, separators and polite words are."""

    def __init__(self, words: Words, atoms: Sequence[Atom]) -> None:
        covered = {at for atom in atoms for at in range(atom.first, atom.end)}
        free = [at for at in range(len(words.words)) if at not in covered and not _is_joint(words.key(at))]
        inner = [[at for at in free if words.key(at) not in leads or at + 1 not in covered] for leads in _LEADS]
        self._first = inner[0][0] if inner[0] else len(words.words)
        self._last = inner[1][-1] if inner[1] else -1

    def reach_back_from(self, at: int) -> bool:
        """Returns whether nothing else comes before a word."""
        return at <= self._first

    def reach_on_from(self, at: int) -> bool:
        """Returns whether nothing else comes from a word on."""
        return at > self._last


def _is_joint(key: str) -> bool:
    return key in _SEPARATORS or key in _POLITE_WORDS or MARKS.issuperset(key)


def find_atoms(words: Words, clock: Clock) -> list[Atom]:
    """Finds the longest phrases from left to right, without an `End` if there is no repeat."""
    atoms: list[Atom] = []
    at = 0
    while at < min(len(words.words), _MAX_WORDS):
        match = match_rules(_TABLES, words.line, words.starts[at], clock)
        if match is None:
            at += 1
            continue
        atom = Atom(at, words.index_at(match[0]), match[1])
        if not _is_mark(words, atom) or words.stand_alone(atom.first, atom.end):
            atoms.append(atom)
        at = atom.end
    repeats = any(isinstance(atom.meaning, Repeat) for atom in atoms)
    return [atom for atom in atoms if repeats or not isinstance(atom.meaning, End)]


def _is_mark(words: Words, atom: Atom) -> bool:
    """Returns whether an atom is a label or priority as "#home", "!high" or "p1", which is no part of a longer word."""
    key = words.key(atom.first)
    return isinstance(atom.meaning, Tag) and (key[0] in "!#@" or key in ("p1", "p2", "p3", "p4"))


def group_atoms(words: Words, atoms: Sequence[Atom]) -> list[Group]:
    repeats = any(isinstance(atom.meaning, Repeat) for atom in atoms)
    is_about_money = any(word.key in _MONEY_WORDS for word in words.words)
    groups: list[Group] = []
    free = 0  # the first word that is not part of an atom yet
    for atom in atoms:
        wide, is_prepositional = _add_preposition(words, atom, free, repeats=repeats)
        free = atom.end
        is_price = isinstance(atom.meaning, Time) and atom.meaning.is_doubtful and is_about_money
        is_loose = isinstance(atom.meaning, Unread) and atom.meaning.is_loose
        if isinstance(atom.meaning, Tag) or is_loose or is_price:
            continue
        last = groups[-1] if groups else None
        is_beside = last is not None and last.end == wide.first
        if isinstance(atom.meaning, PartOfDay) and not is_beside and words.key(atom.first) not in ("in", "at"):
            continue  # "evening" in "parents' evening"
        between = [words.key(at) for at in range(last.end, wide.first)] if last else []
        is_new = "and" in between and not isinstance(wide.meaning, Time | Unread)  # two dates
        if last and len(between) <= 2 and _JOINTS.issuperset(between) and not is_new:
            groups[-1] = Group((*last.atoms, wide), last.is_prepositional or is_prepositional)
        elif last and between == ["or"]:
            groups[-1] = Group((*last.atoms, Atom(last.end, wide.first, Unread()), wide))
        else:
            groups.append(Group((wide,), is_prepositional))
    return groups


def _add_preposition(words: Words, atom: Atom, free: int, *, repeats: bool) -> tuple[Atom, bool]:
    """Adds "on", "due by" and the like to the day; "before" means the day before."""
    meaning, first = atom.meaning, atom.first
    before = words.key(first - 1) if first - 1 >= free else ""
    if isinstance(meaning, Repeat) and before == "due":
        return replace(atom, first=first - 1), False
    if not isinstance(meaning, Day) or meaning.time or (before == "the" and words.key(first) != "the"):
        return atom, False
    if before == ":" and words.key(first - 2) in ("due", "deadline", "when", "date"):
        return replace(atom, first=first - 2), True
    if before in ("starting", "from", "beginning", "starts") and (repeats or before != "from"):
        return Atom(first - 1, atom.end, Day(meaning.day, is_start=True)), True
    if before == "on" and words.key(first - 2) in ("starting", "beginning"):
        return Atom(first - 2, atom.end, Day(meaning.day, is_start=True)), True
    if before == "until" and repeats:
        return Atom(first - 1, atom.end, End(meaning.day)), True
    if before == "before" and words.key(first) != "end" and words.key(first + 1) != "end":
        meaning = replace(meaning, day=add_days(meaning.day, -1))
    if before in ("on", "by", "due", "until", "for", "before", "over", "deadline") or (
        before == "at" and words.key(first) in ("the", "end", "start", "beginning")
    ):
        first -= 1
        is_due = first - 1 >= free and words.key(first - 1) in ("due", "deadline") and before != "due"
        return Atom(first - is_due, atom.end, meaning), before != "for" or is_due
    return replace(atom, meaning=meaning), words.key(first) in ("on", "by", "due", "until")


def choose_dates(words: Words, groups: Sequence[Group], edges: Edges) -> list[Group]:
    """A weekday before a noun needs a time elsewhere. A time alone is no date if a day is not understood."""
    clauses = _list_words_in_clauses(words)
    chosen = [group for group in groups if is_date(words, group, edges) and group.first not in clauses]
    ends = {group.end for group in chosen}
    rest = [group for group in groups if group.end not in ends and group.names_day]
    if any(group.has((Day, Repeat)) for group in chosen) or not rest:
        return chosen
    first = rest[0]
    is_name = words.raw(first.end).istitle() or words.key(first.end) in _TITLE_WORDS or first.has(Unread)
    if len(rest) == 1 and chosen and not is_name and edges.reach_back_from(first.first):
        return [first, *chosen]
    return []


def is_date(words: Words, group: Group, edges: Edges) -> bool:
    return not group.has(Unread) and _can_be_date(words, group) and _is_placed_as_date(words, group, edges)


def list_intended(words: Words, groups: Sequence[Group], edges: Edges) -> list[Group]:
    """Returns the groups that are where a date of the task would be, also those that are not understood."""
    clauses = _list_words_in_clauses(words)
    intended = [group for group in groups if group.first not in clauses and _is_intended(words, group, edges)]
    # A time that is not taken because of a day elsewhere is reported with that day.
    is_blocked = any(is_date(words, group, edges) for group in intended)
    return [group for group in groups if group in intended or (is_blocked and group.names_day)]


def is_intended_alone(words: Words, atom: Atom, edges: Edges) -> bool:
    """Returns whether a month or number at the end of a text is meant as a date: "holiday june", not "call June"."""
    before = words.key(atom.first - 1)
    is_object = before in VERBS and words.key(atom.first) not in PREPOSITIONS
    return edges.reach_on_from(atom.end) and not is_object and before not in _UNFINISHED | _COUNTED


def _is_intended(words: Words, group: Group, edges: Edges) -> bool:
    is_bound = words.key(group.first - 1) in _BOUNDS and edges.reach_on_from(group.end)
    return is_bound or _is_placed_as_date(words, group, edges)


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
        before in _UNFINISHED
        or after.startswith("'")
        or (before in _COUNTED and "/" in words.key(group.first))
        or (
            after == "-"
            and words.raw(group.end + 1).isalpha()
            and not edges.reach_on_from(group.end)
            and (group.first > 0 or is_short)
            and words.words[group.end].start == words.words[group.end - 1].end
        )
    ):
        return False
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
    return edges.reach_on_from(atom.end) or (at_start and (_is_mark(words, atom) or words.key(atom.end) in _SEPARATORS))
