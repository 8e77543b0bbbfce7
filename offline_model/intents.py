"""The table of intents: a template, the plan that carries it out, and the answer.

To add an intent, add a row anywhere. Templates are explained in `language/text.py`, the words for `<rule>` are RULES in
`language/words.py`, what may stand in a `{slot}` is in `language/slots.py`. `say` only answers; the answers of other
plans name the {tasks}. Of the rows that fit a text, the one that leaves the fewest words to slots is taken, above all
to slots of free text. Then add a sentence to the tests.
"""

from typing import NamedTuple

from offline_model import replies
from offline_model.language.slots import DEEDS, NAMING, SLOTS, TYPED
from offline_model.language.text import Template, Text
from offline_model.plans import Intent, Kind, Plan, changing, listing, scheduling
from offline_model.plans.adding import add, add_reminder
from offline_model.plans.changing import change, delete, say, set_done
from offline_model.plans.listing import find, show, show_first, show_group
from offline_model.replies import ADDED, CHANGED, COMPLETED, DELETED, NO_QUESTION, REOPENED


class IntentRow(NamedTuple):
    template: str
    plan: Plan
    answer: str = ""
    kind: Kind = "request"


R = IntentRow
_SHOW = "(<show>|<ask>|<am_i>) [me]"
_SHOW_MY = f"{_SHOW} [all] [is|are|'s] [my|the|our|of] [my|the]"
_SHOW_WHAT_IS = f"{_SHOW} [all] [is|are|'s] [my|the|our] [<noun>|anything|[do] i have] [<that_is>|is|are|'s]"
_date, _no_date, _no_repeat = change("due"), change(due="none"), change(repeat="none")
_complete, _reopen = set_done(True), set_done(False)
_no_reminder = change(remind="none")
_high, _priority = change(priority="high"), change("priority")
_title, _description, _no_description = change("title"), change("description"), change(description="none")
_important = show(" with high priority", status="pending", priority="high", order="due")
_overdue = show(" overdue", status="pending", due="overdue", order="due")
_dated = show(" with a date", status="pending", due="any", order="due")
_undated = show(" without a date", status="pending", due="none")

