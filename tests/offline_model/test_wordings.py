"""Common wordings: nothing is overwritten, denied or added that was not asked for."""

import json

import pytest

from offline_model import rules
from offline_model.protocol import Message
from offline_model.rules import sentences
from tests.offline_model.fake_tools import TOOLS, Conversation, TaskList


def tasks() -> TaskList:
    return TaskList.of("buy milk", "call mum", "pay rent (due Friday)", "write report", "a", "b", "c", "gym", done=[1])


@pytest.mark.parametrize(
    "sentence", ["rename 2 to", 'rename 1 to ""', "rename 1 to ' '", "rename 2 48", "update 2 to", "rename mum to"]
)
def test_an_unfinished_rename_asks_for_the_title(sentence: str):
    conversation = Conversation(tasks())
    assert conversation.say(sentence) == sentences.NO_NEW_VALUE
    assert conversation.calls == []


@pytest.mark.parametrize(
    "question", ["did I already pay rent?", "have I paid the rent yet?", "is the rent still open?", "what is task 3"]
)
def test_a_question_about_a_task_is_answered_with_its_state(question: str):
    conversation = Conversation(tasks())
    assert conversation.say(question).endswith("- **3** pay rent (due Friday) (open)")


@pytest.mark.parametrize("question", ["description of 1?", "tell me more about 1", "what's 1?", "details of 1"])
def test_one_task_is_shown_with_all_of_its_description(question: str):
    task_list = tasks()
    task_list.update_task(1, description="two litres " * 30 + "end")
    answer = Conversation(task_list).say(question)
    assert "**1** buy milk (done): two litres" in answer
    assert answer.endswith("end")


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        ("complete all my tasks", sentences.NO_BULK),
        ("finish everything", sentences.NO_BULK),
        ("did you delete 17?", sentences.NO_MEMORY),
        ("are you human?", sentences.I_AM),
        ("change it to buy oat milk", sentences.NO_SUBJECT),
        ("done with it", sentences.NO_SUBJECT),
        ("I did it", sentences.NO_SUBJECT),
        ("delete both", sentences.NO_SUBJECT),
        ("delete the last task", sentences.NO_SUBJECT),
        ("both", sentences.NO_VERB),
        ("I want to buy oat milk instead", sentences.NO_NEW_VALUE),
        ("I should have called mum", f"I did not understand that. {sentences.ABOUT}"),
        ("why not?", f"I did not understand that. {sentences.ABOUT}"),
        ("milk is not good", f"I did not understand that. {sentences.ABOUT}"),
        ("Füge Milch hinzu", "I know English only."),
        ("ajoute du lait", "I know English only."),
        ("买牛奶", "I know English only."),
        ("x" * 5001, sentences.TOO_LONG.format(limit=5000)),
    ],
)
def test_what_is_answered_plainly(sentence: str, answer: str):
    conversation = Conversation(tasks())
    assert conversation.say(sentence) == answer
    assert conversation.calls == []


def test_what_was_done_is_what_is_completed():
    assert Conversation(tasks()).say("what did I do today?") == "1 completed task."


def test_a_number_that_was_done_already_is_named():
    assert Conversation(tasks()).say("mark 1 and 3 as done") == (
        'Already done: "buy milk" (number 1).\n\nCompleted "pay rent (due Friday)" (number 3).'
    )


@pytest.mark.parametrize("numbers", ["5 6 and 7", "5-7", "5 to 7", "tasks 5 through 7", "5, 6 7"])
def test_numbers_in_a_row(numbers: str):
    conversation = Conversation(tasks())
    conversation.say(f"delete {numbers}")
    assert set(conversation.tasks.titles) == {1, 2, 3, 4, 8}


def test_a_range_of_many_numbers_is_too_much():
    assert Conversation(tasks()).say("delete 1-999999999") == sentences.TOO_MANY.format(limit=25)


@pytest.mark.parametrize(
    ("sentence", "titles"),
    [
        ("add dinner with Tom and Ann on Friday", ["dinner with Tom and Ann on Friday"]),
        ("add peanut butter and jelly sandwich ingredients", ["peanut butter and jelly sandwich ingredients"]),
        ("add milk and bread", ["milk", "bread"]),
        ("add milk, bread and eggs", ["milk", "bread", "eggs"]),
        ("add milk, call mum, and pay rent", ["milk", "call mum", "pay rent"]),
        ("put call mum back on my list", ["call mum"]),
        ("add 1. milk 2. eggs", ["milk", "eggs"]),
        ("- apples\n- pears", ["apples", "pears"]),
        ("buy milk, eggs, and bread please", ["buy milk", "buy eggs", "buy bread"]),
        ("\n".join(f"add job {number}" for number in range(10)), [f"job {number}" for number in range(10)]),
        ("add task 0 and task 1", ["task 0", "task 1"]),
        ("remind me every Monday to water the plants", ["water the plants every Monday"]),
        ("remind me at 5pm to call mum", ["call mum at 5pm"]),
        ("I should call dad", ["call dad"]),
        ("I need milk", ["milk"]),
        ("don't forget the milk", ["milk"]),
        ("plz add x thx", ["x"]),
    ],
)
def test_additions(sentence: str, titles: list[str]):
    conversation = Conversation(TaskList())
    answer = conversation.say(sentence)
    assert list(conversation.tasks.titles.values()) == titles
    assert (sentences.TIME_IS_TEXT in answer) == sentence.startswith("remind me")


def test_the_answer_to_what_shall_i_add_is_added():
    conversation = Conversation(TaskList())
    conversation.say("add")
    assert conversation.say("Buy eggs") == 'Added "Buy eggs" (number 1).'


def test_a_conversation_is_told_once_how_to_get_a_real_model():
    conversation = Conversation(TaskList())
    assert sentences.REAL_MODEL in conversation.say("banana")
    assert conversation.say("banana") == (
        'I did not understand that. If "banana" is a task, say "add banana". Say "help" for what I know.'
    )
    assert sentences.REAL_MODEL not in conversation.say("set a due date for milk")
    assert sentences.REAL_MODEL in conversation.say("help")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            "There is no task 999: call list_tasks to see the numbers of your tasks.",
            'There is no task 999: say "show all" to see the numbers of your tasks.',
        ),
        (
            "task_id must be the whole number of a task, as list_tasks shows it.",
            "What I took for a number must be the whole number of a task.",
        ),
        ("title must be 1 to 200 characters on one line.", "Title must be 1 to 200 characters on one line."),
        ("cursor is none that list_tasks has returned.", "It was refused."),
    ],
)
def test_the_errors_of_tools_are_told_in_words_of_a_person(error: str, told: str):
    assert sentences.in_words(error) == told


def test_more_tasks_than_were_read_are_told():
    conversation = Conversation(TaskList.of(*(f"job {number}" for number in range(8)), page=1))
    assert conversation.say("what is left?") == "The first 5 open tasks; there are more."


def test_added_tasks_are_told_in_the_order_of_their_numbers():
    def made(id: int) -> dict[str, object]:
        return {"id": f"call_{id}", "function": {"name": "add_task"}}

    messages = [
        Message(role="user", content="add a and b"),
        Message.model_validate({"role": "assistant", "tool_calls": [made(78), made(77)]}),
        *(
            Message(role="tool", tool_call_id=f"call_{id}", content=json.dumps({"id": id, "title": "t"}))
            for id in (78, 77)
        ),
    ]
    assert rules.answer(messages, TOOLS).text == "Added 2 tasks:\n\n- **77** t\n- **78** t"
