"""Dates, repeats, priorities and labels of a task."""

from offline_model.rules import plans, sentences
from offline_model.rules.language import dates, words
from offline_model.rules.sentences import CHANGED
from offline_model.rules.wishes.wish import Wish

_move, _undate = plans.update("due", dates.new_due), plans.update("due", empty="none")
_unrepeat = plans.update("repeat", empty="none")


def _prioritise(level: str) -> plans.Plan:
    return plans.update("priority", empty=level)


FIELDS = (
    Wish("(set|change|update) [the|a] {due_date} (of|for|on) <task> (to|as|:) <date>", _move, CHANGED),
    Wish("(set|give) <task> (a {due_date} (of|on)) <date>", _move, CHANGED),
    Wish("{move} <task> (to|until|till|for|by|on) <date>", _move, CHANGED),
    Wish("(clear|remove|delete) [the] ({due_date}|date|time) (of|from|for) <task>", _undate, CHANGED),
    Wish("repeat <task> (every|each) <period>", plans.update("due", dates.period), CHANGED),
    Wish("(stop|end) (repeating|the repeat of) <task>", _unrepeat, CHANGED),
    Wish("(clear|remove|delete) [the] repeat (of|from|for) <task>", _unrepeat, CHANGED),
    Wish("skip <task> [this time|once]", plans.update("due", empty="next"), CHANGED),
    *(
        Wish(f"(make|give|mark|set) <task> [as|to] [a] ({said}) priority", _prioritise(level), CHANGED)
        for level, said in (("high", "high|top|urgent"), ("medium", "medium|normal"), ("low", "low"), ("none", "no"))
    ),
    Wish("(prioritise|prioritize) <task>", _prioritise("high"), CHANGED),
    Wish("(clear|remove|delete) [the] priority (of|from|for) <task>", _prioritise("none"), CHANGED),
    Wish("(set|change) [the] priority of <task> (to|as) <priority>", plans.update("priority", words.lower), CHANGED),
    Wish("(tag|label) <task> (with|as) <value>", plans.update("add_labels", words.one_text), CHANGED),
    Wish("untag <task> (with|as|from) <value>", plans.update("remove_labels", words.one_text), CHANGED),
    Wish("{move} ...", plans.say, sentences.NO_NEW_DATE),
    Wish("(set|change|add|give) ([{number}|it] [a|an|the|my] {due_date}) ...", plans.say, sentences.NO_NEW_DATE),
    Wish("(set|change|add|give) <task> (a|an) {due_date}", plans.say, sentences.NO_NEW_DATE),
    Wish("(set|change|add|give) [{number}|it] [a|an|the|my] priority ...", plans.say, sentences.NO_PRIORITY),
    Wish("(tag|label) <task>", plans.say, sentences.NO_LABEL),
)
