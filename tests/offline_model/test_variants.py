"""Each of the thirty sentences in other words, and with other case and signs: the calls are the same.

It is Monday, 2026-11-23, 10:00. What is said of tasks is said of those of `tasks`.
"""

from typing import Any

import pytest

from tests.offline_model.fake_tools import Conversation, TaskList

Call = tuple[str, dict[str, Any]]
MONDAYS = {"repeat": "FREQ=WEEKLY;BYDAY=MO"}


def tasks() -> TaskList:
    tasks = TaskList.of("gym", "dentist", "plumber", "tax return", "call mum about the party", "call mum at six")
    for task_id, day in ((1, "tomorrow 18:00"), (2, "2026-11-25 09:30"), (3, "tomorrow 14:00"), (4, "2026-11-20")):
        tasks.update_task(task_id, due=day)
    tasks.add_task("water the plants", due="today 11:00", **MONDAYS)
    tasks.add_task("bread", also=["eggs"], labels=["shopping"])
    tasks.add_task("quarterly report", labels=["work"], priority="high")
    tasks.add_task("car insurance", description="compare two offers")
    tasks.add_task("buy milk", also=["renew passport"])
    tasks.complete_task(12, also=[13])
    tasks.tasks[13]["completed_at"] = "2026-11-18T10:00:00Z"
    return tasks


def add(title: str, *also: str, **more: Any) -> Call:
    return "add_task", {"title": title, **({"also": list(also)} if also else {}), **more}


def change(*ids: int, tool: str = "update_task", **more: Any) -> Call:
    first, *also = ids
    return tool, {"task_id": first, **more, **({"also": also} if also else {})}


def shows(status: str = "pending", **filters: Any) -> Call:
    return "list_tasks", {"status": status, **filters, "limit": 100}


