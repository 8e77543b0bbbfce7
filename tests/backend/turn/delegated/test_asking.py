"""Agents whose calls need consent: their person is asked in the middle of the work, which then goes on from rows."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.model_input.history import NOT_MADE, UNKNOWN_OUTCOME
from backend.tools.consent.card import NOT_ASKED
from backend.tools.tasks.tools import CallerToken
from backend.tools.workspace.tools import WorkspaceTools
from backend.turn import answers
from backend.turn.waiting import decisions, resuming
from tests.backend.agents_at_work import COMMAND, Files, coder, sleeping, work
from tests.backend.completions import check_pairs
from tests.backend.conftest import Backend, Rows
from tests.backend.consent import badge, call, calls, cards, decide, deleting, with_tasks
from tests.backend.other_servers import approve, at
from tests.chatkit_client import Answer, ChatKit, user_input
from tests.foreign_server import create_server
from tests.scripted_model import ScriptedModel
from tests.serving import serve
from tests.waiting import until
from tests.workspace_service import served_workspace

RESEARCHER = call("do_with_researcher", task="find out")


@pytest.fixture
def asking(with_agents: dict[str, Any]) -> dict[str, Any]:
    """The settings of a backend whose agents ask before they run a command."""
    return with_agents | {"approvals": ("bulk", "run_command")}


@pytest.fixture
async def chat(backend: Backend, asking: dict[str, Any]) -> AsyncIterator[ChatKit]:
    async with backend(**asking) as client:
        yield client


def run(command: str) -> dict[str, Any]:
    return call("run_command", command=command)


def kinds(rows: Rows) -> list[str]:
    return [row["kind"] for row in rows("SELECT kind FROM agent_steps ORDER BY run_id, seq")]


async def outputs(model: ScriptedModel) -> list[str]:
    """What tools have answered, as the last request has it; none of all requests is unpaired."""
    requests = [request["body"]["messages"] for request in await model.finished_requests()]
    for messages in requests:
        check_pairs(messages)
    return [message["content"] for message in requests[-1] if message["role"] == "tool"]


async def always(chat: ChatKit, card: dict[str, Any]) -> Answer:
    action = card["widget"]["confirm"]["action"]
    clicked = {"type": action["type"], "payload": {"always": "on", **action["payload"]}}
    return await chat.stream("threads.custom_action", thread_id=card["thread_id"], item_id=card["id"], action=clicked)


async def test_a_call_is_asked_about_and_another_process_goes_on_from_rows(
    backend: Backend, asking: dict[str, Any], model: ScriptedModel, rows: Rows, files: Files
) -> None:
    writing = [call("write_file", path="a.txt", content="x"), call("run_python", code="open('c.txt', 'w').write('yz')")]
    before = calls(*writing, run("echo once >> b.txt\ncat a.txt"), text="I write.")
    await model.script(calls(coder("write it", 3)), before)
    async with backend(**asking) as chat:
        answer = await chat.say("do task 3")
        assert answer.error is None
        [card] = cards(answer)
        thread = answer.thread_id
        shown = json.dumps(card["widget"], ensure_ascii=False)
        for words in (
            "Let the coder run a command?",
            "command:",
            "\u00a0\u00a0echo once >> b.txt",
            "\u00a0\u00a0cat a.txt",
        ):
            assert words in shown
        assert files.of(thread) == {"a.txt": "x", "c.txt": "yz"}, "what needs no consent is done"
        assert [task.get("title") for task in work(answer)["tasks"]][2:] == [
            *("Wrote a.txt", "Ran Python", "Running echo once >> b.txt cat a.txt…")
        ]
    [waiting] = rows("SELECT status, usage FROM runs")
    assert (waiting["status"], waiting["usage"]["requests"]) == ("waiting", 2)
    [approval] = rows("SELECT agent, of_call, call, key FROM approvals")
    assert approval["agent"] == "coder"
    assert approval["call"]["name"] == "run_command"
    assert kinds(rows) == ["task", "step", "output", "output"]

    await model.script({"text": "The file holds x."}, {"text": "Shall I complete task 3?"})
    async with backend(**asking) as chat:
        rest = await decide(chat, card, approve=True)
        assert (rest.error, rest.text) == (None, "Shall I complete task 3?")
        assert files.of(thread) == {"a.txt": "x", "b.txt": "once\n", "c.txt": "yz"}
        assert badge(next(item for item in await chat.items(thread) if item["id"] == card["id"])) == "Approved"
        [stored] = [item for item in await chat.items(thread) if item["type"] == "workflow"]
        assert stored["workflow"]["summary"]["title"] == "Coder: 3 steps, 3 files written"
        assert stored["workflow"]["tasks"][4]["title"] == "Ran echo once >> b.txt cat a.txt"
        again = await decide(chat, card, approve=True)
        assert "decided already" in (again.error or {})["message"]
    assert kinds(rows) == ["task", "step", "output", "output", "output", "step", "end"]
    requests = [request["body"]["messages"] for request in await model.finished_requests()]
    assert requests[2][: len(requests[1])] == requests[1], "the agent goes on from what it had read"
    assert requests[2][-4]["content"] == "I write."
    assert requests[2][-1]["content"].startswith("Exit code 0 after ")
    [told] = await outputs(model)
    changed = ["- a.txt (1 bytes)", "- c.txt (2 bytes)", "- b.txt (5 bytes)"]
    assert told.splitlines() == ["The file holds x.", "", "Files changed:", *changed]
    [ended] = rows("SELECT outcome, usage, agent_runs FROM runs")
    assert (ended["outcome"], ended["usage"]["requests"], ended["agent_runs"]) == ("completed", 4, 1)
    assert ended["usage"]["by_agent"]["coder"]["requests"] == 2


async def test_a_refusal_is_the_output_of_the_call_and_the_next_call_is_asked_about_again(
    chat: ChatKit, model: ScriptedModel, rows: Rows, files: Files
) -> None:
    await model.script(calls(coder()), calls(run("echo 1 > a.txt"), run("echo 2 > b.txt")))
    answer = await chat.say("do it")
    first, second = cards(answer)
    one = await decide(chat, first, approve=False, reason="not this")
    assert one.error is None
    assert badge(next(item for item in await chat.items(answer.thread_id) if item["id"] == first["id"])) == "Refused"
    assert len(await model.finished_requests()) == 2, "it goes on once all is decided"
    await model.script(calls(run("echo 3 > c.txt")))
    two = await decide(chat, second, approve=True)
    assert files.of(answer.thread_id) == {"b.txt": "2\n"}
    [third] = cards(two)
    assert "Their reason: “not this”" in (await outputs(model))[0]
    await model.script({"text": "Done."}, {"text": "It is done."})
    three = await decide(chat, third, approve=True)
    assert (three.error, three.text) == (None, "It is done.")
    assert files.of(answer.thread_id) == {"b.txt": "2\n", "c.txt": "3\n"}
    assert kinds(rows) == ["task", "step", "output", "output", "step", "output", "step", "end"]
    assert len(await outputs(model)) == 1
    interaction = await chat.http.get(f"/chats/{answer.thread_id}")
    [shown] = interaction.json()["interactions"]
    assert [(one["agent"], one["approved"]) for one in shown["approvals"]] == [
        *(("coder", False), ("coder", True), ("coder", True))
    ]
    told = [event["event"] for event in shown["agent_events"] if event["event"] not in ("answer", "thinking")]
    assert told[1:-1] == [
        *("tool_call", "approval_required", "approval_required", "rejected", "approved"),
        *("approval_required", "approved", "tool_result"),
    ]
    [run_id] = [row["id"] for row in rows("SELECT id FROM runs")]
    live = [row["event"] for row in rows("SELECT payload->>'event' AS event FROM run_events ORDER BY seq")]
    assert run_id
    assert [event for event in live if event in ("Called", "Asked", "Decided", "Answered")] == [
        *("Called", "Asked", "Asked", "Decided", "Decided", "Asked", "Decided", "Answered")
    ]


async def test_an_agent_that_was_asked_about_asks_itself_beside_another_and_the_assistant(
    backend: Backend, asking: dict[str, Any], model: ScriptedModel, rows: Rows, files: Files
) -> None:
    """Consent to start, then two agents that wait side by side with a call of the assistant's."""
    both = asking | {"approvals": ("bulk", "agents", "run_python", "run_command", "delete_task")}
    async with backend(**both) as chat:
        thread = await with_tasks(chat, model, 1)
        await model.script(calls(coder("first"), RESEARCHER, deleting(1)))
        starting = cards(await chat.say("do both", thread))
        assert len(starting) == 3
        for card in starting[:2]:
            await decide(chat, card, approve=True)
        await model.script(calls(run("echo 1 > a.txt")), calls(call("run_python", code="print(2)")))
        inside = await decide(chat, starting[2], approve=False)
        assert inside.error is None
        first, second = cards(inside)
        assert "Let the coder run a command?" in json.dumps(first["widget"])
        assert "Let the researcher run Python?" in json.dumps(second["widget"])
    async with backend(**both) as chat:
        await decide(chat, second, approve=True)
        await model.script({"text": "One."}, {"text": "Two."}, {"text": "All is done."})
        rest = await decide(chat, first, approve=True)
        assert (rest.error, rest.text) == (None, "All is done.")
    assert files.of(thread) == {"a.txt": "1\n"}
    coder_said, researcher_said, refused = (await outputs(model))[-3:]
    assert (coder_said.split("\n")[0], researcher_said.split("\n")[0]) == ("One.", "Two.")
    assert refused.startswith("The person refused this call")
    assert rows("SELECT 1 FROM tasks") != []
    [usage] = rows("SELECT usage FROM runs ORDER BY started_at DESC LIMIT 1")
    assert {name: one["requests"] for name, one in usage["usage"]["by_agent"].items()} == {"coder": 2, "researcher": 2}
    assert usage["usage"]["requests"] == 6


