"""What is done, is not done yet, goes, or is taken back."""

from offline_model.rules import sentences
from offline_model.rules.plans import undoing
from offline_model.rules.plans.finishing import complete, complete_group, delete, delete_done, delete_group, reopen
from offline_model.rules.plans.talking import say
from offline_model.rules.sentences import BROUGHT_BACK, COMPLETED, DELETED, REOPENED, TAKEN_BACK
from offline_model.rules.wishes.wish import Wish

_DONE_ONES = "[all|everything|all of] [my|the] [i have|{that_is}] {done} [{things}]"

UNDO = (
    Wish("((undo|revert) [{last_change}]|(take|bring) {last_change} back|bring back {last_change})", undoing.undo),
    Wish(
        "(bring back|restore|undelete|undo) what (you|i) [have] [just|last] deleted",
        undoing.bring_back_last,
        BROUGHT_BACK,
    ),
    Wish("(undo|revert) (the|my) [last] (deletion|delete|deleting)", undoing.bring_back_last, BROUGHT_BACK),
    Wish(
        "(restore|undelete|recover|bring back) [the] [deleted] <task> [{from_trash}]", undoing.bring_back, BROUGHT_BACK
    ),
    Wish("(undo|revert) <task>", undoing.undo_task, TAKEN_BACK),
)

ALL_DONE = (
    Wish(f"({{delete}}|clear [out|away|up]|clean up) {_DONE_ONES}", delete_done),
    Wish("({delete}|clear [out|away]|clean up) <group>", delete_group),
)

REOPENING = (
    Wish("(reopen|re-open|reactivate|uncomplete|untick|uncheck) <task>", reopen, REOPENED),
    Wish("(mark|set) <task> [as] (not {done}|undone|incomplete|pending|open)", reopen, REOPENED),
    Wish("<task> (is not|isn't|are not|aren't|was not|wasn't) [really|actually] {done} [yet]", reopen, REOPENED),
    Wish("(i|we) (haven't|have not|didn't|did not) [really|actually] <deed not done> [yet]", reopen, REOPENED),
    Wish("clear [my|the] ([to-do|task] list|everything|all|tasks|completed|done) ...", say, sentences.NO_BULK),
)

_GROUPS = (
    Wish("(mark|set|tick|check|cross) [off] <group> [as] [{done}]", complete_group, COMPLETED),
    Wish("{finish} <group>", complete_group, COMPLETED),
    Wish("[{i}] [{now}] ({done} [with]|did|got|bought|paid) <group>", complete_group, COMPLETED),
    Wish(
        "[{i}] [{now}] ({done} [with]|did|got|bought|paid|{finish}) all [of] [my|the|our] <label> [{things}]",
        complete_group,
        COMPLETED,
    ),
    Wish("all [of] [my|the|our] <label> (is|are) [now] {done} [now]", complete_group, COMPLETED),
    Wish("<group> (is|are) [now] {done} [now]", complete_group, COMPLETED),
)
FINISHING = (
    *_GROUPS,
    Wish("(mark|set|tick|check|cross|flag|put) [off|out] <task> [as|to|is] [being] {done}", complete, COMPLETED),
    Wish("{tick} <task> (off|out) [{from_list}]", complete, COMPLETED),
    Wish("({finish}|{tick} (off|out)) <task> [{from_list}]", complete, COMPLETED),
    Wish("[{i}] [{now}] {done} [with] [:] <task> [{done_when}]", complete, COMPLETED),
    Wish("(mark|set) <task> as <past>", complete, COMPLETED),
    Wish("(tick|check|mark) <numbers>", complete, COMPLETED),
    Wish("<subject> [{is}] [{now}] {done} [now|already] [{done_when}]", complete, COMPLETED),
    Wish("<subject> {is} (cancelled|canceled)", say, sentences.CANCEL),
    Wish("<subject> ({is} [{now}]) <past>", complete, COMPLETED),
    Wish("{delete} <task> [{from_list}]", delete, DELETED),
    Wish("take <task> (off|from) {our_list}", delete, DELETED),
    Wish("(cancel|forget [about]|clear) <task> {noun}", delete, DELETED),
    Wish("(cancel|forget [about]|clear) <numbers>", delete, DELETED),
    Wish("cancel ...", say, sentences.CANCEL),
    Wish("({delete}|{finish})", say, sentences.NO_SUBJECT),
    Wish("{i} [{now}] <own deed> [{now}] [{done_when}]", complete, COMPLETED),
    Wish("[{now}] <deed> [{now}] [{done_when}]", complete, COMPLETED),
)
