"""Agents at work for the assistant, with real files and processes, and a scripted model for both."""

import asyncio
import json
from typing import Any

import pytest

from backend.tools.workspace.tools import WorkspaceTools
from tests.backend.agents_at_work import Files, coder, work
from tests.backend.completions import check_pairs
from tests.backend.conftest import Backend, Rows
from tests.backend.consent import call, calls
from tests.chatkit_client import ChatKit
from tests.scripted_model import ScriptedModel
from tests.waiting import until
from tests.workspace_service import served_workspace


async def test_what_no_database_can_hold_ends_no_turn(chat: ChatKit, model: ScriptedModel) -> None:
    strange = calls(call("write_file", path="a\0b", content="x"), call("nothing\0\x1b", x="\0"))
    await model.script(calls(coder("do\0 it")), strange, {"text": "Done\0."}, {"text": "It is done."})
    answer = await chat.say("do it")
    assert (answer.error, answer.text) == (None, "It is done.")
    assert "\0" not in str(work(answer))


async def test_the_coder_works_in_steps_that_are_shown_and_kept(
    chat: ChatKit, model: ScriptedModel, rows: Rows, files: Files
) -> None:
    await model.script(
        calls(coder("write a list to list.md", 3)),
        calls(call("write_file", path="list.md", content="- flour\n"), text="I write it."),
        calls(
            call("run_command", command="cat list.md; exit 3"),
            call("edit_file", path="list.md", old_text="flour", new_text="milk"),
        ),
        {"text": "The list is written."},
        {"text": "Shall I complete task 3?"},
    )
    answer = await chat.say("do task 3")
    assert answer.error is None
    assert answer.text == "Shall I complete task 3?", "what the agent says is no message"
    assert files.of(answer.thread_id) == {"list.md": "- milk\n"}
    shown = work(answer)
    assert shown["summary"]["title"] == "Coder: 3 steps, 1 file written"
    titles = [task.get("title") for task in shown["tasks"]]
    assert titles == [
        "Coder: write a list to list.md",
        None,
        "Wrote list.md",
        "Ran cat list.md; exit 3",
        "Changed list.md",
    ]
    assert f"/chats/{answer.thread_id}/files/list.md) (8 bytes)" in shown["tasks"][2]["content"]
    assert "Exit code 3" in shown["tasks"][3]["content"]
    assert "-- flour\n+- milk" in shown["tasks"][4]["content"]

    bodies = [request["body"] for request in await model.finished_requests()]
    assert [body["temperature"] for body in bodies] == [0.7, 0.2, 0.2, 0.2, 0.7]
    requests = [body["messages"] for body in bodies]
    for messages in requests:
        check_pairs(messages)
    said = requests[1][1]["content"]
    assert said.startswith("Your work (task 3 of the person's list): write a list to list.md")
    assert '"do task 3"' in said
    output = json.loads(json.dumps(requests[4][-1]["content"]))
    assert output == "The list is written.\n\nFiles changed:\n- list.md (7 bytes)"
    assert [row["kind"] for row in rows("SELECT kind FROM agent_steps ORDER BY seq")] == [
        *("task", "step", "output", "step", "output", "output", "step", "end")
    ]
    [detail] = rows("SELECT details FROM agent_steps WHERE details->>'exit_code' = '3'")
    assert detail["details"]["stdout"] == "- flour\n"
    [run] = rows("SELECT usage, agent_runs FROM runs")
    assert run["agent_runs"] == 1
    assert run["usage"]["requests"] == 5
    assert run["usage"]["by_agent"]["coder"]["requests"] == 3
    stored = [item for item in await chat.items(answer.thread_id) if item["type"] == "workflow"]
    assert stored[0]["workflow"] == shown, "after a reload it looks the same"

    await model.script({"text": "Good."})
    await chat.say("thanks", answer.thread_id)
    last = (await model.finished_requests())[-1]["body"]["messages"]
    assert last[: len(requests[4])] == requests[4], "the history holds the outer call only"


async def test_agents_read_nothing_of_what_the_person_wants_remembered(chat: ChatKit, model: ScriptedModel) -> None:
    await chat.http.put("/memory", json={"text": "I work nights"}, headers={"If-Match": "*"})
    await model.script(
        calls(coder(), call("do_with_researcher", task="look", task_id=None)),
        *({"text": "Done."}, {"text": "Looked."}, {"text": "Both are done."}),
    )
    await chat.say("do both")
    told = ["I work nights" in str(request["body"]) for request in await model.finished_requests()]
    assert told == [True, False, False, True]


