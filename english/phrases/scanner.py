"""Finds the phrases about time and the tags of a text."""

from english.atoms import Atom, Clock, Day, End, Repeat, RuleTable, Tag, Unread, match_rules
from english.phrases.days import DAYS, NOT_DAYS
from english.phrases.lengths import LENGTHS
from english.phrases.repeats import ENDS, NOT_REPEATS, REPEATS
from english.phrases.tags import REMINDERS, TAGS
from english.phrases.times import NOT_TIMES, TIMES
from english.words import Words

_TABLES = [*map(RuleTable, (DAYS, LENGTHS, REMINDERS, REPEATS, TIMES, ENDS, TAGS, NOT_DAYS, NOT_REPEATS, NOT_TIMES))]
_MAX_WORDS = 1_000


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
        if not isinstance(atom.meaning, Tag):
            atom = _widen(words, atom)
            while atoms and atoms[-1].end > atom.first:
                atoms.pop()
        if not is_mark(words, atom) or words.stand_alone(atom.first, atom.end):
            atoms.append(atom)
        at = atom.end
    repeats = any(isinstance(atom.meaning, Repeat) for atom in atoms)
    return [atom for atom in atoms if repeats or not isinstance(atom.meaning, End)]


def _widen(words: Words, atom: Atom) -> Atom:
    """Returns words about time, with what touches them, as not understood: "yearly" in "half-yearly"."""
    first, end = words.widen(atom.first, atom.end)
    if (first, end) == (atom.first, atom.end):
        return atom
    return Atom(first, end, Unread() if _is_clear(words, atom) else Unread(is_quiet=True, is_loose=True))


def _is_clear(words: Words, atom: Atom) -> bool:
    """Returns whether words mean a day or a repeat, and not a number, a holiday or the sun."""
    match atom.meaning:
        case Day(is_short=True) | Day(needs_preposition=True):
            return False
        case Day(is_sure=is_sure):
            return is_sure or words.raw(atom.first).isalpha()
        case Repeat():
            return True
        case _:
            return False


def is_mark(words: Words, atom: Atom) -> bool:
    """Returns whether an atom is a label or priority as "#home", "!high" or "p1", which is no part of a longer word."""
    key = words.key(atom.first)
    return isinstance(atom.meaning, Tag) and (key[0] in "!#@" or key in ("p1", "p2", "p3", "p4"))