ROWS = (
    # Small talk, and replies to questions.
    R("(<hello> [there|all] [<how_are_you>]|<how_are_you>)", say, replies.GREETING, "aside"),
    R("(ok|okay|alright) [do it|please|then]", changing.agree, replies.WELCOME, "aside"),
    R("(<praise>|[<praise>] <thanks> [so much|very much|a lot])", say, replies.WELCOME, "aside"),
    R("(bye|goodbye|good (bye|night)|see you [later|tomorrow]|that's (all|it) [for now])", say, replies.BYE, "aside"),
    R("<help>", say, replies.HELP),
    R("(are|did|have|had|were) (you|u) {rest}", say, replies.ABOUT),
    R("<yes>", changing.agree, NO_QUESTION, "reply"),
    R("(no|nope|n) [don't|do not|thanks|thank you|keep them]", changing.disagree, NO_QUESTION, "reply"),
    R("(never mind|nevermind|stop|nothing|(cancel|forget [about]) [it|that])", say, replies.LEFT_ALONE, "aside"),
    R("([task|number] #|[the] <position> [one|task]|both|it|them)", say, replies.NO_VERB, "reply"),
    R("(i|we|actually|no|make|let's) {rest} instead", say, replies.NO_CORRECTION),
    R("{errand} instead", say, replies.NO_CORRECTION),
    R("{at_other_clock}", say, replies.OTHER_CLOCK),
    # New tasks.
    R("{bullets}", add, ADDED),
    R("<add> [me] {new}", add, ADDED),
    R("(<add>|make|new) [me] [<one>] [new|more] <noun> [(to|on) <our_list>] <called> {title}", add, ADDED),
    R("(put|stick|place|get) {new_on_list}", add, ADDED),
    R("(make|set up) [me] (the|some|<one>) [new] <noun> {new}", add, ADDED),
    R("(new <noun>|[new] (<noun>|to do) :) {new}", add, ADDED),
    R("add {rest}", say, replies.NO_TITLE),
    R("<remind> {new}", add_reminder, ADDED),
    R("<remind_me> {when} (to|about|of|that i (have|need) to) {new}", add_reminder, ADDED),
    R("remind me about {undated}", say, replies.NO_REMINDER),
    R("(remind|wake|notify|alert) me [up] <time> {rest}", say, replies.NO_REMINDER),
    R("(set|change|add) (a|an|the|my) (reminder (for|at|on|in)|alarm|timer) {rest}", say, replies.NO_REMINDER),
    R("(don't|do not) [let me] forget [the|my] {duty}", add, ADDED),
    R("(i|we) (must|should|gotta) [also|still] {duty}", add, ADDED),
    R("(i|we) [also|still|really] need [some|more] {duty}", add, ADDED),
    R("(i|we) (have|have got|'ve got) [a|an|my|the|our] {thing_at_time}", add, ADDED),
    R("(<would_like>|[<i> [also|still|really]] (need|have|got|ought) [also|still] to) {new}", add, ADDED),
    R("{errand}", add, ADDED),
    R("{new_repeating}", add, ADDED),
    R("{thing_at_time}", add, ADDED),
    R("schedule {task} (for|on|at|by) {date}", changing.add_missing(_date, "{task}"), CHANGED),
    R("make {task} (at|on|for|by) {date}", changing.add_missing(_date, "make {task}"), CHANGED),
    R("replace {task} with {value}", changing.add_missing(_title, "replace {task} with {value}"), CHANGED),
    # Schedules.
    R("{schedule}", scheduling.add_schedule),
    # Lists.
    R("(summarise|summarize|sum up) {past_work}", listing.show_last_week),
    R(f"{_SHOW} {{list_on_days}}", listing.show_on_days),
    R("[<show> [me]|what about] [my|all|(the|my) <list_noun> for] today ['s <things>]", listing.show_today),
    R("(<show>|<ask>|<am_i>) {list}", show()),
    R("{bare_list}", show()),
    R("[<show>|ask for] [me] [the|and] <more> [of (it|them|<our_list>)]", listing.show_rest, replies.NO_MORE),
    R("(<ask>|<show>) [is|are|'s|should|do] [i|we|the|my] [do|start|begin|task] [with] first", show_first),
    R("(where|what) (do|should|can|shall) (i|we) (start|begin) [with]", show_first),
    R("what ('s|is) [the|my] (most (important|urgent)|top|first) [<noun>|thing|priority] [now|today]", show_first),
    R("what ((should|shall|do) i do (next|now)|('s|is) (next|up next|up))", show_first),
    R(f"({_SHOW_WHAT_IS} overdue [<noun>|now|already|yet]|{_SHOW_MY} overdue <things>)", _overdue),
    R(f"{_SHOW_WHAT_IS} due [next|now|soon]", _dated),
    R(f"{_SHOW_WHAT_IS} on {{days}}", listing.show_on_days),
    R("[[and] (what|how) about] {days}", listing.show_on_days),
    R(f"({_SHOW_MY} <important> [<things>]|{_SHOW_WHAT_IS} <important>)", _important),
    R(f"{_SHOW_MY} <things> (without|with no|that have no) [a] (<due_date>|date)", _undated),
    R("(<show>|<ask>) [me] [is|did] [i|my|the|all] [just] (delete|deleted) [<things>]", show(status="deleted")),
    R("(<show>|<ask>) [me] [all] [my|the] [<things>] [with] [the] (label|tag) {label}", show_group),
    R("(<show>|<ask>) [me] [all] [my|the] <things> (labelled|labeled|tagged) [with|as] {label}", show_group),
    R("(my|all|the) {search} <list_noun>", show_group),
    R("<show_list> [all] [my|the|our] {search} <list_noun> [do i have|are there]", show_group),
    R("<ask_list> [left|still|open|there] [on] (my|the|our) {search} <list_noun>", show_group),
    R("(<show>|<ask>) [me] {group}", show_group),
    R("(sort|order) [my|the|all] [<things>] by {rest}", say, replies.NO_SORTING),
    # Single tasks.
    R("[<what>|give|tell|read] [me] [the|any|some] <about_task> (of|on|for|about) {search}", find),
    R("(<what>|what about|view|read|display) [me] {numbers}", find),
    R("when (is|are) [my|the|our] {search} [due]", find),
    R(f"{_SHOW} {{list}} <about> {{search}}", find),
    R("(show|find|search [for]|look for|view|display) [me] [<whatever> <about>] {search}", find),
    R("<am_i> {search_of_deed}", find),
    R("(do|carry out|work on|take care of) {numbers} [for me]", changing.carry_out),
    R("(let|have) (an|the) (agent|coder) (do|carry out|work on|take care of) {task}", changing.carry_out),
    # Dates and repeats.
    R("(set|change|update|add|give) [the|a] <due_date> (of|for|on|to) {task} (to|as|of|:) {date}", _date, CHANGED),
    R("(set|change|update) {task} (to|for) {date}", _date, CHANGED),
    R("(set|give) {task} (a|an) <due_date> (of|on) {date}", _date, CHANGED),
    R("(set|change|add|give) {task} (a|an) <due_date>", say, replies.NO_VALUE),
    R("(make|set) {task} due {date}", _date, CHANGED),
    R("<move> {task} [back] (to|until|till|for|by|on) {date}", _date, CHANGED),
    R("<move> {task} from {old_date} to {date}", _date, CHANGED),
    R("(move|bring|pull) {task} (forward [by]|ahead [by]|up by) {earlier}", _date, CHANGED),
    R("{subject} (is|'s|will be|comes|starts|begins) [now|actually] {new_date}", _date, CHANGED),
    R("[no] [sorry|wait] (i (meant|mean)|make (it|that)|rather|not that) {new_date}", changing.correct_last, CHANGED),
    R("(no|sorry|wait) {new_date}", changing.correct_last, CHANGED),
    R("(clear|remove|delete|take) [the] (<due_date>|date|time) (of|from|for|off) {task}", _no_date, CHANGED),
    R("{subject} (has|needs) no (<due_date>|date|time) [anymore|any more]", _no_date, CHANGED),
    R("repeat {task} (every|each) {period}", _date, CHANGED),
    R("(make|set) {task} repeat (every|each) {period}", _date, CHANGED),
    R(
        "(<do_not>|stop|end) (repeat|repeating|the (repeat|repetition) of) {task} [anymore|any more]",
        _no_repeat,
        CHANGED,
    ),
    R("{task} (should not|shouldn't|must not|needn't) repeat [anymore|any more]", _no_repeat, CHANGED),
    R("(clear|remove|delete) [the] repeat (of|from|for) {task}", _no_repeat, CHANGED),
    R("skip [[the] next] {task} [<once>]", change(due="next"), CHANGED),
    # Reminders.
    R("remind me {reminder} before [the|my|our] {task} [starts|begins|is due]", changing.remind, CHANGED),
    R("(set|add|create) [a|the] reminder [for] {reminder} before [the|my|our] {task}", changing.remind, CHANGED),
    R("[set|change|move] [the|my] reminder (of|for) {task} to {reminder} before", changing.remind, CHANGED),
    R("(no|without) (reminder|reminders) (for|of|about) [the|my|our] {task}", _no_reminder, CHANGED),
    R("(<do_not>|stop) (remind|reminding) me (of|about) [the|my|our] {task} [anymore|any more]", _no_reminder, CHANGED),
    R("(clear|remove|delete|cancel) [the|my] (reminder|reminders) (of|for|from) {task}", _no_reminder, CHANGED),
    # Priorities and labels.
    R("(make|give|mark|set) {task} [as|to] [a] {priority} priority", _priority, CHANGED),
    R("(set|change) [the] priority of {task} (to|as) {priority}", _priority, CHANGED),
    R("(prioritise|prioritize) {task}", _high, CHANGED),
    R("(make|mark|set|flag) {task} [as] (important|urgent)", _high, CHANGED),
    R("{subject} (is|are) [now|very|really] (important|urgent)", _high, CHANGED),
    R("(clear|remove|delete) [the] priority (of|from|for) {task}", change(priority="none"), CHANGED),
    R("(set|change|add|give) [[task|number] #|it] [a|an|the|my] (<due_date>|priority) {rest}", say, replies.NO_VALUE),
    R("(tag|label) {task} (with|as) {value}", change("add_labels"), CHANGED),
    R("(add|put) [the] (tag|label) {value} (to|on) {task}", change("add_labels"), CHANGED),
    R("(remove|delete|take [off]) [the] (tag|label) {value} (from|off|of) {task}", change("remove_labels"), CHANGED),
    # Titles and descriptions.
    R("<rename> [[the] (title|name|text) of] [task|number] {task} (<into>|as|:) {value}", _title, CHANGED),
    R("<rename> [task] {number} [:] {errand}", _title, CHANGED),
    R("(change|update|edit|set) [the] (title|name|text|wording) of {task} (<into>|as|:) {value}", _title, CHANGED),
    R("(change|update|edit|turn) {task} <into> {value}", _title, CHANGED),
    R("{task} should (be (called|named)|read|say) {value}", _title, CHANGED),
    R("(<move>|<rename>|change|edit|update|describe|tag|label) {rest}", say, replies.NO_VALUE),
    R("describe {task} (as|:|with) {value}", _description, CHANGED),
    R("<put> <note> [:] {value} (to|on) {task}", _description, CHANGED),
    R("(add|put|write|attach) {value} (to|as) the <note> (of|for) {task}", _description, CHANGED),
    R("<note> (on|for|to|of) {task} : {value}", _description, CHANGED),
    R("<put> <note> (to|on|for) {task} (:|saying [that]|that says|that) {value}", _description, CHANGED),
    R("(set|change|update|edit|make) [the] <note> (of|for|on) {task} (to|:|as) {value}", _description, CHANGED),
    R("(clear|remove|delete|erase|empty) [the] <note> (of|for|on|from) {task}", _no_description, CHANGED),
    # What is done, and what is not.
    R("(mark|set|tick|check|cross|flag|put) [off|out] {task} [as|to|is] [being] <done>", _complete, COMPLETED),
    R("(change|set|move|update) [the] [status of] {task} (to|as) <done>", _complete, COMPLETED),
    R("(mark|set) {task} as {past}", _complete, COMPLETED),
    R("<tick> {task} (out|off [<our_list>])", _complete, COMPLETED),
    R("(mark|tick|check|cross) [off] {group}", _complete, COMPLETED),
    R("(mark|tick|check) {numbers}", _complete, COMPLETED),
    R("(<finish>|<tick> (off|out)) {task} [<from_list>]", _complete, COMPLETED),
    R("[<i>] [<now>] <done> [with] [:] {task} [<done_when>]", _complete, COMPLETED),
    R("{subject} [<is>] [<now>] <done> [now|already] [<done_when>]", _complete, COMPLETED),
    R("{subject} <is> [<now>] {past}", _complete, COMPLETED),
    R("<i> [<now>] {own_deed} [<now>] [<done_when>]", _complete, COMPLETED),
    R("[<now>] {deed} [<now>] [<done_when>]", _complete, COMPLETED),
    R("(reopen|re-open|reactivate|uncomplete|untick|uncheck) {task}", _reopen, REOPENED),
    R("(mark|set) {task} [as] (not <done>|undone|incomplete|pending|open)", _reopen, REOPENED),
    R("{task} (is not|isn't|are not|aren't|was not|wasn't) [really|actually] <done> [yet]", _reopen, REOPENED),
    R("(i|we) (haven't|have not|didn't|did not) [really|actually] {deed_not_done} [yet]", _reopen, REOPENED),
    # What is deleted, and what comes back.
    R("<delete> {task} [<from_list>]", delete, DELETED),
    R("take {task} (off|from) <our_list>", delete, DELETED),
    R("(<delete>|<clear>) {group}", delete, DELETED),
    R("(<delete>|<clear>) [all|everything|all of] [my|the] [i have|<that_is>] <done> [<things>]", changing.delete_done),
    R("cancel {rest}", say, replies.CANCEL),
    R("{subject} <is> (cancelled|canceled)", say, replies.CANCEL),
    R("(<delete>|<finish>)", say, replies.NO_SUBJECT),
    R("((undo|revert) [<last_change>]|(take|bring) <last_change> back|bring back <last_change>)", changing.undo),
    R("(undo|revert) {task}", changing.undo_tasks("pending", "completed", "deleted"), replies.REVERTED),
    R("<restore> [the] [deleted] {task} [<from_trash>]", changing.undo_tasks("deleted"), replies.RESTORED),
    R("(<restore>|undo) what (you|i) [have] [just|last] deleted", changing.restore_last, replies.RESTORED),
    R("(undo|revert) (the|my) [last] (deletion|delete|deleting)", changing.restore_last, replies.RESTORED),
)


_TEMPLATES = [(Template(row.template), row) for row in ROWS]


def find_intent(text: Text) -> Intent | None:
    found = (intent for template, row in _TEMPLATES if (intent := _create_intent(template, row, text)))
    return min(found, key=lambda intent: intent.slot_words, default=None)


def _create_intent(template: Template, row: IntentRow, text: Text) -> Intent | None:
    readings = [
        reading
        for reading in template.readings(text)
        if all(slot == "rest" or (part and SLOTS[slot](part)) for slot, part in reading.items())
    ]
    if not readings:
        return None
    naming = [slot for slot in NAMING if slot in readings[0]]
    phrases = [" ".join(reading[slot].unquote() for slot in naming) for reading in readings if naming]
    sizes = {slot: len(part.keys) for slot, part in readings[0].items()}
    slot_words = sum(size for slot, size in sizes.items() if slot not in TYPED), sum(sizes.values())
    return Intent(row.plan, row.answer, readings, phrases, row.kind, not DEEDS.isdisjoint(sizes), slot_words)
