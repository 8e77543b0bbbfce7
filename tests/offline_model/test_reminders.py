"""Reminders: what sentences set, and what is said of notifications. It is Monday, 2026-11-23, 10:40."""

from typing import Any

import pytest

from offline_model.replies import NO_REMINDER, NOTIFICATIONS_OFF
from tests.offline_model.conversation import NOTE, Call, Conversation, add, change, said

TUESDAY = "Tue 2026-11-24 15:00"
ON = NOTE.format("Mon 2026-11-23 10:40, Europe/Berlin, calendar feed on, notifications on")


@pytest.mark.parametrize(
    ("sentence", "calls"),
    [
        ("add dentist tomorrow 15:00 remind me an hour before", [add("dentist", due=TUESDAY, remind=60)]),
        ("add dentist tomorrow at 3pm, remind me 10 minutes before", [add("dentist", due=TUESDAY, remind=10)]),
        ("add dentist tomorrow at 3pm and remind me a day before", [add("dentist", due=TUESDAY, remind=1440)]),
        ("dentist tomorrow at 3pm, remind me at 14:30", [add("dentist", due=TUESDAY, remind=30)]),
        ("add dentist tomorrow 15:00 with no reminder", [add("dentist", due=TUESDAY, remind="none")]),
        ("remind me to call mum in 2 hours", [add("call mum", due="Mon 2026-11-23 12:40")]),
        ("remind me to call mum tomorrow at 15:00 10 minutes before", [add("call mum", due=TUESDAY, remind=10)]),
        ("call mum tomorrow, remind me at 15:00", [add("call mum", due=TUESDAY)]),
        (
            "add call mum and call dad tomorrow at 3pm, remind me an hour before",
            [add("call mum", "call dad", due=TUESDAY, remind=60)],
        ),
    ],
)
async def test_new_task(conversation: Conversation, sentence: str, calls: list[Call]) -> None:
    answer = await conversation.say(sentence)
    assert conversation.calls == calls, answer
    assert (NOTIFICATIONS_OFF in answer) == (
        calls[0][1].get("remind") not in (None, "none") or "remind me to" in sentence
    )


@pytest.mark.parametrize(
    ("sentence", "ids", "remind"),
    [
        *(("remind me 30 minutes before the dentist", (1,), 30), ("remind me an hour before dentist", (1,), 60)),
        *(("remind me a day before the dentist please", (1,), 1440), ("remind me 1 hour before task 1", (1,), 60)),
        ("set a reminder 30 minutes before the dentist", (1,), 30),
        ("change the reminder of dentist to 5 minutes before", (1,), 5),
        *(("no reminder for task 2", (2,), "none"), ("no reminder for the dentist", (1,), "none")),
        *(("don't remind me about the dentist", (1,), "none"), ("remove the reminder for gym", (2,), "none")),
        ("stop reminding me about the gym", (2,), "none"),
    ],
)
async def test_changed_task(conversation: Conversation, sentence: str, ids: tuple[int, ...], remind: Any) -> None:
    await conversation.tools.add("dentist", also=["gym"], due=TUESDAY)
    answer = await conversation.say(sentence)
    assert conversation.changes == [change(*ids, remind=remind)], answer
    assert ("no reminder" if remind == "none" else "reminder ") in answer
    assert (NOTIFICATIONS_OFF in answer) == (remind != "none")


@pytest.mark.parametrize("sentence", ["remind me 10 minutes before it", "remind me an hour before that"])
async def test_task_of_the_last_answer(conversation: Conversation, sentence: str) -> None:
    await conversation.say("add dentist tomorrow at 3pm")
    await conversation.say(sentence)
    [(tool, arguments)] = conversation.changes
    assert (tool, arguments["task_id"], arguments["remind"] in (10, 60)) == ("update_task", 1, True)


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("add rent on friday, remind me a day before", "A reminder needs a time"),
        ("add dentist tomorrow 15:00, remind me at 16:00", "not before the due time"),
        ("remind me tomorrow", NO_REMINDER),
        ("remind me about the gym", NO_REMINDER),
        ("remind me about the gym 2 hours before", NO_REMINDER),
        ("set an alarm for 7", NO_REMINDER),
        ("remind me an hour before the party", "party"),
    ],
)
async def test_nothing_is_done(conversation: Conversation, sentence: str, words: str) -> None:
    await conversation.tools.add("gym", due=TUESDAY)
    assert words in await conversation.say(sentence)
    assert conversation.changes == []


async def test_task_without_a_time(conversation: Conversation) -> None:
    await conversation.tools.add("rent", due="tomorrow")
    answer = await conversation.say("remind me an hour before rent")
    assert "A reminder comes before a due time, and this task has none." in answer
    assert [task["remind"] for task in await conversation.tools.tasks()] == [None]


async def test_notifications_that_are_on(conversation: Conversation) -> None:
    conversation.messages += [said(ON), said("remind me to call mum tomorrow at 15:00")]
    while (reply := await conversation._reply()).get("tool_calls"):
        conversation.messages.append(reply)
        await conversation._make(reply["tool_calls"][0])
    assert reply["content"] == 'Added "call mum" (due Tue 2026-11-24 15:00).'


async def test_help_claims_nothing_else(conversation: Conversation) -> None:
    answer = await conversation.say("help")
    assert "remind me an hour before" in answer
    assert "can't send reminders" not in answer
