"""Common wordings: nothing is overwritten, denied or added that was not asked for."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from offline_model import rules
from offline_model.protocol import Message
from offline_model.rules import sentences, telling
from tests.offline_model.fake_tools import TOOLS, Conversation, TaskList, ToolError


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
    assert conversation.say(question).endswith("- pay rent (due Friday) (open)")


@pytest.mark.parametrize("question", ["description of 1?", "tell me more about 1", "what's 1?", "details of 1"])
def test_one_task_is_shown_with_all_of_its_description(question: str):
    task_list = tasks()
    task_list.update_task(1, description="two litres " * 30 + "end")
    answer = Conversation(task_list).say(question)
    assert "- buy milk (done): two litres" in answer
    assert answer.endswith("end")


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        ("complete all my tasks", sentences.NO_BULK),
        ("finish everything", sentences.NO_BULK),
        ("I bought them all", sentences.NO_BULK),
        ("how do I edit a task?", sentences.HELP),
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
    assert Conversation(tasks()).say("what did I do today?") == "You completed 1 task today (Mon 2026-11-23)."


def test_a_task_that_was_done_already_is_named():
    assert Conversation(tasks()).say("mark milk and rent as done") == (
        'Already done: "buy milk".\n\nCompleted "pay rent (due Friday)".'
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
        ("add dinner with Tom and Ann on Friday", ["dinner with Tom and Ann"]),
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
        ("remind me every Monday to water the plants", ["water the plants"]),
        ("remind me at 5pm to call mum", ["call mum"]),
        ("remind me that I need to call mum", ["call mum"]),
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
    assert (sentences.NOTHING_RINGS in answer) == sentence.startswith(("remind me every", "remind me at"))


def test_the_answer_to_what_shall_i_add_is_added():
    conversation = Conversation(TaskList())
    conversation.say("add")
    assert conversation.say("Buy eggs") == 'Added "Buy eggs".'


def test_a_conversation_is_told_once_how_to_get_a_real_model():
    conversation = Conversation(TaskList())
    assert sentences.REAL_MODEL in conversation.say("banana")
    assert conversation.say("banana") == (
        'I did not understand that. If "banana" is a task, say "add banana". Say "help" for what I know.'
    )
    assert sentences.REAL_MODEL not in conversation.say("remind me tomorrow")
    assert sentences.REAL_MODEL in conversation.say("help")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            "There is no task 999: call list_tasks to see the numbers of your tasks.",
            'There is no task 999: say "show all".',
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
    assert telling.in_words(error) == told


def test_more_tasks_than_were_read_are_told():
    conversation = Conversation(TaskList.of(*(f"job {number}" for number in range(8)), page=1))
    assert conversation.say("what is left?") == 'The first 5 of 8 open tasks; say "more" for the rest.'


def test_tasks_are_named_in_the_order_of_their_numbers():
    def made(id: int) -> dict[str, object]:
        return {"id": f"call_{id}", "function": {"name": "complete_task", "arguments": json.dumps({"task_id": id})}}

    messages = [
        Message(role="user", content="complete 77 and 78"),
        Message.model_validate({"role": "assistant", "tool_calls": [made(78), made(77)]}),
        *(
            Message(role="tool", tool_call_id=f"call_{id}", content=json.dumps({"id": id, "title": f"t{id}"}))
            for id in (78, 77)
        ),
    ]
    assert rules.answer(messages, TOOLS).text == 'Completed "t77" and "t78".'


def added(title: str, *also: str, **more: Any) -> list[tuple[str, dict[str, Any]]]:
    return [("add_task", {"title": title, **({"also": list(also)} if also else {}), **more})]


@pytest.mark.parametrize(
    ("sentence", "calls"),
    [
        ("[work] call Bob [urgent]", added("[work] call Bob [urgent]")),
        ("buy flowers", added("buy flowers")),
        ("Call Dr. Smith!", added("Call Dr. Smith")),
        ("pick up the kids and cook dinner", added("pick up the kids", "cook dinner")),
        ("add milk, eggs and bread to shopping", added("milk", "eggs", "bread", labels=["shopping"])),
        ("put milk on the shopping list", added("milk", labels=["shopping"])),
        ("add bring the laptop to work", added("bring the laptop to work")),
        ("add meet Ann at 5 p.m.", added("meet Ann", due="17:00")),
        ("add \U0001f389 and R&D", added("\U0001f389", "R&D")),
        ("write a poem", []),
        ("buy flowers?", []),
        ("tell me a joke", []),
        ("how are you?", []),
        ("I love you", []),
        ("should I buy milk?", []),
        ("help me plan a trip", []),
        ("what is the capital of France?", []),
        ("explain recursion", []),
        ("sort my tasks by date", []),
        ("hold on", []),
        ("keep going", []),
        ("fix it", []),
    ],
)
def test_an_errand_is_added_and_chat_is_not(sentence: str, calls: list[tuple[str, dict[str, Any]]]):
    conversation = Conversation(TaskList())
    conversation.say(sentence)
    assert conversation.calls == calls


def test_the_name_of_another_list_is_a_label():
    conversation = Conversation(TaskList.of("gym"))
    assert conversation.say("add milk and eggs to shopping") == 'Added 2 tasks with the label "shopping".'
    assert conversation.say("show my shopping list") == '2 open tasks with the label "shopping".'


@pytest.mark.parametrize(
    "sentence", ["show my work tasks", "find work", "any tasks about work?", "show all work items"]
)
def test_a_word_of_a_title_narrows_the_list(sentence: str):
    conversation = Conversation(TaskList.of("work report", "gym", "tidy the garden"))
    assert conversation.say(sentence) == '1 task for "work":\n\n- work report (open)'


@pytest.mark.parametrize("more", ["show the rest", "more", "show more please", "the next page", "ask for the rest"])
def test_a_long_list_goes_on_where_it_stopped(more: str):
    conversation = Conversation(TaskList.of(*(f"job {number}" for number in range(450))))
    assert conversation.say("show my tasks") == 'The first 200 of 450 open tasks; say "more" for the rest.'
    assert conversation.say(more) == 'The next 200 open tasks; say "more" for the rest.'
    assert [arguments.get("cursor") for _, arguments in conversation.calls] == ["200", "300"]
    assert conversation.say(more) == "The next 50 open tasks."
    assert conversation.say(more) == sentences.NO_MORE


def test_tasks_that_could_not_be_added_are_named():
    class Picky(TaskList):
        def add_task(self, title: str, also: Sequence[str] = (), **details: Any) -> dict[str, Any]:
            raise ToolError("title must be another one.")

    assert Conversation(Picky()).say("add milk, bread and eggs") == (
        'I could not add "milk", "bread" and "eggs": Title must be another one.'
    )


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        ("snooze the gym", sentences.NO_NEW_DATE),
        ("move the gym to the moon", sentences.NO_NEW_DATE),
        ("tag gym", sentences.NO_LABEL),
        ("undo", sentences.NOTHING_TO_UNDO),
        ("delete all tasks", sentences.NO_BULK),
    ],
)
def test_what_it_cannot_do_is_said_and_nothing_is_done(sentence: str, answer: str):
    conversation = Conversation(tasks())
    assert conversation.say(sentence) == answer
    assert conversation.calls == []


def test_no_answer_names_a_number_unless_one_must_be_chosen():
    conversation = Conversation(TaskList.of("buy milk", "call mum"))
    for sentence in (
        "add soap",
        "find milk",
        "milk is done",
        "rename mum to dad",
        "describe dad as kind",
        "delete dad",
    ):
        assert not any(letter.isdigit() for letter in conversation.say(sentence).removeprefix("1 task"))
