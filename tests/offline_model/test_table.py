"""The table of wishes is what decides: a row more, or a row less, is all that a change of it takes."""

import pytest

from offline_model.rules import sentences
from offline_model.rules.plans.changing import update
from offline_model.rules.plans.talking import say
from offline_model.rules.reading import Table
from offline_model.rules.wishes import WISHES
from offline_model.rules.wishes.wish import Wish
from tests.offline_model.fake_tools import Conversation, TaskList


@pytest.mark.parametrize(
    ("row", "sentence", "change", "answer"),
    [
        (
            Wish("[the] colour of <task> (is|:) <value>", update("colour"), "{tasks}: as you say."),
            "the colour of the milk is red",
            ("update_task", {"task_id": 1, "colour": "red"}),
            '"buy milk": as you say.',
        ),
        (
            Wish("(assign|entrust) <task> (with|to) <value>", update("owner"), sentences.CHANGED),
            "assign buy milk to Ann",
            ("update_task", {"task_id": 1, "owner": "Ann"}),
            'Changed "buy milk".',
        ),
        (Wish("sing [me] [a song]", say, "La la."), "Please sing me a song!", None, "La la."),
    ],
)
def test_a_row_is_all_that_a_new_wish_takes(
    row: Wish, sentence: str, change: tuple[str, dict[str, object]] | None, answer: str
):
    before = Conversation(TaskList.of("buy milk", "call mum"))
    assert before.say(sentence) != answer
    assert before.calls == []
    conversation = Conversation(before.tasks, Table((row, *WISHES)))
    assert conversation.say(sentence) == answer
    assert conversation.calls[-1:] == ([change] if change else [])


@pytest.mark.parametrize("topic", sentences.CANNOT)
def test_what_cannot_be_done_is_said_by_rows_and_by_the_help(topic: str):
    assert topic in sentences.HELP
    refusing = [wish for wish in WISHES if wish.answer == sentences.CANNOT[topic]]
    assert refusing
    assert all(wish.plan is say for wish in refusing)


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("rename <task> <value>", "one gap, or two"),
        ("move <task> (to|on) <value> please", "one gap, or two"),
        ("do <tsak>", "no such gaps: {'tsak'}"),
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused_at_once(pattern: str, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        Table((Wish(pattern, say, "So."),))
