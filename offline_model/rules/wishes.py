"""What a person can want: the table of wishes, tried from its top.

To add one, add a row: a pattern (its language is told in `pattern`, the words for {…} are NAMES in `vocabulary`, what
may stand in a gap <…> is told by GAPS), a plan (a function of `plans`; `say` needs no tools), and an answer, in which
{tasks} are named and {count} counted. A row stands above those that would take its sentences for something else. Then
add a sentence to the tests.
"""

from collections.abc import Callable
from string import punctuation
from typing import NamedTuple

from offline_model.rules import new_tasks, plans, sentences
from offline_model.rules.language import dates, vocabulary, words
from offline_model.rules.language.pattern import Phrases
from offline_model.rules.language.text import Text
from offline_model.rules.lookup import Kind
from offline_model.rules.sentences import (
    ADDED,
    CANNOT,
    CHANGED,
    COMPLETED,
    DELETED,
    HELP,
    LEFT_ALONE,
    LISTED,
    NOTED,
    REOPENED,
)
from offline_model.rules.undo import undo

_TIME = Phrases.of("{time}")
_ASKED = "({show}|{ask}|{am_i}) [me] [all] [is|are|'s] [my|the|our] [{noun}|anything|[do] i have] [that] [is|are|'s]"
rename, describe = plans.update("title"), plans.update("description")
move, undate = plans.update("due", dates.new_due), plans.update("due", empty="none")
unrepeat = plans.update("repeat", empty="none")
reopen = plans.update("status", empty="pending")


def prioritise(level: str) -> plans.Plan:
    return plans.update("priority", empty=level)


class Wish(NamedTuple):
    pattern: str
    plan: plans.Plan
    answer: str = ""
    kind: Kind = "request"
    """An aside is dropped where there is a request too; a reply such as "2" makes sense only as an answer."""


def _is_list(text: Text) -> bool:
    """Whether all its words are about the list."""
    return not vocabulary.LIST_SUBJECTS.isdisjoint(text.keys) and vocabulary.LIST_WORDS.issuperset(text.keys)


def _is_bare_list(text: Text) -> bool:
    """Of "my tasks" or "all open tasks", but not "done" or "do it"."""
    first, *_, last = [*text.keys, *text.keys]
    is_noun = last in vocabulary.LIST_NOUNS and first not in ("complete", "finish")
    return _is_list(text) and (is_noun or text.keys in (["all"], ["everything"]))


def _is_subject(text: Text) -> bool:
    """Of "the milk", from "the milk is done", but not of "what", "nothing" or "tell me when it"."""
    no_subject = vocabulary.NOT_A_TASK - vocabulary.POINTING
    unsure = vocabulary.NEGATIONS | vocabulary.UNSURE
    return no_subject.isdisjoint(text.keys[:1]) and unsure.isdisjoint(text.keys)


def _is_own_deed(text: Text) -> bool:
    """Of "called mum", from "I called mum"."""
    verb, *rest = text.keys or [""]
    return bool(rest) and words.is_past(verb) and verb not in vocabulary.NOT_DEEDS


def _is_duty(text: Text) -> bool:
    """Of "call mum", from "I should call mum", but not of "have called her"."""
    verb, following, *_ = [*text.keys, "", ""]
    no_duty = vocabulary.NEGATIONS | vocabulary.POINTING | {"you"}
    return verb not in no_duty and not (verb == "have" and words.is_past(following))


def _is_errand(text: Text) -> bool:
    """Of "buy flowers", which is no question and asks nothing of this model; "hold on" is none."""
    verb, *rest = text.keys or [""]
    if verb not in vocabulary.ERRANDS or not rest or rest in (["on"], ["back"], ["away"], ["up"]):
        return False
    is_asked_of_me = rest[0] in vocabulary.POINTING or vocabulary.NO_ERRANDS.intersection(rest)
    return not is_asked_of_me and words.may_be_task(text.raw)


def _has_time(text: Text) -> object:
    """Whether some of its words tell a time, be they a date that is understood or not."""
    return dates.taken_from(text)[1] or next(_TIME.places(text.keys), None)


def _is_dated_errand(text: Text) -> bool:
    """Of "every Monday at 9 water the plants"."""
    start = dates.leading(text)
    return start is not None and _is_errand(start[1])