FILTER = {"due": "today", "repeat": "FREQ=MONTHLY;INTERVAL=3;FROM=DONE"}
VARIANTS: list[tuple[Call, tuple[str, ...]]] = [
    (
        add("dentist", due="tomorrow 15:00"),
        (
            "Add dentist tomorrow at 3 PM.",
            "add dentist tomorrow, 3pm!",
            "please add dentist for tomorrow at 15:00",
            "create a task: dentist tomorrow at 3 p.m.",
            "dentist tomorrow at 3pm",
            "add dentist at 3 in the afternoon tomorrow",
        ),
    ),
    (
        add("call mum", due="friday"),
        (
            "Remind me to call mum on friday.",
            "remind me on Friday to call mum",
            "don't let me forget to call mum on Friday",
            "I have to call mum on Friday",
            "set a reminder for Friday to call mum",
            "remember to call mum next friday",
        ),
    ),
    (
        add("water the plants", due="monday 09:00", **MONDAYS),
        (
            "Every monday at 9, water the plants",
            "water the plants every Monday at 9am",
            "remind me every Monday at 9:00 to water the plants",
            "add water the plants on Mondays at 9",
            "i need to water the plants each monday at 9",
        ),
    ),
    (
        add("change the filter", **FILTER),
        (
            "change the filter 3 months after I last did it",
            "add change the filter three months after I did it last",
            "change the filter every 3 months after I have done it",
            "remind me to change the filter three months after it's done",
        ),
    ),
    (
        add("milk", "eggs", "bread", labels=["shopping"]),
        (
            "Add milk, eggs and bread to my shopping list",
            "put milk, eggs and bread on the shopping list",
            "add milk, eggs & bread to shopping please",
            "Can you add milk, eggs, and bread to the shopping list?",
        ),
    ),
    (
        shows(due="..today", order="due"),
        (
            "What's on today?",
            "whats on today",
            "what do I have to do today",
            "what is on my list for today?",
            "today",
            "show me today's tasks",
            "what do I have planned today",
        ),
    ),
    (
        shows(due="overdue", order="due"),
        (
            "What is overdue?",
            "whats overdue",
            "show overdue tasks",
            "is anything overdue",
            "do I have overdue tasks?",
            "list all my overdue things",
        ),
    ),
    (
        shows(due="Sat 2026-11-28..Sun 2026-11-29", order="due"),
        (
            "what is due this weekend?",
            "What do I have to do this weekend",
            "what's on at the weekend",
            "anything due on the weekend?",
            "show tasks for this weekend",
        ),
    ),
    (
        ("list_tasks", {"status": "pending", "order": "priority", "limit": 5}),
        (
            "What should I do first?",
            "where do I start",
            "what's most important",
            "what should i do next",
            "which task first",
        ),
    ),
    (
        shows("completed", done="Mon 2026-11-16..Sun 2026-11-22"),
        (
            "What did I do last week?",
            "what did I get done last week",
            "which tasks did I finish last week",
            "show what I completed last week",
            "how many tasks did I complete last week?",
        ),
    ),
    (
        change(7, due="tomorrow"),
        (
            "Move everything due today to tomorrow!",
            "push all tasks due today to tomorrow",
            "postpone today's tasks to tomorrow",
            "reschedule everything that's due today for tomorrow",
            "move everything on today to tomorrow",
        ),
    ),
    (
        change(4, due="monday"),
        (
            "Push all overdue things to monday",
            "move everything overdue to Monday",
            "reschedule my overdue tasks to Monday",
            "postpone everything that is overdue until Monday",
            "move overdue tasks to Monday please",
        ),
    ),
    (
        change(2, due="+1w"),
        (
            "Snooze the dentist by a week",
            "postpone dentist by 1 week",
            "push dentist back by one week",
            "defer 2 by a week",
            "delay the dentist by a week",
        ),
    ),
    (
        change(3, due="14:30"),
        (
            "The plumber is at 14:30 not at 14:00",
            "the plumber is now at 2:30pm",
            "plumber is at 14:30 instead of 14:00",
            "move the plumber to 14:30",
            "the plumber comes at 14:30",
        ),
    ),
    (
        change(1, due="none"),
        (
            "Clear the date of gym",
            "remove the due date from the gym",
            "delete the deadline of gym",
            "gym has no date",
            "take the date off gym",
        ),
    ),
    (
        change(7, due="next"),
        (
            "Skip the plants this week",
            "skip the plants",
            "skip watering the plants this time",
            "skip plants once",
            "skip the next plants",
        ),
    ),
    (
        change(7, repeat="none"),
        (
            "Stop repeating the plants",
            "don't repeat the plants anymore",
            "end the repeat of the plants",
            "the plants should not repeat any more",
        ),
    ),
    (
        change(4, priority="high"),
        (
            "Make the tax return high priority",
            "make tax return a top priority",
            "set the priority of the tax return to high",
            "the tax return is urgent",
            "mark the tax return as important",
            "prioritise the tax return",
        ),
    ),
    (
        change(1, add_labels=["health"]),
        (
            "Tag gym with health",
            "label the gym as health",
            "add the label health to gym",
            "put the tag health on the gym",
        ),
    ),
    (
        shows(label="work"),
        ("Show my work tasks", "show me all work tasks", "list work tasks", "what's on my work list?", "my work tasks"),
    ),
    (
        shows("all", query="insuranc"),
        (
            "Find anything about insurance",
            "search for insurance",
            "find insurance",
            "do I have anything about insurance?",
            "look for tasks about insurance",
        ),
    ),
    (
        shows(),
        (
            "How many open tasks do I have?",
            "how many tasks are open",
            "how many things do I have to do",
            "show my open tasks",
            "what's left?",
        ),
    ),
    (
        change(8, 9, tool="complete_task"),
        (
            "I finished all the shopping",
            "I've done all the shopping",
            "complete all shopping tasks",
            "mark all shopping items as done",
            "all the shopping is done",
        ),
    ),
    (
        change(1, 3, tool="complete_task"),
        (
            "Complete 1 and 3",
            "complete #1 and #3",
            "mark 1 and 3 as done",
            "tick off 1, 3",
            "tasks 1 and 3 are done",
            "gym and plumber are done",
        ),
    ),
    (
        change(12, status="pending"),
        (
            "The milk is not done yet",
            "the milk isn't done",
            "reopen the milk",
            "I haven't bought the milk yet",
            "mark milk as not done",
        ),
    ),
    (
        change(1, title="swimming"),
        (
            "Rename gym to swimming",
            "rename the gym to: swimming",
            "change gym to swimming",
            "the gym should be called swimming",
        ),
    ),
    (
        shows("completed"),
        (
            "Delete all done tasks",
            "delete everything that's done",
            "remove the completed tasks",
            "clear all completed",
            "clean up finished tasks",
        ),
    ),
]


@pytest.mark.parametrize(
    ("sentence", "call"), [(sentence, call) for call, sentences in VARIANTS for sentence in sentences]
)
def test_other_words_mean_the_same(sentence: str, call: Call):
    conversation = Conversation(tasks())
    answer = conversation.say(sentence)
    assert conversation.calls[-1:] == [call], answer


@pytest.mark.parametrize("sentence", ["I called mum", "called mum!", "I've just called Mum", "I called mum yesterday"])
def test_of_two_that_match_it_is_asked_which(sentence: str):
    conversation = Conversation(tasks())
    answer = conversation.say(sentence)
    assert "- **5** call mum about the party\n- **6** call mum at six" in answer
    assert [name for name, _ in conversation.calls] == ["list_tasks"]