async def test_an_error_of_the_provider_inside_is_told_as_what_it_is(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    broken = {"status": 401, "body": {"error": {"message": "no"}}}
    await model.script(calls(coder()), calls(call("list_files")), broken)
    answer = await chat.say("do task 3")
    assert answer.error is not None
    assert "key" in answer.error["message"]
    assert len(await model.finished_requests()) == 3, "nobody asks again"
    assert work(answer)["summary"]["title"] == "Coder: 1 step, failed"
    await model.script({"text": "I see."})
    await chat.say("what happened?", answer.thread_id)
    messages = (await model.finished_requests())[-1]["body"]["messages"]
    check_pairs(messages)
    [output] = [message["content"] for message in messages if message["role"] == "tool"]
    assert "could not finish" in output
    assert "- Listed the files" in output


async def test_steps_are_counted_over_the_assistant_and_its_agents(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    looking = [calls(call("list_files", path=str(number))) for number in range(20)]
    await model.script(calls(coder()), *looking)
    answer = await chat.say("do task 3")
    requests = await model.finished_requests()
    assert len(requests) == 10
    assert "10 model steps" in requests[-1]["body"]["messages"][-1]["content"], "the last is the assistant's"
    assert answer.error is not None, "which wanted another call made"
    assert "too many steps" in answer.error["message"]
    await model.reset()
    await model.script({"text": "Nothing."})
    check_pairs(
        (await chat.say("and?", answer.thread_id)) and (await model.finished_requests())[-1]["body"]["messages"]
    )


async def test_at_most_six_calls_of_one_answer_are_made(chat: ChatKit, model: ScriptedModel, files: Files) -> None:
    writing = [call("write_file", path=f"{number}.txt", content="x") for number in range(9)]
    await model.script(calls(coder()), calls(*writing), {"text": "Six."}, {"text": "Done."})
    answer = await chat.say("do task 3")
    assert answer.error is None
    assert sorted(files.of(answer.thread_id)) == [f"{number}.txt" for number in range(6)]
    messages = (await model.finished_requests())[2]["body"]["messages"]
    check_pairs(messages)
    assert ["at most 6" in one["content"] for one in messages if one["role"] == "tool"] == [False] * 6 + [True] * 3


async def test_what_commands_write_is_among_the_files_written(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    fake = "[Open fake](http://localhost/chats/x/files/fake)"
    await model.script(
        calls(coder("count", 3)),
        calls(call("write_file", path="a.txt", content="x")),
        calls(call("run_command", command=f"echo 12 >'out (1).txt'; echo y >>a.txt; echo '{fake}'")),
        {"text": "Counted."},
        {"text": "It is done."},
    )
    answer = await chat.say("do task 3")
    shown = work(answer)
    assert shown["summary"]["title"] == "Coder: 2 steps, 2 files written"
    head, *links = shown["tasks"][2]["content"].split("\n\n")
    assert head.startswith("Exit code 0")
    at = f"/chats/{answer.thread_id}/files"
    assert [link.partition("(http")[0] + link.partition(at)[2] for link in links[:2]] == [
        "[Open a.txt]/a.txt) (3 bytes)",
        "[Open out (1).txt]/out%20%281%29.txt) (3 bytes)",
    ]
    assert fake in links[2]
    output = (await model.finished_requests())[-1]["body"]["messages"][-1]["content"]
    assert output == "Counted.\n\nFiles changed:\n- a.txt (3 bytes)\n- out (1).txt (3 bytes)"
    assert [
        row["files"] for row in rows("SELECT content->'files' AS files FROM agent_steps WHERE kind = 'output'")
    ] == [
        ["a.txt"],
        ["a.txt", "out (1).txt"],
    ]


async def test_two_agents_of_one_answer_work_one_after_the_other(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(
        calls(coder("first"), call("do_with_researcher", task="second", task_id=None)),
        calls(call("write_file", path="a.txt", content="x")),
        {"text": "Written."},
        calls(call("read_file", path="a.txt"), call("list_tasks")),
        {"text": "It holds x."},
        {"text": "Both are done."},
    )
    answer = await chat.say("do both")
    assert answer.text == "Both are done."
    shown = [item["workflow"]["summary"]["title"] for item in answer.items if item["type"] == "workflow"]
    assert shown == ["Coder: 1 step, 1 file written", "Researcher: 2 steps"]
    requests = [request["body"] for request in await model.finished_requests()]
    tools = [{tool["function"]["name"] for tool in request["tools"]} for request in requests]
    assert tools[1] == {
        *("list_files", "read_file", "search_files", "write_file", "edit_file", "run_command", "run_python", "commit")
    }
    assert tools[3] == {"list_files", "read_file", "search_files", "run_python", "list_tasks"}
    assert {"add_task", "list_tasks", "complete_task", "update_task", "delete_task"} < tools[0]
    check_pairs(requests[-1]["messages"])
    [run] = rows("SELECT usage, agent_runs FROM runs")
    assert {name: used["requests"] for name, used in run["usage"]["by_agent"].items()} == {"coder": 2, "researcher": 2}
    assert (run["usage"]["requests"], run["agent_runs"]) == (6, 2)


async def test_agents_are_started_so_often_in_a_day(
    backend: Backend, with_agents: dict[str, Any], model: ScriptedModel, rows: Rows
) -> None:
    async with backend(**with_agents, limit_agent_runs=1) as chat:
        await model.script(calls(coder()), {"text": "Done."}, {"text": "It is done."}, calls(coder()), {"text": "No."})
        first = await chat.say("do task 3")
        again = await chat.say("do task 4")
        assert (first.text, again.text) == ("It is done.", "No.")
        assert "1 times in a day" in (await model.finished_requests())[-1]["body"]["messages"][-1]["content"]
        assert [row["agent_runs"] for row in rows("SELECT agent_runs FROM runs ORDER BY id")] == [1, 0]


async def test_without_agents_a_request_is_what_it_was(
    backend: Backend, with_agents: dict[str, Any], model: ScriptedModel
) -> None:
    """And so it is where nothing was found that confines commands."""
    asked: list[Any] = []
    with served_workspace(WORKSPACE_CONFINEMENT="none") as (service, _):
        unconfined = with_agents | {"workspace_url": f"{service.url}/mcp"}
        off, none = {"agents": "off"}, {"workspace_url": None, "workspace_token_secret": None}
        for settings in (with_agents | none, with_agents | off, unconfined, unconfined | {"agents": "on"}):
            await model.script({"text": "Hello."})
            async with backend(**settings) as chat:
                await chat.say("hello")
            body = (await model.finished_requests())[-1]["body"]
            asked.append({**body, "messages": [body["messages"][0]]})
    assert asked[0] == asked[1] == asked[2]
    assert {tool["function"]["name"] for tool in asked[3]["tools"][5:]} == {"do_with_coder", "do_with_researcher"}


async def test_where_nothing_was_found_that_confines_commands_agents_have_files_alone_if_they_are_on(
    backend: Backend, with_agents: dict[str, Any], model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = WorkspaceTools.look

    async def found_none(self: WorkspaceTools) -> bool:
        is_there = await look(self)
        self.confinement = None
        return is_there

    monkeypatch.setattr(WorkspaceTools, "look", found_none)
    await model.script(calls(coder()), calls(call("run_command", command="echo 1")), {"text": "No."}, {"text": "No."})
    async with backend(**with_agents | {"agents": "on"}) as chat:
        assert (await chat.say("do it")).error is None
        assert (await chat.http.get("/ready")).json()["agents"] == {"offered": True, "confinement": None}
    own, agents, told, _ = [request["body"] for request in await model.finished_requests()]
    names = [[tool["function"]["name"] for tool in body["tools"]] for body in (own, agents)]
    assert len(names[0]) == 7, "the five task tools are in every request"
    assert set(names[1]) == {"list_files", "read_file", "write_file", "edit_file"}
    assert "not found" in told["messages"][-1]["content"]


async def test_what_is_said_while_an_agent_works_is_read_by_it_and_then_by_the_assistant(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    waiting = "echo 1 > begun; while [ ! -e go ]; do sleep 0.05; done"
    await model.script(
        calls(coder("bake")),
        calls(call("run_command", command=waiting)),
        calls(call("list_files")),
        {"text": "Baked with oat milk."},
        {"text": "It is done."},
    )
    answering = asyncio.create_task(chat.say("bake"))
    [run] = await until(lambda: rows("SELECT id, conversation_id FROM runs"))
    thread, steps = run["conversation_id"], "SELECT 1 FROM agent_steps WHERE kind = 'step'"
    await until(lambda: rows(steps))
    said = {"text": "take oat milk", "mode": "steer"}
    queued = await chat.http.post(f"/chats/{thread}/interactions/{run['id']}/messages", json=said)
    assert queued.status_code == 202
    assert (await chat.http.put(f"/chats/{thread}/files/go", content=b"x")).is_success
    answer = await answering
    assert (answer.error, answer.text) == (None, "It is done.")
    _, first, second, third, last = [request["body"]["messages"] for request in await model.finished_requests()]
    assert "oat milk" not in json.dumps(first)
    assert second[-1] == {"role": "user", "content": "The person writes meanwhile: take oat milk"}
    assert third[: len(second)] == second
    for messages in (second, third, last):
        check_pairs(messages)
    assert last[-1]["content"] == "take oat milk", "which the assistant reads as theirs"
    assert "It has read what the person wrote while it worked." in next(
        one["content"] for one in last if one["role"] == "tool"
    )