async def test_what_is_said_instead_ends_the_agent_and_its_run(
    chat: ChatKit, model: ScriptedModel, rows: Rows, files: Files
) -> None:
    await model.script(calls(coder()), calls(call("write_file", path="a.txt", content="x"), run("echo 1")))
    answer = await chat.say("do it")
    await model.script({"text": "All right."})
    assert (await chat.say("stop that", answer.thread_id)).text == "All right."
    [told] = await outputs(model)
    assert told.startswith("The coder was stopped. The person wrote something else instead. What it did before:")
    assert "- Wrote a.txt" in told
    assert told.endswith("Files changed:\n- a.txt (1 bytes)")
    assert kinds(rows) == ["task", "step", "output", "output", "end"]
    made = rows("SELECT details->'ok' AS ok FROM agent_steps WHERE kind = 'output' ORDER BY seq")
    assert [row["ok"] for row in made] == [True, False]
    [first, _] = rows("SELECT outcome FROM runs ORDER BY started_at")
    assert first["outcome"] == "cancelled"
    items = await chat.items(answer.thread_id)
    [stored] = [item for item in items if item["type"] == "workflow"]
    assert stored["workflow"]["summary"]["title"] == "Coder: 1 step, 1 file written, stopped"
    assert badge(next(item for item in items if item["type"] == "widget")) == "Refused"