@pytest.mark.parametrize(
    "sentence",
    [
        "bring back what I just deleted",
        "restore what I deleted",
        "undo the last deletion",
        "bring back the gym",
        "undelete gym",
        "restore the deleted gym",
        "undo",
    ],
)
@pytest.mark.parametrize("is_new", [False, True])
def test_what_was_deleted_comes_back(sentence: str, is_new: bool):
    conversation = Conversation(tasks())
    conversation.say("delete gym")
    if is_new and sentence != "undo":  # which is of this conversation
        conversation = Conversation(conversation.tasks)
    assert conversation.say(sentence) == 'Brought "gym" back.'
    assert conversation.tasks.tasks[1]["due"] == "Tue 2026-11-24 18:00"


@pytest.mark.parametrize(
    ("sentence", "title"),
    [
        ("buy may flowers", "buy may flowers"),
        ("buy march on washington tickets", "buy march on washington tickets"),
        ("read chapter 3", "read chapter 3"),
        ("call 911", "call 911"),
        ("sign the 27th floor lease", "sign the 27th floor lease"),
        ("add watch Friday Night Lights", "watch Friday Night Lights"),
        ("add buy 3 eggs", "buy 3 eggs"),
        ("add second hand books", "second hand books"),
        ("add fix the sun roof", "fix the sun roof"),
        ("add read the Sunday Times", "read the Sunday Times"),
        ("add order 7 up", "order 7 up"),
        ("add listen to May 68", "listen to May 68"),
        ("add plan the day after", "plan the day after"),
    ],
)
def test_what_is_no_date_stays_in_the_title(sentence: str, title: str):
    conversation = Conversation(TaskList())
    answer = conversation.say(sentence)
    assert conversation.calls == [("add_task", {"title": title})]
    assert answer == f'Added "{title}".'


@pytest.mark.parametrize(
    ("sentence", "titles"),
    [
        ("delete the dentits", '"dentist" (2)'),
        ("I did the tax retrun", '"tax return" (4)'),
        ("move plumbr to Friday", '"plumber" (3)'),
        ("find insurence", '"car insurance" (11)'),
    ],
)
def test_a_slip_of_the_pen_is_asked_about(sentence: str, titles: str):
    conversation = Conversation(tasks())
    answer = conversation.say(sentence)
    assert answer.endswith(f"Did you mean {titles}?")
    assert {name for name, _ in conversation.calls} == {"list_tasks"}
    before = len(conversation.tasks.before)
    assert conversation.say("no").startswith("All right")
    assert len(conversation.tasks.before) == before


@pytest.mark.parametrize("agreed", ["yes", "Yes, please.", "2", "the dentist", "right"])
def test_a_slip_of_the_pen_that_is_confirmed_is_carried_out(agreed: str):
    conversation = Conversation(tasks())
    conversation.say("delete the dentits and gym")
    assert conversation.say(agreed) == 'Deleted "gym" and "dentist".'


@pytest.mark.parametrize(
    ("sentence", "calls"),
    [
        ("add milk #shopping", [add("milk", labels=["shopping"])]),
        ("add renew visa in 2 weeks, high priority", [add("renew visa", priority="high", due="+2w")]),
        (
            "add call Bob today and send the tax form by Friday",
            [add("call Bob", due="today"), add("send the tax form", due="friday")],
        ),
        ("meet Ann tomorrow at 1 for lunch", [add("meet Ann for lunch", due="tomorrow 13:00")]),
        ("lunch with Tom next Friday at 12:30", [add("lunch with Tom", due="friday 12:30")]),
        ("note to self: ask Bob", [add("ask Bob")]),
        ("buy a gift before 5 December", [add("buy a gift", due="Fri 2026-12-04")]),
        ("change the dentist to Friday at 10", [change(2, due="friday 10:00")]),
        ("add a deadline to gym: 11 December", [change(1, due="Fri 2026-12-11")]),
        ("oops, actually the plumber is at 5pm", [change(3, due="17:00")]),
        ("mark the report as written", [change(10, tool="complete_task")]),
        ("I have a meeting on December 3rd at 2:15pm", [add("meeting", due="Thu 2026-12-03 14:15")]),
        ("add 3 tasks: read, write, sleep", [add("read", "write", "sleep")]),
        ("add run every 2 days starting tomorrow", [add("run", due="tomorrow", repeat="FREQ=DAILY;INTERVAL=2")]),
        ("repeat the dentist every 6 months", [change(2, repeat="FREQ=MONTHLY;INTERVAL=6")]),
        ("the dentist is cancelled", []),
        ("cancel the gym", []),
        ("I am tired today", []),
    ],
)
def test_what_else_is_said_in_a_day(sentence: str, calls: list[Call]):
    conversation = Conversation(tasks())
    answer = conversation.say(sentence)
    assert [call for call in conversation.calls if call[0] != "list_tasks"] == calls, answer
