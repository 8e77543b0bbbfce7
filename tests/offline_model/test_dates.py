"""Dates are given to the tools in their own words, and told as the tools' results show them."""

from datetime import datetime

import pytest

from backend.conversation.hidden import block
from offline_model.protocol import Message
from offline_model.rules import sentences
from offline_model.rules.language import dates
from offline_model.rules.language.text import Text
from tests.offline_model.fake_tools import Conversation, TaskList

WEEK = "Mon 2026-11-23..Sun 2026-11-29"
MONDAYS = "FREQ=WEEKLY;BYDAY=MO"


@pytest.mark.parametrize(
    ("sentence", "title", "due", "repeat"),
    [
        ("add dentist tomorrow at 3pm", "dentist", "tomorrow 15:00", None),
        ("add dentist at 15:30 tomorrow", "dentist", "tomorrow 15:30", None),
        ("add gym in 3 days", "gym", "+3d", None),
        ("add gym in a week", "gym", "+1w", None),
        ("add report by next Friday", "report", "friday", None),
        ("add report (due Friday)", "report", "friday", None),
        ("add report due 2026-12-01", "report", "2026-12-01", None),
        ("add meet Ann at 5 p.m.", "meet Ann", "17:00", None),
        ("add standup at 9", "standup", "09:00", None),
        ("add lunch on Friday at noon", "lunch", "friday 12:00", None),
        ("add walk tomorrow morning", "walk", "tomorrow 09:00", None),
        ("please add call the bank for tomorrow, thanks", "call the bank", "tomorrow", None),
        ("add eggs to my list tomorrow", "eggs", "tomorrow", None),
        ("remind me to call mum on Friday", "call mum", "friday", None),
        ("remind me tomorrow to call mum at 3pm", "call mum", "tomorrow 15:00", None),
        ("I need to call mum tonight", "call mum", "today", None),
        ("every Monday at 9 water the plants", "water the plants", "monday 09:00", MONDAYS),
        ("water the plants every Monday at 9", "water the plants", "monday 09:00", MONDAYS),
        ("add water the plants every day", "water the plants", "today", "FREQ=DAILY"),
        ("add every month pay the rent", "pay the rent", "today", "FREQ=MONTHLY"),
        ("add pay the rent every other week", "pay the rent", "today", "FREQ=WEEKLY;INTERVAL=2"),
        ("remind me every weekday at 8 to take the pills", "take the pills", "08:00", f"{MONDAYS},TU,WE,TH,FR"),
        ("tomorrow: call mum", "call mum", "tomorrow", None),
    ],
)
def test_a_date_is_given_as_a_date(sentence: str, title: str, due: str, repeat: str | None):
    conversation = Conversation(TaskList())
    answer = conversation.say(sentence)
    arguments = {"title": title, "due": due, **({"repeat": repeat} if repeat else {})}
    assert conversation.calls == [("add_task", arguments)]
    assert f"(due {conversation.tasks.tasks[1]['due']}{', repeats' if repeat else ''})" in answer


@pytest.mark.parametrize(
    ("hour", "said", "due"),
    [
        (10, "at 7", "07:00"),
        (18, "at 7", "19:00"),
        (20, "at 7", "07:00"),
        (18, "at 7am", "07:00"),
        (18, "7:00", "07:00"),
    ],
)
def test_a_bare_hour_is_the_evening_where_that_comes_first(hour: int, said: str, due: str):
    said_then = Text.said(said, datetime(2026, 11, 23, hour, 40))
    assert dates.read(said_then) == {"due": due}


@pytest.mark.parametrize(
    ("sentence", "title"),
    [
        ('add "tomorrow never dies"', "tomorrow never dies"),
        ("add tomorrow never dies", "tomorrow never dies"),
        ('add "see you on Friday"', "see you on Friday"),
        ("add a task called what to wear on Friday", "what to wear on Friday"),
        ("add gifts for Black Friday", "gifts for Black Friday"),
        ("add dentist on 31 November at 3pm", "dentist on 31 November at 3pm"),
        ("add dentist at 25:00", "dentist at 25:00"),
        ("add read 20 pages", "read 20 pages"),
        ("add Friday", "Friday"),
    ],
)
def test_words_that_are_no_date_stay_in_the_title(sentence: str, title: str):
    conversation = Conversation(TaskList())
    conversation.say(sentence)
    assert conversation.calls == [("add_task", {"title": title})]


