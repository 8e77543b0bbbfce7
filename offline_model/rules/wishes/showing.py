"""Lists, and single tasks that are looked up."""

from offline_model.rules import plans
from offline_model.rules.wishes.wish import Wish

_ASKED = "({show}|{ask}|{am_i}) [me] [all] [is|are|'s] [my|the|our] [{noun}|anything|[do] i have] [that] [is|are|'s]"

DUE = (
    Wish(f"{_ASKED} overdue [{{noun}}|now|already|yet]", plans.show_due, "overdue"),
    Wish(f"{_ASKED} (due|on) <days>", plans.show_due),
    Wish(f"{_ASKED} due [next|now|soon]", plans.show_due, "any"),
    Wish("when (is|are) [my|the|our] <search> due", plans.find),
)

ONE = (
    Wish("[{what}|give|tell|read] [me] [the|any|some] {about_task} (of|on|for|about) <search>", plans.find),
    Wish("tell me about <search>", plans.find),
    Wish("({what}|what about|view|read|display) [me] <numbers>", plans.find),
)
"""One task, or some."""

LISTS = (
    Wish("({show}|{ask}|{am_i}) <list>", plans.show),
    Wish("<bare list>", plans.show),
    Wish("({show}|{ask}|{am_i}) [me] <list> {about} <search>", plans.find),
    Wish("({show}|what are|which are) [me] [all] [my|the|our] <search> {list_noun}", plans.find),
    Wish("(show|find|search [for]|look for|view|display) [me] <search>", plans.find),
    Wish("{am_i} <search of deed>", plans.find),
)