GAPS: dict[str, Callable[[Text], object]] = {
    **dict.fromkeys(("...", "title", "new", "task"), bool),  # whatever there is
    "when": lambda text: {"to", "about", "of"}.isdisjoint(text.keys),
    "new on other list": new_tasks.list_named_in,
    "new on list": lambda text: new_tasks.list_named_in(text) is not None,
    "bullets": new_tasks.is_bulleted,
    "new at time": _has_time,
    "dated errand": _is_dated_errand,
    "days": dates.range_of,
    "date": dates.new_due,
    "period": dates.period,
    "priority": lambda text: text.raw.casefold() in ("high", "medium", "low", "none"),
    "errand": _is_errand,
    "errand at time": lambda text: _is_errand(text) and _has_time(text),
    "duty": _is_duty,
    "value": lambda text: text.shown().strip(punctuation + " "),
    "list": _is_list,
    "bare list": _is_bare_list,
    **dict.fromkeys(("search", "search of deed"), lambda text: not vocabulary.LIST_WORDS.issuperset(text.keys)),
    "numbers": lambda text: words.numbers_in(text.shown()),
    "own deed": _is_own_deed,
    "deed": lambda text: len(text.keys) > 1 and words.is_known_past(text.keys[0]),
    "subject": _is_subject,
    "past": lambda text: len(text.keys) == 1 and words.is_known_past(text.keys[0]),
}
"""What a text must be to stand there."""
NAMING = ("past", "own deed", "deed", "subject", "task", "numbers")
"""The gaps whose texts, in this order, name tasks, which are looked up, and asked about where several fit."""
DEEDS = {"past", "own deed", "deed", "search of deed"}
"""Those that tell of something done, as "bought the milk" does, whose verb need not be in the title."""

SMALL_TALK = (
    Wish("({hello} [there|all] [{how_are_you}]|{how_are_you})", plans.say, sentences.GREETING, "aside"),
    Wish("({praise}|[{praise}] {thanks} [so much|very much|a lot])", plans.say, sentences.WELCOME, "aside"),
    Wish("(bye|goodbye|good (bye|night)|see you [later]|that's (all|it) [for now])", plans.say, sentences.BYE, "aside"),
    Wish("(yes|no|yep|nope|sure|y|n)", plans.say, sentences.NO_QUESTION, "reply"),
    Wish("[i need] (help|usage|commands|examples) [me] [please]", plans.say, HELP),
    Wish("what (can|could) (you|i) (do|say|ask) [here|for me]", plans.say, HELP),
    Wish("(what do you do|(who|what) are you|what is this|how does (this|it) work)", plans.say, HELP),
    Wish("how (do|can) i (use|mark|change|edit|{add}|{show}|{finish}|{rename}|{delete}) ...", plans.say, HELP),
    Wish("what (model|llm|ai) ...", plans.say, HELP),
    Wish("is this (a|an|the) ... (model|ai|bot|human|llm)", plans.say, HELP),
    Wish("are (you|u) ...", plans.say, sentences.I_AM),
    Wish("(did|have|had|were) (you|u) ...", plans.say, sentences.NO_MEMORY),
)
"""Tried before politeness is taken away, of which some of it consists."""