@pytest.mark.parametrize(
    ("sentence", "due"),
    [
        ("add party on Friday, November 27", "Fri 2026-11-27"),
        ("add party on Fri 27 November at 8pm", "Fri 2026-11-27 20:00"),
        ("add party on Monday the 30th of November", "Mon 2026-11-30"),
    ],
)
def test_a_weekday_beside_its_date(sentence: str, due: str):
    conversation = Conversation(TaskList())
    conversation.say(sentence)
    assert conversation.calls == [("add_task", {"title": "party", "due": due})]


def test_a_weekday_that_is_not_that_of_the_date_is_refused():
    """With the tool's own words, as it is told both."""
    conversation = Conversation(TaskList())
    answer = conversation.say("add party on Friday, November 28")
    assert conversation.calls == [("add_task", {"title": "party", "due": "Fri 2026-11-28"})]
    assert answer.startswith('I could not add "party": ')
    assert "Sat 2026-11-28 or Fri 2026-11-27" in answer


@pytest.mark.parametrize(
    "sentence",
    [
        "add call Jane tomorrow at 3pm London time",
        "remind me to call Jane at 15:00 New York time",
        "add call Jane at 3 pm UTC",
        "move gym to 7pm Pacific Time",
    ],
)
def test_a_time_by_another_clock_is_not_taken_for_one_by_the_own(sentence: str):
    conversation = Conversation(TaskList.of("gym"))
    assert conversation.say(sentence) == sentences.OTHER_CLOCK
    assert conversation.calls == []


def test_each_title_has_its_own_date_or_that_of_the_line():
    conversation = Conversation(TaskList())
    assert conversation.say("add call mum today and pay rent on Friday") == (
        'Added "call mum" (due Mon 2026-11-23) and "pay rent" (due Fri 2026-11-27).'
    )
    assert conversation.say("add milk and bread tomorrow") == (
        'Added "milk" (due Tue 2026-11-24) and "bread" (due Tue 2026-11-24).'
    )


def test_a_reminder_says_that_nothing_rings():
    assert Conversation(TaskList()).say("remind me to call mum on Friday") == (
        f'Added "call mum" (due Fri 2026-11-27).\n\n{sentences.NOTHING_RINGS}'
    )


FEED = ", calendar feed on"


@pytest.mark.parametrize(
    ("before", "known", "said"),
    [
        ("", "", sentences.NOTHING_RINGS),
        ("", FEED, sentences.CALENDAR_RINGS),
        (FEED, "", sentences.NOTHING_RINGS),
        ("", FEED + FEED, sentences.NOTHING_RINGS),
        ("", ", x, calendar feed on", sentences.NOTHING_RINGS),
    ],
)
def test_only_who_has_a_calendar_is_told_that_a_program_of_theirs_rings(before: str, known: str, said: str):
    conversation = Conversation(TaskList())
    conversation.say("thanks", known=before)
    conversation.messages.append(Message(role="user", content=block('Task 1, "x, calendar feed on", was ticked.')))
    answer = conversation.say("add call mum on Friday", known=known)
    assert answer == 'Added "call mum" (due Fri 2026-11-27).'
    answer = conversation.say("remind me to call dad on Friday", known=known)
    assert said in answer


@pytest.mark.parametrize(
    "text", ["", "mum", "3", "morning", "at", "every", "in 0 days", "at 13 pm", "99:99", "every 0 days"]
)
def test_what_is_no_date(text: str):
    assert dates.read(Text.said(text)) is None


@pytest.mark.parametrize(
    ("sentence", "due", "answer"),
    [
        ("what's overdue?", "overdue", "1 task is overdue."),
        ("is anything overdue", "overdue", "1 task is overdue."),
        ("show me my overdue tasks", "overdue", "1 task is overdue."),
        ("what's due today?", "today", "Nothing is due today."),
        ("what is on today", "..today", "Today: 1 task, 1 overdue."),
        ("what do I need to do today?", "..today", "Today: 1 task, 1 overdue."),
        ("what is due tomorrow", "tomorrow", "1 task is due tomorrow."),
        ("what is due this week?", WEEK, f"2 tasks are due this week ({WEEK.replace('..', ' to ')})."),
        ("which tasks are due on Friday", "friday", "1 task is due on Friday."),
        ("what do I have due by Friday?", "..friday", "3 tasks are due by Friday."),
        ("what's due", "any", "3 tasks are due."),
    ],
)
def test_what_is_due(sentence: str, due: str, answer: str):
    conversation = Conversation(TaskList.of("buy milk"))
    for title, day in (("rent", "2026-11-20"), ("dentist", "tomorrow"), ("call mum", "friday 15:00")):
        conversation.tasks.add_task(title, due=day)
    assert conversation.say(sentence) == answer
    assert [arguments["due"] for _, arguments in conversation.calls] == [due]


