"""New tasks."""

from offline_model.rules import plans, sentences
from offline_model.rules.sentences import ADDED, CANNOT, LISTED, NOTED
from offline_model.rules.wishes.wish import Wish

BULLETS = (Wish("<bullets>", plans.add, ADDED),)

REMINDERS = (
    Wish("{remember} <new at time>", plans.add, NOTED),
    Wish("{remember} <new>", plans.add, ADDED),
    Wish("remind me <when> (to|about|of) <new>", plans.add, NOTED),
)

CANNOT_REMIND = (
    Wish("(remind|wake|notify|alert) me [up] {when} ...", plans.say, CANNOT["reminders"]),
    Wish("(set|change|add) (a|an|the|my) reminder (for|at|on|in) ...", plans.say, CANNOT["reminders"]),
    Wish("undo <task>", plans.say, CANNOT["view of deleted tasks"]),
    Wish("(restore|undelete|bring back) <task>", plans.say, CANNOT["view of deleted tasks"]),
)
"""A row goes, or gets a plan, when tasks have what it is about."""

ADDING = (
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
)

ERRANDS = (
    Wish("{would_like} <new>", plans.add, ADDED),
    Wish("(i|we) [also|still|really] need [some|more] <duty>", plans.add, ADDED),
    Wish("<errand at time>", plans.add, NOTED),
    Wish("<errand>", plans.add, ADDED),
)
"""What is left: an errand by itself, and wishes in so many words."""
