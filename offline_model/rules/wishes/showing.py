"""Lists, and single tasks that are looked up."""

from offline_model.rules import sentences
from offline_model.rules.plans import listing
from offline_model.rules.plans.listing import find, show_due, show_first, show_label, show_only
from offline_model.rules.plans.talking import say
from offline_model.rules.wishes.wish import Wish

_ASKED = "({show}|{ask}|{am_i}) [me] [all] [is|are|'s] [my|the|our] [{noun}|anything|[do] i have] [{that_is}|is|are|'s]"
_MY = "({show}|{ask}|{am_i}) [me] [all] [is|are|'s] [my|the|our|of] [my|the]"
_important = show_only(" with high priority", priority="high", order="due")
_undated = show_only(" without a date", due="none")

DUE = (
    Wish("({ask}|{show}) [is|are|'s|should|do] [i|we|the|my] [do|start|begin|task] [with] first", show_first),
    Wish("(where|what) (do|should|can|shall) (i|we) (start|begin) [with]", show_first),
    Wish("what ('s|is) [the|my] (most (important|urgent)|top|first) [{noun}|thing|priority] [now|today]", show_first),
    Wish("what ((should|shall|do) i do (next|now)|('s|is) (next|up next|up))", show_first),
    Wish(f"{_ASKED} overdue [{{noun}}|now|already|yet]", show_due, "overdue"),
    Wish(f"{_MY} overdue {{things}}", show_due, "overdue"),
    Wish("({show}|{ask}|{am_i}) [me] <done on days>", listing.show_done),
    Wish("({show}|{ask}|{am_i}) [me] <list of today>", listing.show_today),
    Wish(f"{_ASKED} (due|on) <days>", show_due),
    Wish("[and] (what|how) about <days>", show_due),
    Wish("what (did|have) (i|we) (miss|missed|forget|forgot|forgotten)", show_due, "overdue"),
    Wish(f"{_ASKED} due [next|now|soon]", show_due, "any"),
    Wish("({show}|{ask}|{am_i}) [me] <list on days>", show_due),
    Wish("[{show} [me]|what about] [my|all|(the|my) {list_noun} for] today ['s {things}]", listing.show_today),
    Wish("<days>", show_due),
    Wish(f"{_MY} (high priority|urgent|important) [{{things}}]", _important),
    Wish(f"{_ASKED} (urgent|important|high priority)", _important),
    Wish(f"{_MY} {{things}} (without|with no|that have no) [a] ({{due_date}}|date)", _undated),
    Wish("(what|which {things}) (has|have) no ({due_date}|date)", _undated),
    Wish("({show}|{ask}) [me] [is|did] [i|my|the|all] [just] (delete|deleted) [{things}]", listing.show_deleted),
    Wish("when (is|are) [my|the|our] <search> [due]", find),
)

LABELS = (
    Wish("({show}|{ask}) [me] [all] [my|the] [{things}] [with] [the] (label|tag) <label>", show_label),
    Wish("({show}|{ask}) [me] [all] [my|the] {things} (labelled|labeled|tagged) [with|as] <label>", show_label),
    Wish("(sort|order) [my|the|all] [{things}] by ...", say, sentences.NO_SORTING),
)

ONE = (
    Wish("[{what}|give|tell|read] [me] [the|any|some] {about_task} (of|on|for|about) <search>", find),
    Wish("tell me about <search>", find),
    Wish("what (is|'s) [the|my|our] <search> about", find),
    Wish("({what}|what about|view|read|display) [me] <numbers>", find),
)

LISTS = (
    Wish("({show}|{ask}|{am_i}) <list>", listing.show),
    Wish("<bare list>", listing.show),
    Wish("(my|all|the) <search> {list_noun}", show_label),
    Wish("({show}|{ask}|{am_i}) [me] <list> {about} <search>", find),
    Wish(
        "({show}|what are|which are|how many) [me] [all] [my|the|our] <search> {list_noun} [do i have|are there]",
        show_label,
    ),
    Wish(
        "(what is|what's|what are|whats|anything) [left|still|open|there] [on] (my|the|our) <search> {list_noun}",
        show_label,
    ),
    Wish("({show}|{ask}) [me] <group>", listing.show_group),
    Wish("(show|find|search [for]|look for|view|display) [me] [{whatever} {about}] <search>", find),
    Wish("{am_i} <search of deed>", find),
)