def test_when_a_task_is_due():
    conversation = Conversation(TaskList())
    conversation.tasks.add_task("dentist", due="tomorrow 15:00")
    assert conversation.say("when is the dentist due?") == (
        '1 task for "dentist":\n\n- dentist (open, due Tue 2026-11-24 15:00)'
    )


@pytest.mark.parametrize(
    ("sentence", "change", "answer"),
    [
        ("move the dentist to Friday", {"due": "friday"}, 'Changed "dentist" (due Fri 2026-11-27 15:00).'),
        ("reschedule 1 for tomorrow at 9", {"due": "tomorrow 09:00"}, 'Changed "dentist" (due Tue 2026-11-24 09:00).'),
        ("snooze the dentist by a week", {"due": "+1w"}, 'Changed "dentist" (due Tue 2026-12-01 15:00).'),
        ("set the due date of dentist to today", {"due": "today"}, 'Changed "dentist" (due Mon 2026-11-23 15:00).'),
        ("clear the date of the dentist", {"due": "none"}, 'Changed "dentist".'),
        ("make the dentist high priority", {"priority": "high"}, 'Changed "dentist" to high priority.'),
        ("set the priority of dentist to Low", {"priority": "low"}, 'Changed "dentist" to Low priority.'),
        ("tag dentist with health", {"add_labels": ["health"]}, 'Put the label "health" on "dentist".'),
        ("stop repeating the dentist", {"repeat": "none"}, 'Changed "dentist" (due Tue 2026-11-24 15:00).'),
    ],
)
def test_a_field_is_changed(sentence: str, change: dict[str, object], answer: str):
    conversation = Conversation(TaskList())
    conversation.tasks.add_task("dentist", due="tomorrow 15:00")
    assert conversation.say(sentence).replace(", repeats", "") == answer
    assert conversation.calls[-1] == ("update_task", {"task_id": 1, **change})


def test_a_repeat_is_set_and_skipped():
    conversation = Conversation(TaskList.of("water the plants"))
    conversation.say("repeat the plants every Monday")
    assert conversation.calls[-1] == ("update_task", {"task_id": 1, "due": "monday", "repeat": MONDAYS})
    conversation.say("skip the plants")
    assert conversation.calls[-1] == ("update_task", {"task_id": 1, "due": "next"})


@pytest.mark.parametrize("number", [1, 11])
def test_all_done_tasks_are_deleted_in_one_call_after_a_question(number: int):
    done = range(2, 2 + number)
    conversation = Conversation(TaskList.of("open", *(f"job {at}" for at in done), done=done))
    answer = conversation.say("delete all done tasks")
    assert answer == f"There {'is 1 done task' if number == 1 else 'are 11 done tasks'}. {sentences.SAY_YES}"
    assert len(conversation.tasks.titles) == 1 + number
    conversation.say("yes")
    also = {"also": list(done)[1:]} if number > 1 else {}
    assert conversation.calls == [("delete_task", {"task_id": 2, **also})]
    assert conversation.tasks.titles == {1: "open"}


def test_what_is_done_after_the_question_is_not_deleted():
    conversation = Conversation(TaskList.of("a", "b", done=[1]))
    conversation.say("delete all done tasks")
    conversation.tasks.complete_task(2)
    assert conversation.say("yes") == 'Deleted "a".'
    assert conversation.tasks.titles == {2: "b"}


@pytest.mark.parametrize("answer", ["no", "never mind", "add soap", "what's overdue?"])
def test_what_is_not_agreed_to_is_not_deleted(answer: str):
    conversation = Conversation(TaskList.of("a", done=[1]))
    conversation.say("delete all done tasks")
    conversation.say(answer)
    conversation.say("yes")
    assert conversation.tasks.titles[1] == "a"


def test_more_done_tasks_than_a_call_takes_are_deleted_and_come_back():
    conversation = Conversation(TaskList.of(*(f"job {at}" for at in range(123)), done=range(1, 124)))
    conversation.say("delete all done tasks")
    assert conversation.say("yes") == "Deleted 123 tasks."
    assert conversation.tasks.titles == {}
    conversation.say("undo")
    assert len(conversation.tasks.done) == 123
