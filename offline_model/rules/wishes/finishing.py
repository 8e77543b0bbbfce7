"""What is done, is not done yet, goes, or is taken back."""

from offline_model.rules import plans, sentences
from offline_model.rules.sentences import COMPLETED, DELETED, REOPENED
from offline_model.rules.undo import undo
from offline_model.rules.wishes.wish import Wish

_reopen = plans.update("status", empty="pending")

UNDO = (Wish("((undo|revert) [{last_change}]|take {last_change} back|bring back {last_change})", undo),)

ALL_DONE = (
    Wish("({delete}|clear) [all] [of] [my|the] {done} [tasks|items|ones]", plans.delete_done, DELETED),
    Wish("really ({delete}|clear) [all] [of] [my|the] {done} [tasks|items|ones]", plans.delete_done),
)

REOPENING = (
    Wish("(reopen|re-open|reactivate|uncomplete|untick|uncheck) <task>", _reopen, REOPENED),
    Wish("(mark|set) <task> [as] (not {done}|undone|incomplete|pending|open)", _reopen, REOPENED),
    Wish("<task> (is not|isn't|are not|aren't) {done} [yet]", _reopen, REOPENED),
    Wish("clear [my|the] ([to-do|task] list|everything|all|tasks|completed|done) ...", plans.say, sentences.NO_BULK),
)

FINISHING = (
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
)
