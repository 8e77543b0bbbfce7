"""What the last answer changed is taken back, all of it and nothing else."""

import copy

import pytest

from offline_model.rules import sentences
from tests.offline_model.fake_tools import Conversation, TaskList


def tasks() -> TaskList:
    return TaskList.of("buy milk", "call mum", "gym", done=[3])


@pytest.mark.parametrize("undo", ["undo", "undo that", "Take that back!", "undo the last change", "please revert it"])
@pytest.mark.parametrize(
    ("change", "ids", "answer"),
    [
        ("add eggs and soap", [4, 5], 'Took "eggs" and "soap" off the list again.'),
        ("the milk is done", [1], 'Took that back: "buy milk".'),
        ("rename milk to tea", [1], 'Changed "buy milk" back.'),
        ("delete milk and mum", [1, 2], 'Brought "buy milk" and "call mum" back.'),
        ("the gym is not done yet", [3], 'Changed "gym" back.'),
    ],
)
def test_the_last_change_is_taken_back(undo: str, change: str, ids: list[int], answer: str):
    conversation = Conversation(tasks())
    before = copy.deepcopy(conversation.tasks.tasks)
    conversation.say(change)
    conversation.say("what is left?")
    assert conversation.say(undo) == answer
    assert conversation.tasks.tasks == before
    also = {"also": ids[1:]} if ids[1:] else {}
    assert conversation.calls == [("update_task", {"task_id": ids[0], "undo": True, **also})]


def test_undo_again_takes_back_the_change_before():
    conversation = Conversation(tasks())
    conversation.say("delete milk")
    conversation.say("delete mum")
    assert conversation.say("undo") == 'Brought "call mum" back.'
    assert conversation.say("undo") == 'Brought "buy milk" back.'
    assert conversation.say("undo") == sentences.NOTHING_TO_UNDO


def test_a_change_that_failed_is_not_taken_back():
    conversation = Conversation(tasks())
    conversation.say("delete 99")
    assert conversation.say("undo") == sentences.NOTHING_TO_UNDO


@pytest.mark.parametrize("sentence", ["reopen gym", "the gym isn't done", "mark gym as not done", "uncheck the gym"])
def test_a_task_is_opened_again(sentence: str):
    conversation = Conversation(tasks())
    assert conversation.say(sentence) == 'Opened "gym" again.'
    assert conversation.calls[-1] == ("update_task", {"task_id": 3, "status": "pending"})