async def test_what_is_said_to_the_run_itself_ends_the_agent_and_the_assistant_reads_it(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(calls(coder()), calls(run("echo 1")))
    thread = (await chat.say("do it")).thread_id
    [run_id] = [row["id"] for row in rows("SELECT id FROM runs")]
    await model.script({"text": "Then not."})
    said = await chat.http.post(
        f"/chats/{thread}/interactions/{run_id}/messages", json={"text": "no, leave it", "mode": "steer"}
    )
    assert said.status_code == 202
    async with chat.http.stream("GET", f"/chats/{thread}/interactions/{run_id}/events") as stream:
        text = "".join([line async for line in stream.aiter_text()])
    assert "COMPLETED" in text
    requests = await model.finished_requests()
    assert len(requests) == 3, "the agent's model is not asked again"
    messages = requests[-1]["body"]["messages"]
    assert messages[-1]["content"] == "no, leave it"
    assert (await outputs(model))[0].startswith("The coder was stopped. The person wrote something else instead.")


async def test_a_run_that_waits_for_an_agent_is_cancelled_and_its_conversation_deleted(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(calls(coder()), calls(run("echo 1")), calls(coder()), calls(run("echo 2")))
    thread = (await chat.say("do it")).thread_id
    [run_id] = [row["id"] for row in rows("SELECT id FROM runs")]
    assert (await chat.http.post(f"/chats/{thread}/interactions/{run_id}/cancel")).status_code == 200
    assert [row["outcome"] for row in rows("SELECT outcome FROM runs")] == ["cancelled"]
    assert kinds(rows) == ["task", "step", "output", "end"]
    async with chat.http.stream("GET", f"/chats/{thread}/interactions/{run_id}/events") as stream:
        told = "".join([line async for line in stream.aiter_text()])
    assert told.index("event: tool_call") < told.index("event: rejected") < told.index("event: tool_result")
    await chat.say("again", thread)
    await chat.ask("threads.delete", thread_id=thread)
    assert rows("SELECT 1 FROM agent_steps UNION ALL SELECT 1 FROM approvals") == []
    assert rows("SELECT 1 FROM runs WHERE status <> 'ended'") == []


async def test_arguments_that_cannot_be_read_are_told_and_asked_about_by_nobody(
    chat: ChatKit, model: ScriptedModel, files: Files
) -> None:
    broken = {"name": "run_command", "arguments": "{"}
    await model.script(
        calls(coder(), broken | {"name": "add_task"}),
        calls(broken, call("write_file", path="a.txt", content="x")),
        {"text": "It cannot be run."},
        {"text": "Done."},
    )
    answer = await chat.say("do it")
    assert (answer.error, answer.text, cards(answer)) == (None, "Done.", [])
    assert files.of(answer.thread_id) == {"a.txt": "x"}
    inner = (await model.finished_requests())[2]["body"]["messages"]
    check_pairs(inner)
    assert "arguments are not a JSON object" in next(one["content"] for one in inner if one["role"] == "tool")
    await outputs(model)


async def test_what_cannot_be_shown_whole_is_not_asked_and_not_made(
    backend: Backend, asking: dict[str, Any], model: ScriptedModel, rows: Rows, files: Files
) -> None:
    long = "touch a.txt\n" * 300
    await model.script(
        calls(coder("x" * 30_000), call("add_task", title="milk")),
        calls(coder("do it")),
        calls(run(long), run("touch b\u200b.txt"), call("write_file", path="c.txt", content="x")),
        {"text": "It cannot be run."},
        {"text": "Done."},
    )
    async with backend(**asking | {"approvals": ("agents", "run_command")}) as chat:
        answer = await chat.say("do it")
        assert answer.error is None
        [card] = cards(answer)
        assert "task: do it" in json.dumps(card["widget"])
        answer = await decide(chat, card, approve=True)
        assert (answer.error, answer.text, cards(answer)) == (None, "Done.", [])
        assert files.of(card["thread_id"]) == {"c.txt": "x"}
    inner = (await model.finished_requests())[3]["body"]["messages"]
    check_pairs(inner)
    told = [one["content"] for one in inner if one["role"] == "tool"]
    assert [text == NOT_ASKED for text in told] == [True, True, False]
    assert (await outputs(model))[0] == NOT_ASKED
    assert len(rows("SELECT 1 FROM approvals")) == 1


async def test_steps_are_counted_over_what_was_asked(chat: ChatKit, model: ScriptedModel) -> None:
    looking = [calls(call("list_files", path=str(number))) for number in range(6)]
    await model.script(calls(coder()), *looking, calls(run("echo 1")))
    [card] = cards(await chat.say("do it"))
    assert len(await model.finished_requests()) == 8
    await model.script(*[calls(call("list_files", path=str(number))) for number in range(6)])
    rest = await decide(chat, card, approve=True)
    requests = await model.finished_requests()
    assert len(requests) == 10
    assert "10 model steps" in requests[-1]["body"]["messages"][-1]["content"], "the last is the assistant's"
    assert rest.error is not None


async def test_a_tool_of_another_server_is_asked_about_until_it_is_allowed_in_the_conversation(
    backend: Backend, with_agents: dict[str, Any], model: ScriptedModel, rows: Rows, owner: AsyncEngine
) -> None:
    async with serve(create_server().http_app()) as url:
        notes = at(url, "notes", read_only=False)
        await approve(owner, notes)
        saying = calls(call("mcp_notes__say", text="hi"))
        await model.script(calls(RESEARCHER), saying)
        async with backend(**with_agents | {"approvals": ("bulk", "connectors")}, servers=[notes]) as chat:
            answer = await chat.say("say hi")
            [card] = cards(answer)
            shown = json.dumps(card["widget"])
            assert "Let the researcher use the tool mcp.notes.say?" in shown
            assert "Always in this conversation" in shown
            await model.script(saying, {"text": "It said hi twice."}, {"text": "Done."})
            rest = await always(chat, card)
            assert (rest.error, rest.text) == (None, "Done.")
            assert [row["tool"] for row in rows("SELECT tool FROM consents")] == ["mcp_notes__say"]
            assert len(rows("SELECT 1 FROM approvals")) == 1
            told = (await model.finished_requests())[-2]["body"]["messages"]
            check_pairs(told)
            assert [one["content"].split("\n")[1][:7] for one in told if one["role"] == "tool"] == ["hi from"] * 2
        asking = with_agents | {"approvals": ("bulk", "connectors")}
        async with backend(**asking, servers=[replace(notes, tools=frozenset({"say"}))]) as chat:
            await model.script(calls(RESEARCHER), saying)
            [card] = cards(await chat.say("again", answer.thread_id))
        async with backend(**asking, servers=[notes]) as chat:
            await model.script({"text": "Not done."})
            assert (await decide(chat, card, approve=True)).text == "Not done."
            said = (await outputs(model))[-1]
            assert said.startswith("The researcher was stopped. What it may reach is another now")
            items = {item["id"]: item for item in await chat.items(answer.thread_id)}
            assert badge(items[card["id"]]) == "Not done"
        asking = with_agents | {"approvals": ("bulk", "connectors", "agents")}
        async with backend(**asking, servers=[notes, at(url, "web", read_only=False)]) as chat:
            await approve(owner, at(url, "web"))
            await model.script(calls(RESEARCHER), calls(call("mcp_web__say", text="hi")))
            [starting] = cards(await chat.say("once more", answer.thread_id))
            [card] = cards(await decide(chat, starting, approve=True))
        async with backend(**asking, servers=[at(url, "web", read_only=False)]) as chat:
            await model.script({"text": "Not done either."})
            assert (await decide(chat, card, approve=True)).text == "Not done either."
            assert (await outputs(model))[-1].startswith("The researcher was stopped. What it may reach is another now")


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("more", [False, True])
async def test_an_agent_that_nobody_was_asked_about_again_waits_for_what_it_reached_when_it_began(
    backend: Backend, with_agents: dict[str, Any], model: ScriptedModel, owner: AsyncEngine, more: bool, approved: bool
) -> None:
    async with serve(create_server().http_app()) as url:
        notes, web = at(url, "notes", read_only=False), at(url, "web", read_only=False)
        await approve(owner, notes)
        saying, asking = calls(call("mcp_notes__say", text="hi")), with_agents | {"approvals": ("connectors", "agents")}
        async with backend(**asking, servers=[notes]) as chat:
            await model.script(calls(RESEARCHER), {"text": "Seen."}, {"text": "Done."})
            [starting] = cards(answer := await chat.say("look"))
            await always(chat, starting)
            await model.script(calls(RESEARCHER), saying)
            [card] = cards(await chat.say("say hi", answer.thread_id))
        async with backend(**asking, servers=[notes, web] if more else [notes]) as chat:
            await model.script(*([] if more else [{"text": "It said hi."}]), {"text": "Over."})
            assert (await decide(chat, card, approve=approved)).text == "Over."
            stopped = "The researcher was stopped. What it may reach is another now"
            assert (await outputs(model))[-1].startswith(stopped) == more


def test_what_is_unconfined_works_for_one_person_alone() -> None:
    tools = WorkspaceTools(
        "http://127.0.0.1:9/mcp", CallerToken("s", "a"), mode="on", unconfined=False, resend_seconds=1
    )
    tools.confinement = "none"
    assert not tools.runs_commands


@pytest.mark.long
async def test_without_a_confinement_each_program_is_asked_about(
    backend: Backend, with_agents: dict[str, Any], model: ScriptedModel, rows: Rows
) -> None:
    with served_workspace(WORKSPACE_CONFINEMENT="none") as (service, directory):
        unconfined = with_agents | {"workspace_url": f"{service.url}/mcp", "agents": "on", "approvals": ("none",)}
        async with backend(**unconfined) as chat:
            await model.script(calls(coder()), calls(run("echo 1 > a.txt"), call("search_files", pattern="x")))
            answer = await chat.say("do it")
            first, second = cards(answer)
            assert "Nothing confines it" in json.dumps(first["widget"])
            instructions = (await model.finished_requests())[1]["body"]["messages"][0]["content"]
            assert "Nothing confines them, and the person is asked" in instructions
            assert "no internet" not in instructions
            assert (await chat.http.get("/ready")).json()["agents"] == {"offered": True, "confinement": "none"}
            assert "Always" not in json.dumps(first["widget"])
            assert "Let the coder search files?" in json.dumps(second["widget"])
            assert Files(directory).of(answer.thread_id) == {}
            kept = await chat.http.post(f"/chats/{answer.thread_id}/commit", json={"message": "all of it"})
            assert "nothing confines git here" in kept.json()["error"]
            await decide(chat, second, approve=False)
            await model.script({"text": "Done."}, {"text": "It is done."})
            assert (await decide(chat, first, approve=True)).text == "It is done."
            assert Files(directory).of(answer.thread_id) == {"a.txt": "1\n"}
            assert UNKNOWN_OUTCOME not in str(await outputs(model))


async def away(*_: Any, **__: Any) -> Any:
    raise OperationalError("SELECT", {}, psycopg.OperationalError("gone"))


async def test_an_agent_that_can_neither_wait_nor_go_on_is_ended_with_its_answer(
    backend: Backend, asking: dict[str, Any], model: ScriptedModel, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop is there before it waits, or the database goes away before it waits, or before it goes on."""

    async def stopping(*_: Any, **__: Any) -> dict[int, str]:
        rows("UPDATE runs SET stop_requested = true WHERE outcome IS NULL")
        return {}

    async with backend(**asking, lease_seconds=3.0) as chat:  # for so long a wait is tried
        thread, told = None, list[str]()
        for room, name, instead in (
            (answers, "titles_now", stopping),
            (decisions, "wait", away),
            (resuming, "load", away),
        ):
            await model.script(calls(coder()), calls(call("list_files", path="."), run("echo 1")))
            with monkeypatch.context() as breaking:
                if room is not resuming:
                    breaking.setattr(room, name, instead)
                answer = await chat.say("do it", thread)
                breaking.setattr(room, name, instead)
                for card in cards(answer):
                    await decide(chat, card, approve=True)
            thread = answer.thread_id
            [last] = rows("SELECT id, status FROM runs ORDER BY started_at DESC LIMIT 1")
            assert last["status"] == "ended"
            steps = rows("SELECT kind, content FROM agent_steps WHERE run_id = %s ORDER BY seq", last["id"])
            assert [step["kind"] for step in steps] == ["task", "step", "output", "output", "end"], name
            assert steps[3]["content"]["output"] == NOT_MADE
            assert steps[4]["content"]["output"].startswith(
                "The coder was stopped. The answer was ended where it waited"
            )
            told.append(steps[4]["content"]["output"])
            shown = [item["workflow"] for item in await chat.items(thread) if item["type"] == "workflow"]
            assert [one["summary"]["title"] for one in shown] == ["Coder: 1 step, stopped"] * len(told)
            await model.reset()
        assert len(rows("SELECT 1 FROM approvals")) == 1
        await model.script({"text": "I see."})
        await chat.say("what happened?", thread)
        assert await outputs(model) == told


async def test_a_refusal_is_told_when_the_process_died_before_its_outputs_were_written(
    backend: Backend, asking: dict[str, Any], model: ScriptedModel, rows: Rows
) -> None:
    async with backend(**asking | {"approvals": ("run_command", "delete_task")}) as chat:
        thread = await with_tasks(chat, model, 1)
        await model.script(calls(coder(), deleting(1)), calls(run("echo 1")))
        assert len(cards(await chat.say("do it", thread))) == 2
        rows("UPDATE approvals SET decision = 'refused', reason = 'not now', decided_at = now()")
        rows("UPDATE runs SET status = 'ended', outcome = 'interrupted', ended_at = now() WHERE status = 'waiting'")
        await model.script({"text": "I see."})
        await chat.say("what happened?", thread)
        inside, own = (await outputs(model))[-2:]
        assert inside.startswith(UNKNOWN_OUTCOME)
        assert "- Running echo 1: The person refused this call" in inside
        assert "outcome unknown" not in inside
        assert own.startswith("The person refused this call")
        assert own.endswith("“not now”")


async def test_stop_ends_those_that_wait_with_the_one_that_works(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    slow = {"text": "x", "delay": 30}
    await model.script(calls(coder(), RESEARCHER), calls(run("echo 1")), slow)
    async with chat.open("threads.create", input=user_input("do both")) as events:
        async for event in events:
            if event["type"] == "progress_update" and "researcher thinks" in event["text"]:
                break
        await model.received_requests(3)
    [ended] = await until(lambda: rows("SELECT outcome, conversation_id FROM runs WHERE outcome IS NOT NULL"))
    assert ended["outcome"] == "cancelled"
    assert kinds(rows) == ["task", "step", "task", "end", "output", "end"]
    await model.reset()
    await model.script({"text": "Yes?"})
    await chat.say("go on", ended["conversation_id"])
    assert [one.split("\n")[0] for one in await outputs(model)] == [
        "The coder was stopped. What it did before:",
        "The researcher was stopped. What it did before:",
    ]


async def test_stop_and_failures_after_a_decision_leave_nothing_open(
    chat: ChatKit, model: ScriptedModel, rows: Rows, workspace: tuple[str, Path]
) -> None:
    """Two wait: the first one's call is stopped, or its provider fails, and the second one is ended with it."""
    asking = [calls(coder("first"), coder("second")), calls(run(COMMAND)), calls(run("echo 2"))]
    await model.script(*asking)
    answer = await chat.say("do both")
    first, second = cards(answer)
    await decide(chat, second, approve=True)
    stopping = asyncio.create_task(decide(chat, first, approve=True))
    await until(lambda: [*workspace[1].glob(f"*/{answer.thread_id}/begun")])
    [waited] = rows("SELECT id FROM runs")
    await chat.http.post(f"/chats/{answer.thread_id}/interactions/{waited['id']}/cancel")
    await stopping
    assert sleeping() == []
    assert [row["outcome"] for row in rows("SELECT outcome FROM runs")] == ["cancelled"]
    assert sorted(kinds(rows)) == sorted(["task", "step", "output", "end"] * 2)
    await model.reset()
    await model.script(calls(coder("first"), coder("second")), calls(run("echo 1")), calls(run("echo 2")))
    answer = await chat.say("again", answer.thread_id)
    first, second = cards(answer)
    await decide(chat, second, approve=True)
    await model.script({"status": 401, "body": {"error": {"message": "no"}}})
    failed = await decide(chat, first, approve=True)
    assert "key" in (failed.error or {})["message"]
    assert sorted(kinds(rows)) == sorted(["task", "step", "output", "end"] * 4)
    await model.reset()
    await model.script({"text": "I see."})
    await chat.say("what happened?", answer.thread_id)
    told = [one.split("\n")[0] for one in await outputs(model)]
    assert told[:2] == ["The coder was stopped. What it did before:"] * 2
    assert told[2].startswith("The coder could not finish.")
    assert told[3] == "The coder was stopped. What it did before:"
