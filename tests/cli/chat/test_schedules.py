"""`/schedules` in `./todo chat`: listed, paused, resumed, run and deleted by their numbers."""

import re

import pytest

from tests.chatkit_client import ChatKit
from tests.cli.chat.conftest import Start
from tests.scripted_model import ScriptedModel
from tests.support.script import says

pytestmark = pytest.mark.long(seconds=8)

SUMMARY = {"text": "summarise what I did", "repeat": "FREQ=WEEKLY;BYDAY=FR", "time": "16:00"}


async def test_schedules(start: Start, model: ScriptedModel, served: ChatKit) -> None:
    await model.script(says("Three tasks."))
    with start() as terminal:
        await terminal.wait_for(">")
        terminal.say("/schedules")
        await terminal.wait_for("Nothing is scheduled. Say, for example: every Friday")
        (await served.http.post("/schedules", json=SUMMARY)).raise_for_status()
        terminal.say("/schedules")
        await terminal.wait_for("1. summarise what I did", "every Friday at 16:00 · next Fri")
        (await served.http.patch("/profile", json={"time_zone": "Asia/Tokyo"})).raise_for_status()
        terminal.say("/schedules")
        await terminal.wait_until(lambda text: len(re.findall(r"at 16:00 · next Fri \d\d \w{3} 16:00", text)) == 2)
        for wrong, sentence in (("stop 1", "Write one of these after /schedules"), ("pause 2", "Write the number of")):
            terminal.say(f"/schedules {wrong}")
            await terminal.wait_for(sentence)
        terminal.say("/schedules pause 1")
        await terminal.wait_for("Paused.")
        terminal.say("/schedules")
        await terminal.wait_for("every Friday at 16:00 · paused")
        terminal.say("/schedules resume 1")
        await terminal.wait_for("Resumed.")
        terminal.say("/schedules run 1")
        await terminal.wait_for("Started.")
        terminal.say("/schedules delete 1")
        await terminal.wait_for("Deleted.")
    assert (await served.http.get("/schedules")).json()["schedules"] == []
    [thread] = (await served.list_threads()).data
    assert thread["title"] == "summarise what I did"
