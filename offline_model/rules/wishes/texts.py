"""Titles and descriptions of a task."""

from offline_model.rules import plans, sentences
from offline_model.rules.sentences import CHANGED, COMPLETED
from offline_model.rules.wishes.wish import Wish

_rename, _describe = plans.update("title"), plans.update("description")

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
    Wish("(change|set|move|update) [the] [status of] <task> (to|as) {done}", plans.complete, COMPLETED),
    Wish("(change|update|edit|set) [the] (title|name|text|wording) of <task> ({into}|as|:) <value>", _rename, CHANGED),
    Wish("{rename} [[the] (title|name|text) of] [task|number] <task> ({into}|as|:) <value>", _rename, CHANGED),
    Wish("{rename} [task] <numbers> [:] <errand>", _rename, CHANGED),
    Wish("(change|update|edit|turn) <task> {into} <value>", _rename, CHANGED),
    Wish("<task> (should (be (called|named)|read|say)) <value>", _rename, CHANGED),
    Wish("({rename}|change|edit|update|describe) ...", plans.say, sentences.NO_NEW_VALUE),
)