WISHES = (
    Wish("<bullets>", plans.add, ADDED),
    *SMALL_TALK,
    Wish("(never mind|nevermind|stop|nothing|(cancel|forget [about]) [it|that])", plans.say, LEFT_ALONE, "aside"),
    Wish("({number}|[the] {position} [one|task]|both|it|them)", plans.say, sentences.NO_VERB, "reply"),
    Wish("[{show}|ask for] [me] [the|and] {more} [of (it|them|{our_list})]", plans.show_rest, sentences.NO_MORE),
    Wish("(what|anything) else [is there]", plans.show_rest, sentences.NO_MORE),
    Wish("(i|we|actually|no|make|let's) ... instead", plans.say, sentences.NO_NEW_VALUE),
    Wish("<errand> instead", plans.say, sentences.NO_NEW_VALUE),
    Wish("{remember} <new at time>", plans.add, NOTED),
    Wish("{remember} <new>", plans.add, ADDED),
    Wish("remind me <when> (to|about|of) <new>", plans.add, NOTED),
    Wish("((undo|revert) [{last_change}]|take {last_change} back|bring back {last_change})", undo),
    # What is due.
    Wish(f"{_ASKED} overdue [{{noun}}|now|already|yet]", plans.show_due, "overdue"),
    Wish(f"{_ASKED} (due|on) <days>", plans.show_due),
    Wish(f"{_ASKED} due [next|now|soon]", plans.show_due, "any"),
    Wish("when (is|are) [my|the|our] <search> due", plans.find),
    # Dates, repeats, priorities and labels of a task.
    Wish("(set|change|update) [the|a] {due_date} (of|for|on) <task> (to|as|:) <date>", move, CHANGED),
    Wish("(set|give) <task> (a {due_date} (of|on)) <date>", move, CHANGED),
    Wish("{move} <task> (to|until|till|for|by|on) <date>", move, CHANGED),
    Wish("(clear|remove|delete) [the] ({due_date}|date|time) (of|from|for) <task>", undate, CHANGED),
    Wish("repeat <task> (every|each) <period>", plans.update("due", dates.period), CHANGED),
    Wish("(stop|end) (repeating|the repeat of) <task>", unrepeat, CHANGED),
    Wish("(clear|remove|delete) [the] repeat (of|from|for) <task>", unrepeat, CHANGED),
    Wish("skip <task> [this time|once]", plans.update("due", empty="next"), CHANGED),
    *(
        Wish(f"(make|give|mark|set) <task> [as|to] [a] ({said}) priority", prioritise(level), CHANGED)
        for level, said in (("high", "high|top|urgent"), ("medium", "medium|normal"), ("low", "low"), ("none", "no"))
    ),
    Wish("(prioritise|prioritize) <task>", prioritise("high"), CHANGED),
    Wish("(clear|remove|delete) [the] priority (of|from|for) <task>", prioritise("none"), CHANGED),
    Wish("(set|change) [the] priority of <task> (to|as) <priority>", plans.update("priority", words.lower), CHANGED),
    Wish("(tag|label) <task> (with|as) <value>", plans.update("add_labels", words.one_text), CHANGED),
    Wish("untag <task> (with|as|from) <value>", plans.update("remove_labels", words.one_text), CHANGED),
    Wish("{move} ...", plans.say, sentences.NO_NEW_DATE),
    Wish("(set|change|add|give) ([{number}|it] [a|an|the|my] {due_date}) ...", plans.say, sentences.NO_NEW_DATE),
    Wish("(set|change|add|give) <task> (a|an) {due_date}", plans.say, sentences.NO_NEW_DATE),
    Wish("(set|change|add|give) [{number}|it] [a|an|the|my] priority ...", plans.say, sentences.NO_PRIORITY),
    Wish("(tag|label) <task>", plans.say, sentences.NO_LABEL),
    Wish("({delete}|clear) [all] [of] [my|the] {done} [tasks|items|ones]", plans.delete_done, DELETED),
    Wish("really ({delete}|clear) [all] [of] [my|the] {done} [tasks|items|ones]", plans.delete_done),
    # What it cannot do: a row goes, or gets a plan, when tasks have what it is about.
    Wish("(remind|wake|notify|alert) me [up] {when} ...", plans.say, CANNOT["reminders"]),
    Wish("(set|change|add) (a|an|the|my) reminder (for|at|on|in) ...", plans.say, CANNOT["reminders"]),
    Wish("undo <task>", plans.say, CANNOT["view of deleted tasks"]),
    Wish("(restore|undelete|bring back) <task>", plans.say, CANNOT["view of deleted tasks"]),
    # What is not done.
    Wish("(reopen|re-open|reactivate|uncomplete|untick|uncheck) <task>", reopen, REOPENED),
    Wish("(mark|set) <task> [as] (not {done}|undone|incomplete|pending|open)", reopen, REOPENED),
    Wish("<task> (is not|isn't|are not|aren't) {done} [yet]", reopen, REOPENED),
    Wish("clear [my|the] ([to-do|task] list|everything|all|tasks|completed|done) ...", plans.say, sentences.NO_BULK),
    # Descriptions.
    Wish("(clear|remove|delete|erase|empty) [the] {note} (of|for|on|from) <task>", describe, CHANGED),
    Wish("describe <task> (as|:|with) <value>", describe, CHANGED),
    Wish("{put} {note} (to|on|for) <task> (:|saying [that]|that says|that) <value>", describe, CHANGED),
    Wish("{put} {note} [:] <value> (to|on) <task>", describe, CHANGED),
    Wish("(add|put|write|attach) <value> ((to|as) the {note} (of|for)) <task>", describe, CHANGED),
    Wish("(set|change|update|edit|make) [the] {note} (of|for|on) <task> (to|:|as) <value>", describe, CHANGED),
    Wish("{note} (on|for|to|of) <task> : <value>", describe, CHANGED),
    # One task, or some.
    Wish("[{what}|give|tell|read] [me] [the|any|some] {about_task} (of|on|for|about) <search>", plans.find),
    Wish("tell me about <search>", plans.find),
    Wish("({what}|what about|view|read|display) [me] <numbers>", plans.find),
    # New tasks.
    Wish("({add}|make|new) [me] [{one}] [new|more] {noun} [(to|on) {our_list}] {called} <title>", plans.add, ADDED),
    Wish("({add} [me]|put|stick|place|get) <new on other list>", plans.add, LISTED),
    Wish("[{add} [me]] <dated errand>", plans.add, NOTED),
    Wish("{add} [me] <new>", plans.add, ADDED),
    Wish("(make|set up) [me] (the|some|{one}) [new] {noun} <new>", plans.add, ADDED),
    Wish("(new {noun}|[new] ({noun}|to do) :) <new>", plans.add, ADDED),
    Wish("add", plans.say, sentences.NO_TITLE),
    Wish("(put|stick|place|get) <new on list>", plans.add, ADDED),
    Wish("(don't|do not) [let me] forget [the|my] <duty>", plans.add, ADDED),
    Wish("(i|we) (must|should|gotta) [also|still] <duty>", plans.add, ADDED),
    # Changes of a title.
    Wish("(change|set|move|update) [the] [status of] <task> (to|as) {done}", plans.complete, COMPLETED),
    Wish("(change|update|edit|set) [the] (title|name|text|wording) of <task> ({into}|as|:) <value>", rename, CHANGED),
    Wish("{rename} [[the] (title|name|text) of] [task|number] <task> ({into}|as|:) <value>", rename, CHANGED),
    Wish("{rename} [task] <numbers> [:] <errand>", rename, CHANGED),
    Wish("(change|update|edit|turn) <task> {into} <value>", rename, CHANGED),
    Wish("<task> (should (be (called|named)|read|say)) <value>", rename, CHANGED),
    Wish("({rename}|change|edit|update|describe) ...", plans.say, sentences.NO_NEW_VALUE),
    # The list.
    Wish("({show}|{ask}|{am_i}) <list>", plans.show),
    Wish("<bare list>", plans.show),
    Wish("({show}|{ask}|{am_i}) [me] <list> {about} <search>", plans.find),
    Wish("({show}|what are|which are) [me] [all] [my|the|our] <search> {list_noun}", plans.find),
    Wish("(show|find|search [for]|look for|view|display) [me] <search>", plans.find),
    Wish("{am_i} <search of deed>", plans.find),
    # What is done.
    Wish("(mark|set|tick|check|cross|flag|put) [off|out] <task> [as|to|is] [being] {done}", plans.complete, COMPLETED),
    Wish("{tick} <task> (off|out) [{from_list}]", plans.complete, COMPLETED),
    Wish("({finish}|{tick} (off|out)) <task> [{from_list}]", plans.complete, COMPLETED),
    Wish("[{i}] [{now}] {done} [with] [:] <task>", plans.complete, COMPLETED),
    Wish("(tick|check|mark) <numbers>", plans.complete, COMPLETED),
    Wish("<subject> [{is}] [{now}] {done} [now|already]", plans.complete, COMPLETED),
    Wish("<subject> ({is} [{now}]) <past>", plans.complete, COMPLETED),
    Wish("{delete} <task> [{from_list}]", plans.delete, DELETED),
    Wish("take <task> (off|from) {our_list}", plans.delete, DELETED),
    Wish("(cancel|forget [about]|clear) <task> {noun}", plans.delete, DELETED),
    Wish("(cancel|forget [about]|clear) <numbers>", plans.delete, DELETED),
    Wish("({delete}|{finish})", plans.say, sentences.NO_SUBJECT),
    Wish("{i} [{now}] <own deed> [{now}]", plans.complete, COMPLETED),
    Wish("[{now}] <deed> [{now}]", plans.complete, COMPLETED),
    # What is left: an errand by itself, and wishes in so many words.
    Wish("{would_like} <new>", plans.add, ADDED),
    Wish("(i|we) [also|still|really] need [some|more] <duty>", plans.add, ADDED),
    Wish("<errand at time>", plans.add, NOTED),
    Wish("<errand>", plans.add, ADDED),
)
