"""What a person can want: the table of wishes, tried from its top.

To add one, add a row to the room it belongs to: a pattern (its language is told in `pattern`, the words for {…} are
NAMES in `vocabulary`, what may stand in a gap <…> is told by GAPS), a plan (a function of `plans`; `say` needs no
tools), and an answer, in which {tasks} are named and {count} counted. A row stands above those that would take its
sentences for something else. Then add a sentence to the tests.
"""

from offline_model.rules.wishes import adding, delegating, fields, finishing, showing, talk, texts

WISHES = (
    *adding.BULLETS,
    *talk.SMALL_TALK,
    *talk.REPLIES,
    *adding.OTHER_CLOCK,
    *adding.REMINDERS,
    *finishing.UNDO,
    *showing.LABELS,
    *showing.DUE,
    *delegating.DELEGATING,
    *fields.FIELDS,
    *finishing.ALL_DONE,
    *adding.CANNOT_REMIND,
    *finishing.REOPENING,
    *texts.DESCRIPTIONS,
    *showing.ONE,
    *adding.ADDING,
    *texts.TITLES,
    *showing.LISTS,
    *finishing.FINISHING,
    *adding.ERRANDS,
)
