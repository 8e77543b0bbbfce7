"""Dates, repeats, priorities and labels of a task, or of all of a group."""

from offline_model.rules import dates, sentences
from offline_model.rules.language import words
from offline_model.rules.plans.changing import correct_last, update, update_group
from offline_model.rules.plans.talking import say
from offline_model.rules.sentences import CHANGED, PRIORITY, TAGGED, UNTAGGED
from offline_model.rules.wishes.wish import Wish

_move, _undate = update("due", dates.new_due), update("due", empty="none")
_correct = update("due", dates.corrected)
_unrepeat, _skip = update("repeat", empty="none"), update("due", empty="next")
_repeat = update("due", dates.period)
_tag, _untag = update("add_labels", words.one_text), update("remove_labels", words.one_text)
_LEVELS = (("high", "high|top|urgent"), ("medium", "medium|normal"), ("low", "low"), ("no", "no"))


def _priority(level: str, said: str) -> tuple[Wish, ...]:
    value, answer = "none" if level == "no" else level, f"Changed {{count}} to {level} priority."
    return (
        Wish(
            f"(make|give|mark|set) <group> [as|to] [a] ({said}) priority", update_group("priority", empty=value), answer
        ),
        Wish(f"(make|give|mark|set) <task> [as|to] [a] ({said}) priority", update("priority", empty=value), answer),
        Wish(f"<subject> (is|are|has|have) [a] ({said}) priority", update("priority", empty=value), answer),
    )


_DATES = (
    Wish("{move} <group> (to|until|till|for|by|on) <date>", update_group("due", dates.new_due), CHANGED),
    Wish("(set|change|update|add|give) [the|a] {due_date} (of|for|on|to) <task> (to|as|of|:) <date>", _move, CHANGED),
    Wish("(set|change|update) <task> (to|for) <date>", _move, CHANGED),
    Wish("(set|give) <task> (a {due_date} (of|on)) <date>", _move, CHANGED),
    Wish("{move} <task> from <from date to date>", update("due", dates.moved), CHANGED),
    Wish("(make|set) <task> due <date>", _move, CHANGED),
    Wish("[no] [sorry|wait] (i (meant|mean)|make (it|that)|rather|not that) <new date>", correct_last, CHANGED),
    Wish("no <new date>", correct_last, CHANGED),
    Wish("{move} <task> ([back] (to|until|till|for|by|on)) <date>", _move, CHANGED),
    Wish("(move|bring|pull) <task> (forward [by]|ahead [by]|up by) <shift>", update("due", dates.earlier), CHANGED),
    Wish("<subject> ((is|'s|will be|comes|starts|begins) [now|actually]) <new date>", _correct, CHANGED),
    Wish("(clear|remove|delete|take) [the] ({due_date}|date|time) (of|from|for|off) <task>", _undate, CHANGED),
    Wish("<subject> (has|needs) no ({due_date}|date|time) [anymore|any more]", _undate, CHANGED),
)
_REPEATS = (
    Wish("repeat <task> (every|each) <period>", _repeat, CHANGED),
    Wish("(make|set) <task> (repeat (every|each)) <period>", _repeat, CHANGED),
    Wish(
        "(stop|end|don't|do not) (repeat|repeating|the (repeat|repetition) of) <task> [anymore|any more]",
        _unrepeat,
        CHANGED,
    ),
    Wish("<task> (should not|shouldn't|must not|needn't) repeat [anymore|any more]", _unrepeat, CHANGED),
    Wish("(clear|remove|delete) [the] repeat (of|from|for) <task>", _unrepeat, CHANGED),
    Wish("skip [[the] next] <task> [{once}]", _skip, CHANGED),
)
_HIGH = "Changed {count} to high priority."
_PRIORITIES = (
    *(wish for level, said in _LEVELS for wish in _priority(level, said)),
    Wish("(prioritise|prioritize) <task>", update("priority", empty="high"), _HIGH),
    Wish("(make|mark|set|flag) <task> [as] (important|urgent)", update("priority", empty="high"), _HIGH),
    Wish("<subject> (is|are) [now|very|really] (important|urgent)", update("priority", empty="high"), _HIGH),
    Wish("(clear|remove|delete) [the] priority (of|from|for) <task>", update("priority", empty="none"), CHANGED),
    Wish("(set|change) [the] priority of <task> (to|as) <priority>", update("priority", words.lower), PRIORITY),
)
_LABELS = (
    Wish("(tag|label) <group> (with|as) <value>", update_group("add_labels", words.one_text), TAGGED),
    Wish("(tag|label) <task> (with|as) <value>", _tag, TAGGED),
    Wish("(add|put) [the] (tag|label) <value> (to|on) <task>", _tag, TAGGED),
    Wish("untag <task> (with|as|from) <value>", _untag, UNTAGGED),
    Wish("(remove|delete|take [off]) [the] (tag|label) <value> (from|off|of) <task>", _untag, UNTAGGED),
)
_UNCLEAR = (
    Wish("{move} ...", say, sentences.NO_NEW_DATE),
    Wish("(set|change|add|give) ([{number}|it] [a|an|the|my] {due_date}) ...", say, sentences.NO_NEW_DATE),
    Wish("(set|change|add|give) <task> (a|an) {due_date}", say, sentences.NO_NEW_DATE),
    Wish("(set|change|add|give) [{number}|it] [a|an|the|my] priority ...", say, sentences.NO_PRIORITY),
    Wish("(tag|label) <task>", say, sentences.NO_LABEL),
)

FIELDS = (*_DATES, *_REPEATS, *_PRIORITIES, *_LABELS, *_UNCLEAR)
