"""Whoever starts an agent is asked first, once or for all of a conversation."""

import json
from dataclasses import replace
from typing import Any

from tests.backend.agents_at_work import Files, coder, work
from tests.backend.completions import check_pairs
from tests.backend.conftest import Backend, Rows
from tests.backend.consent import badge, call, calls, cards
from tests.backend.other_servers import at
from tests.chatkit_client import Answer, ChatKit, user_input
from tests.scripted_model import ScriptedModel

WRITING = calls(call("write_file", path="a.txt", content="x"))


async def decide(chat: ChatKit, card: dict[str, Any], **form: Any) -> Answer:
    action = card["widget"]["confirm"]["action"]
    clicked = {"type": action["type"], "payload": {**form, **action["payload"]}}
    return await chat.stream("threads.custom_action", thread_id=card["thread_id"], item_id=card["id"], action=clicked)


async def refuse(chat: ChatKit, card: dict[str, Any]) -> Answer:
    action = card["widget"]["cancel"]["action"]
    return await chat.stream("threads.custom_action", thread_id=card["thread_id"], item_id=card["id"], action=action)


async def test_the_card_says_what_an_agent_may_do_and_another_process_goes_on(
    backend: Backend, with_agents: dict[str, Any], model: ScriptedModel, rows: Rows, files: Files
) -> None:
    asking = with_agents | {"approvals": ("bulk", "agents")}
    await model.script(calls(call("add_task", title="write a.txt")), {"text": "Added."}, calls(coder("write it", 1)))
    async with backend(**asking) as chat:
        thread = (await chat.say("add it")).thread_id
        [card] = cards(await chat.say("do task 1", thread))
    shown = json.dumps(card["widget"], ensure_ascii=False)
    for words in ("Let the coder do this?", "“write a.txt” (1)", "task: write it", "no internet"):
        assert words in shown
    assert rows("SELECT 1 FROM agent_steps") == []
    await model.script(WRITING, {"text": "Written."}, {"text": "Shall I complete it?"})
    async with backend(**asking) as chat:
        rest = await decide(chat, card)
        assert rest.error is None
        assert rest.text == "Shall I complete it?"
        assert work(rest)["summary"]["title"] == "Coder: 1 step, 1 file written"
        assert files.of(thread) == {"a.txt": "x"}
        for request in await model.finished_requests():
            check_pairs(request["body"]["messages"])
        [run] = rows("SELECT usage FROM runs ORDER BY started_at DESC LIMIT 1")
        assert (run["usage"]["requests"], run["usage"]["by_agent"]["coder"]["requests"]) == (4, 2)
        assert rows("SELECT 1 FROM consents") == []

        await model.script(calls(coder()))
        [again] = cards(await chat.say("once more", thread))
        await model.script(
            {"text": "Nothing to do."}, {"text": "Done."}, calls(coder()), {"text": "x"}, {"text": "Unasked."}
        )
        assert (await decide(chat, again, always="on")).text == "Done."
        assert [row["tool"] for row in rows("SELECT tool FROM consents")] == ["do_with_coder"]
        assert (await chat.say("and again", thread)).text == "Unasked."
        await model.script(calls(coder()), {"text": "never"})
        assert cards(await chat.say("elsewhere")), "the consent is the conversation's"


async def test_consent_holds_for_what_its_card_said_and_is_asked_for_again_where_that_has_changed(
    backend: Backend, with_agents: dict[str, Any], model: ScriptedModel, rows: Rows
) -> None:
    asking = with_agents | {"approvals": ("agents",)}
    starting, web = calls(call("do_with_researcher", task="look")), at("http://127.0.0.1:9")
    async with backend(**asking) as chat:
        await model.script(
            starting, {"text": "Seen."}, {"text": "Done."}, starting, {"text": "Seen."}, {"text": "Yes."}
        )
        [card] = cards(await chat.say("look"))
        thread = card["thread_id"]
        assert (await decide(chat, card, always="on")).text == "Done."
        assert (await chat.say("again", thread)).text == "Yes.", "nobody is asked"
    async with backend(**asking, servers=[web]) as chat:
        await model.script(starting)
        [card] = cards(await chat.say("once more", thread))
        assert "mcp.web" in json.dumps(card["widget"])
    steps = rows("SELECT count(*) AS steps FROM agent_steps")
    async with backend(**asking, servers=[replace(web, tools=frozenset({"say"}))]) as chat:
        await model.script(starting)
        [other] = cards(await decide(chat, card, always="on"))
        assert [badge(item) for item in await chat.items(thread) if item["id"] == card["id"]] == ["Not done"]
        assert rows("SELECT count(*) AS steps FROM agent_steps") == steps
        told = (await model.finished_requests())[-1]["body"]["messages"]
        check_pairs(told)
        assert told[-1]["content"].startswith("This call was not made. What it may reach is another now")
        await model.script({"text": "Then not."}, starting)
        assert (await refuse(chat, other)).text == "Then not."
        assert cards(await chat.say("and now", thread)), "what was allowed is what the first card said"


async def test_what_cannot_be_allowed_for_good_is_asked_again(
    backend: Backend, with_agents: dict[str, Any], model: ScriptedModel, rows: Rows
) -> None:
    async with backend(**with_agents | {"approvals": ("add_task",)}) as chat:
        await model.script(calls(call("add_task", title="milk")), {"text": "Added."})
        [card] = cards(await chat.say("add milk"))
        assert "Always" not in json.dumps(card["widget"])
        await decide(chat, card, always="on")
        assert rows("SELECT 1 FROM consents") == []


async def test_the_steps_before_a_wait_count_after_it(
    backend: Backend, with_agents: dict[str, Any], model: ScriptedModel
) -> None:
    async with backend(**with_agents | {"approvals": ("add_task",)}) as chat:
        looking = [calls(call("list_files", path=".", depth=1 + number % 3)) for number in range(5)]
        await model.script(calls(coder()), *looking, {"text": "Seen."}, calls(call("add_task", title="milk")))
        [card] = cards(await chat.say("do it"))
        assert len(await model.finished_requests()) == 8
        await model.script(*[calls(call("list_tasks", limit=number)) for number in range(1, 5)])
        rest = await decide(chat, card)
        assert rest.error is not None
        assert "too many steps" in rest.error["message"]
        assert len(await model.finished_requests()) == 10


async def test_a_click_on_a_task_is_the_consent(
    backend: Backend, with_agents: dict[str, Any], model: ScriptedModel, rows: Rows
) -> None:
    """In the conversation that it begins, for its first message alone."""
    async with backend(**with_agents | {"approvals": ("agents",)}) as chat:
        await model.script(calls(coder()), {"text": "Nothing to do."}, {"text": "Done."}, calls(coder()))
        asked = {
            "type": "threads.create",
            "params": {"input": user_input("do task 3")},
            "metadata": {"allow_agents": True},
        }
        answer = await chat.http.post("/chatkit", json=asked)
        assert "Done." in answer.text
        [conversation] = rows("SELECT id FROM conversations")
        assert cards(await chat.say("once more", conversation["id"]))
