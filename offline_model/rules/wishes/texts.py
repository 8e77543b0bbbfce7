"""Titles and descriptions of a task."""

from offline_model.rules import sentences
from offline_model.rules.plans.changing import update
from offline_model.rules.plans.finishing import complete
from offline_model.rules.plans.talking import say
from offline_model.rules.sentences import CHANGED, COMPLETED, RENAMED
from offline_model.rules.wishes.wish import Wish

_rename, _describe = update("title"), update("description", empty="none")

DESCRIPTIONS = (
    Wish("(clear|remove|delete|erase|empty) [the] {note} (of|for|on|from) <task>", _describe, CHANGED),
    Wish("describe <task> (as|:|with) <value>", _describe, CHANGED),
    Wish("{put} {note} (to|on|for) <task> (:|saying [that]|that says|that) <value>", _describe, CHANGED),
    Wish("{put} {note} [:] <value> (to|on) <task>", _describe, CHANGED),
    Wish("(add|put|write|attach) <value> ((to|as) the {note} (of|for)) <task>", _describe, CHANGED),
    Wish("(set|change|update|edit|make) [the] {note} (of|for|on) <task> (to|:|as) <value>", _describe, CHANGED),
    Wish("{note} (on|for|to|of) <task> : <value>", _describe, CHANGED),
)

TITLES = (
    Wish("(change|set|move|update) [the] [status of] <task> (to|as) {done}", complete, COMPLETED),
    Wish("(change|update|edit|set) [the] (title|name|text|wording) of <task> ({into}|as|:) <value>", _rename, RENAMED),
    Wish("{rename} [[the] (title|name|text) of] [task|number] <task> ({into}|as|:) <value>", _rename, RENAMED),
    Wish("{rename} [task] <numbers> [:] <errand>", _rename, RENAMED),
    Wish("(change|update|edit|turn) <task> {into} <value>", _rename, RENAMED),
    Wish("<task> (should (be (called|named)|read|say)) <value>", _rename, RENAMED),
    Wish("({rename}|change|edit|update|describe) ...", say, sentences.NO_NEW_VALUE),
)
