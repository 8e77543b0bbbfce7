"""New tasks."""

from offline_model.rules import sentences
from offline_model.rules.plans.adding import add
from offline_model.rules.plans.changing import replace, schedule
from offline_model.rules.plans.talking import say
from offline_model.rules.sentences import ADDED, CANNOT, CHANGED, LABELLED, REMINDED, RENAMED
from offline_model.rules.wishes.wish import Wish

OTHER_CLOCK = (Wish("<at other clock>", say, sentences.OTHER_CLOCK),)

BULLETS = (Wish("<bullets>", add, ADDED),)

REMINDERS = (
    Wish("remind me about <undated>", say, CANNOT["reminders"]),
    Wish("schedule <task> (for|on|at|by) <date>", schedule, CHANGED),
    Wish("replace <task> with <value>", replace, RENAMED),
    Wish("{remind} <new at time>", add, REMINDED),
    Wish("{remind} <new>", add, ADDED),
    Wish("(note to self|memo) [:] <new>", add, ADDED),
    Wish("{remember} <new at time>", add, ADDED),
    Wish("{remember} <new>", add, ADDED),
    Wish("remind me <when> (to|about|of|that i (have|need) to) <new>", add, REMINDED),
    Wish("(set|add|create|make) (a|an|the|my) reminder [for] <when> (to|about) <new>", add, REMINDED),
    Wish("(set|add|create|make) (a|an|the|my) reminder (to|about) <new>", add, REMINDED),
    Wish("<new repeating>", add, ADDED),
)

CANNOT_REMIND = (
    Wish("(remind|wake|notify|alert) me [up] {when} ...", say, CANNOT["reminders"]),
    Wish("(set|change|add) (a|an|the|my) reminder (for|at|on|in) ...", say, CANNOT["reminders"]),
)
"""A row goes, or gets a plan, when tasks have what it is about."""

ADDING = (
    Wish("({add}|make|new) [me] [{one}] [new|more] {noun} [(to|on) {our_list}] {called} <title>", add, ADDED),
    Wish("({add} [me]|put|stick|place|get) <new on other list>", add, LABELLED),
    Wish("[{add} [me]] <dated errand>", add, ADDED),
    Wish("{add} [me] <new>", add, ADDED),
    Wish("(make|set up) [me] (the|some|{one}) [new] {noun} <new>", add, ADDED),
    Wish("(new {noun}|[new] ({noun}|to do) :) <new>", add, ADDED),
    Wish("add", say, sentences.NO_TITLE),
    Wish("(put|stick|place|get) <new on list>", add, ADDED),
    Wish("(don't|do not) [let me] forget [the|my] <duty>", add, ADDED),
    Wish("(i|we) (must|should|gotta) [also|still] <duty>", add, ADDED),
)

ERRANDS = (
    Wish("{would_like} <new>", add, ADDED),
    Wish("(i|we) [also|still|really] need [some|more] <duty>", add, ADDED),
    Wish("<errand at time>", add, ADDED),
    Wish("(i|we) (have|have got|'ve got) [a|an|my|the|our] <thing at time>", add, ADDED),
    Wish("<errand>", add, ADDED),
    Wish("<thing at time>", add, ADDED),
)
"""What is left: an errand by itself, and wishes in so many words."""
