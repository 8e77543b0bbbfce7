"""Groups adjacent parts of dates, with the prepositions before them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from english.atoms import Atom, Day, End, Meaning, PartOfDay, Reminder, Repeat, Tag, Time, Unread
from english.words import DUE_WORDS, Words, word_set

_JOINTS = word_set(", ( ) - at on and &")  # between parts of one date
_ALTERNATIVES = word_set("or to through until / plus")  # two dates with one of them between are not one
_BE = word_set("is are was be")  # "the rent is due on Friday"
_MONEY_WORDS = word_set(
    "pay owe owes cost costs transfer spend price charge refund lend donate invoice \u20ac $ \u00a3 eur usd gbp"
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
        """Also counts last days of repeats, and days and repeats that are not understood."""
        unread = [each for each in self.meanings if isinstance(each, Unread)]
        return (
            self.has((Day, Repeat))
            or self.has(End, "day")
            or any(not (each.is_quiet or each.is_silent) for each in unread)
        )

    @property
    def is_sure(self) -> bool:
        return self.has(Day, "is_sure") or any(
            isinstance(each, Time) and each.is_exact and not each.is_bare for each in self.meanings
        )


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
        if isinstance(atom.meaning, Tag | Reminder) or is_loose or is_price:
            continue
        last = groups[-1] if groups else None
        is_beside = last is not None and last.end == wide.first
        if isinstance(atom.meaning, PartOfDay) and not is_beside and words.key(atom.first) not in ("in", "at"):
            continue  # "evening" in "parents' evening"
        between = [words.key(at) for at in range(last.end, wide.first)] if last else []
        is_new = "and" in between and not isinstance(wide.meaning, Time | Unread)  # two dates
        if last and len(between) <= 2 and _JOINTS.issuperset(between) and not is_new:
            groups[-1] = Group((*last.atoms, wide), last.is_prepositional or is_prepositional)
        elif last and len(between) == 1 and between[0] in _ALTERNATIVES and wide.names_time:
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
    if limit := _find_limit(words, atom, meaning, before, repeats=repeats):
        return limit, True
    if before == ":" and words.key(first - 2) in DUE_WORDS:
        return replace(atom, first=first - 2), True
    if before == "@":
        return replace(atom, first=first - 1), True
    if before == "than" and [words.key(first - 3), words.key(first - 2)] == ["no", "later"]:
        return replace(atom, first=first - 3), True
    if before == "due" and words.key(first - 2) in _BE:
        return atom, True
    if before == "before" and words.key(first) != "end" and words.key(first + 1) != "end":
        meaning = replace(meaning, is_before=True)
    if before in ("on", "by", "due", "until", "for", "before", "over", "deadline") or (
        before == "at" and words.key(first) in ("the", "end", "start", "beginning")
    ):
        first -= 1
        is_due = first - 1 >= free and words.key(first - 1) in ("due", "deadline") and before != "due"
        is_due = is_due and words.key(first - 2) not in _BE
        return Atom(first - is_due, atom.end, meaning), before != "for" or is_due
    return replace(atom, meaning=meaning), words.key(first) in ("on", "by", "due", "until")


def _find_limit(words: Words, atom: Atom, meaning: Day, before: str, *, repeats: bool) -> Atom | None:
    """Returns the first or the last day of a repeat, or both of "from 1 April to 1 July"."""
    first = atom.first
    if meaning.last and repeats:
        return replace(atom, meaning=replace(meaning, is_start=True))
    if before in ("starting", "from", "beginning", "starts") and (repeats or before != "from"):
        return Atom(first - 1, atom.end, Day(meaning.day, is_start=True))
    if before == "on" and words.key(first - 2) in ("starting", "beginning"):
        return Atom(first - 2, atom.end, Day(meaning.day, is_start=True))
    if before == "until" and repeats:
        return Atom(first - 1, atom.end, End(meaning.day))
    return None
