"""Agents at work for the assistant: delegation, what is shown, limits, approvals, stop, and what ends them early."""

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from common.tokens import make_call_token
from offline_model.app import create_app as create_offline_model
from offline_model.settings import OfflineSettings
from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel
from tests.serving import serve
from tests.support.approvals import decide, newest_run, pending
from tests.support.backends import user_at
from tests.support.completions import check_pairs
from tests.support.model_requests import agent_of, outputs_of, requests_to
from tests.support.script import add_task, call, calls, delete_tasks, endless_answer, says, start_coder
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from tests.workspace_service import WORKSPACE_TOKEN_SECRET, run_workspace
from todo_client.chatkit import request, user_input

Json = dict[str, Any]
WITHOUT_AGENTS = 6  # the task tools, and the one that makes schedules
CODER = call("do_with_coder", task="do it", task_id=None)
RESEARCHER = call("do_with_researcher", task="find out", task_id=None)
WRITES = call("write_file", path="a.txt", content="x")
SECONDS = str(50_000 + os.getpid() % 10_000)
"""For so many seconds nobody else sleeps."""
SLEEPS = f"echo so far; touch begun; sleep {SECONDS}"


def runs_command(command: str) -> Json:
    return call("run_command", command=command)


async def outputs(model: ScriptedModel, request: int = -1) -> list[str]:
    """What the model read of calls in a request; in none of all requests is a call without its output."""
    bodies = await requests_to(model)
    for body in bodies:
        check_pairs(body["messages"])
    return outputs_of(bodies[request])


def work_of(items: list[Json]) -> list[Json]:
    """The workflows of agents."""
    return [item["workflow"] for item in items if item["type"] == "workflow" and item["workflow"]["type"] == "custom"]


async def files(user: User, thread: str) -> dict[str, str]:
    paths = [file["path"] for file in (await user.runs.files(thread))["files"]]
    return {path: (await user.runs.http.get(f"/chats/{thread}/files/{path}")).text for path in paths}


class TestWork:
    async def test_steps_are_shown_and_kept(self, user: User, model: ScriptedModel) -> None:
        await model.script(
            calls(call("do_with_coder", task="write a list to list.md", task_id=3)),
            calls(call("write_file", path="list.md", content="- flour\n"), text="I write it."),
            calls(
                runs_command("cat list.md; exit 3"),
                call("edit_file", path="list.md", old_text="flour", new_text="milk"),
            ),
            says("The list is written."),
            says("Shall I complete task 3?"),
        )
        answer = await user.chatkit.say("do task 3")
        thread = answer.thread_id
        assert (answer.error, answer.text) == (None, "Shall I complete task 3?"), "what an agent says is no message"
        assert await files(user, thread) == {"list.md": "- milk\n"}
        [shown] = work_of(answer.items)
        assert len(shown["tasks"]) == 5, "the assignment, what it said, and three calls"
        assert f"/chats/{thread}/files/list.md) (8 bytes)" in shown["tasks"][2]["content"]
        assert "Exit code 3" in shown["tasks"][3]["content"]
        assert "-- flour\n+- milk" in shown["tasks"][4]["content"]
        assert work_of(await user.chatkit.items(thread)) == [shown], "after a reload it looks the same"

        bodies = await requests_to(model)
        assert [agent_of(body) for body in bodies] == ["assistant", *["coder"] * 3, "assistant"]
        assert await outputs(model) == ["The list is written.\n\nFiles changed:\n- list.md (7 bytes)"]
        run = await newest_run(user, thread)
        assert run["usage"]["requests"] == 5
        assert [event["type"] for event in run["agent_events"]] == ["TOOL_CALL", "TOOL_RESULT", "ANSWER"]
        steps = (await user.runs.get_steps(thread, run["id"]))["steps"]
        assert [step["kind"] for step in steps] == [
            *("task", "step", "output", "step", "output", "output", "step", "end")
        ]
        assert steps[4]["details"]["stdout"] == "- flour\n"

    async def test_two_agents_work_one_after_the_other(self, user: User, model: ScriptedModel) -> None:
        await model.script(
            calls(CODER, RESEARCHER),
            calls(WRITES),
            says("Written."),
            calls(call("read_file", path="a.txt"), call("list_tasks")),
            says("It holds x."),
            says("Both are done."),
        )
        answer = await user.chatkit.say("do both")
        assert answer.text == "Both are done."
        assert len(work_of(answer.items)) == 2
        bodies = await requests_to(model)
        agents = [agent_of(body) for body in bodies]
        assert agents == ["assistant", "coder", "coder", "researcher", "researcher", "assistant"]
        tools = [{tool["function"]["name"] for tool in bodies[number]["tools"]} for number in (1, 3)]
        reading = {"list_files", "read_file", "search_files", "run_python"}
        assert tools == [reading | {"write_file", "edit_file", "run_command", "commit"}, reading | {"list_tasks"}]
        assert len(await outputs(model)) == 2

    async def test_text_that_no_database_holds(self, user: User, model: ScriptedModel) -> None:
        strange = calls(call("write_file", path="a\0b", content="x"), call("nothing\0\x1b", x="\0"))
        assignment = calls(call("do_with_coder", task="do\0 it", task_id=None))
        await model.script(assignment, strange, says("Fine\0."), says("It is so."))
        answer = await user.chatkit.say("do it")
        assert (answer.error, answer.text) == (None, "It is so.")
        assert "\0" not in str(work_of(answer.items))

    async def test_offline_model(self, services: Services, user: User, stored: Stored) -> None:
        """It carries two kinds of tasks out, as a demonstration, and asks for no approval of what it cannot do."""
        async with (
            serve(create_offline_model(OfflineSettings()), lifespan="off") as url,
            user_at(services, user, LLM_BASE_URL=f"{url}/v1") as there,
        ):
            thread = (await there.chatkit.say("add write a shopping list for pancakes to shopping.md")).thread_id
            await there.chatkit.say("add count the words of notes.txt", thread)
            await there.runs.put_file(thread, "notes.txt", b"one two\nthree four five\n")
            written = await there.chatkit.say("do task 1", thread)
            assert "200 g flour" in written.text
            assert "200 g flour" in (await files(there, thread))["shopping.md"]
            await there.chatkit.say("yes", thread)
            assert [task.status for task in stored.tasks(user.name)] == ["completed", "pending"]
            assert "5 words" in (await there.chatkit.say("do task 2", thread)).text
            await there.chatkit.say("add call mum", thread)
            assert "real model" in (await there.chatkit.say("do task 3", thread)).text


class TestLimits:
    async def test_model_turns_of_agents(self, services: Services, user: User, model: ScriptedModel) -> None:
        """The assistant is told that they are used up."""
        looking = [calls(call("list_files", path=str(number))) for number in range(8)]
        await model.script(calls(CODER), *looking, says("It did not finish."))
        async with user_at(services, user, AGENT_MODEL_TURNS="8") as there:
            answer = await there.chatkit.say("do it")
            assert (answer.error, answer.text) == (None, "It did not finish.")
            bodies = await requests_to(model)
            assert [agent_of(body) for body in bodies] == ["assistant", *["coder"] * 8, "assistant"]
            assert "used up" in (await outputs(model))[0]
            await model.script(calls(CODER), says("Fine."), says("It is so."))
            assert (await there.chatkit.say("again", answer.thread_id)).text == "It is so.", "each message has as many"
        await outputs(model)

    async def test_model_turns_before_an_approval_count(
        self, services: Services, user: User, model: ScriptedModel
    ) -> None:
        looking = [calls(call("list_files", path=str(number))) for number in range(7)]
        async with user_at(services, user, APPROVALS="run_command", AGENT_MODEL_TURNS="8") as there:
            await model.script(calls(CODER), *looking[:6], calls(runs_command("echo 1")))
            thread = (await there.chatkit.say("do it")).thread_id
            assert len(await requests_to(model)) == 8
            await model.script(looking[6], says("It did not finish."))
            run = await decide(there, thread, pending(await newest_run(there, thread))[0])
        assert run["status"] == "COMPLETED"
        assert len(await requests_to(model)) == 10
        assert "used up" in (await outputs(model))[0]

    @pytest.mark.parametrize("agent", ["assistant", "coder"])
    async def test_calls_of_one_response(self, agent: str, user: User, model: ScriptedModel, stored: Stored) -> None:
        """Six are made; of the others the model is told that they are not."""
        if agent == "coder":
            writing = [call("write_file", path=f"{number}.txt", content="x") for number in range(9)]
            await model.script(calls(CODER), calls(*writing), says("Six."), says("Fine."))
        else:
            await model.script(calls(*(call("add_task", title=str(n)) for n in range(9))), says("Fine."))
        answer = await user.chatkit.say("do it")
        assert (answer.error, answer.text) == (None, "Fine.")
        made = await files(user, answer.thread_id) if agent == "coder" else stored.titles(user.name)
        assert len(made) == 6
        told = await outputs(model, 2 if agent == "coder" else -1)
        assert len(set(told[:6])) == 6
        assert len(told) == 9
        assert len(set(told[6:])) == 1
        events = await user.runs.read(answer.thread_id, (await newest_run(user, answer.thread_id))["id"])
        tool = "write_file" if agent == "coder" else "add_task"
        called = [event.data for event in events if event.data.get("tool_name") == tool]
        results = [data for data in called if data["type"] == "TOOL_RESULT"]
        assert [result["is_error"] for result in results] == [False] * 6 + [True] * 3
        assert {result["tool_output"] for result in results if result["is_error"]} == set(told[6:])

    async def test_agents_of_a_day(self, services: Services, user: User, model: ScriptedModel) -> None:
        async with user_at(services, user, LIMIT_AGENT_RUNS="1") as there:
            await model.script(calls(CODER), says("Fine."), says("It is so."), calls(CODER), says("No."))
            assert (await there.chatkit.say("do it")).text == "It is so."
            again = await there.chatkit.say("do it again")
        assert again.text == "No."
        assert work_of(again.items) == []

    LINES = tuple(f"{number} = {number} * {number}\n" for number in range(1, 2_001))
    PARTS = (LINES[:350], LINES[350:700], LINES[700:1_050], LINES[1_050:1_375], LINES[1_375:1_700], LINES[1_700:])

    @staticmethod
    def writing(lines: tuple[str, ...], **more: Any) -> Json:
        """Cut at the output limit of the request."""
        return calls(call("write_file", path="long.py", content="".join(lines), **more)) | {"keeps_limit": True}

    @pytest.mark.long
    async def test_file_over_the_output_limit(self, services: Services, user: User, model: ScriptedModel) -> None:
        """The call that was cut off is not made; the coder is told, and writes the file in parts."""
        first, *others = self.PARTS
        await model.script(
            calls(CODER),
            self.writing(self.LINES),
            self.writing(first),
            *(self.writing(part, append=True) for part in others),
            says("It is written."),
            says("Fine."),
        )
        async with user_at(services, user, LLM_AGENT_MAX_TOKENS="2000") as there:
            answer = await there.chatkit.say("write the file")
            assert (answer.error, answer.text) == (None, "Fine.")
            assert (await files(there, answer.thread_id))["long.py"] == "".join(self.LINES)
        bodies = await requests_to(model)
        assert [body["max_tokens"] for body in bodies] == [1_000, *[2_000] * 8, 1_000]
        assert "2,000 tokens" in (await outputs(model, 8))[0]
        for message in bodies[8]["messages"]:
            for made in message.get("tool_calls") or ():
                assert isinstance(json.loads(made["function"]["arguments"]), dict), "as strict servers want it"

    async def test_assistant_over_the_output_limit(self, user: User, model: ScriptedModel, stored: Stored) -> None:
        wanted = call("add_task", title="milk"), call("add_task", title="bread", description="x" * 8_000)
        await model.script(calls(*wanted) | {"keeps_limit": True}, says("Only milk."))
        answer = await user.chatkit.say("add both")
        assert (answer.error, answer.text) == (None, "Only milk.")
        assert stored.titles(user.name) == ["milk"]
        assert "1,000 tokens" in (await outputs(model))[1]

    async def test_call_over_the_output_limit_is_not_asked_about(
        self, services: Services, user: User, model: ScriptedModel
    ) -> None:
        cut = calls(call("add_task", title="a", description="x" * 8_000)) | {"keeps_limit": True}
        await model.script(cut, says("No."))
        async with user_at(services, user, APPROVALS="always") as there:
            assert (await there.chatkit.say("add it")).text == "No."


class TestOffered:
    async def test_without_agents(self, services: Services, user: User, model: ScriptedModel) -> None:
        """Requests are the same whether agents are off or there is no workspace for them."""
        bodies: list[Json] = []
        for settings in ({"AGENTS": "off"}, {"WORKSPACE_URL": "", "WORKSPACE_TOKEN_SECRET": ""}, {}):
            await model.script(says("Hello."))
            async with user_at(services, user, **settings) as there:
                await there.chatkit.say("hello")
            body = (await requests_to(model))[-1]
            bodies.append({**body, "messages": body["messages"][0]})
        assert bodies[0] == bodies[1]
        assert len(bodies[0]["tools"]) == WITHOUT_AGENTS
        assert [tool["function"]["name"] for tool in bodies[2]["tools"][WITHOUT_AGENTS:]] == [
            "do_with_coder",
            "do_with_researcher",
        ]

    @pytest.mark.long
    async def test_workspace_that_is_slow_as_the_backend_starts(
        self, services: Services, user: User, model: ScriptedModel
    ) -> None:
        await model.script(says("Hello."))
        workspace = services.workspace
        workspace.send(signal.SIGSTOP)
        asyncio.get_running_loop().call_later(2, workspace.send, signal.SIGCONT)
        async with user_at(services, user) as there:
            await there.chatkit.say("hello")
        assert len((await requests_to(model))[0]["tools"]) == WITHOUT_AGENTS + 2


@pytest.fixture(scope="module")
def unconfined() -> Iterator[ServiceProcess]:
    """A workspace in which nothing confines commands."""
    with run_workspace(WORKSPACE_CONFINEMENT="none") as (service, _):
        yield service


class TestWithoutConfinement:
    async def test_agents_are_off_unless_turned_on(
        self, unconfined: ServiceProcess, services: Services, model: ScriptedModel
    ) -> None:
        offered: list[int] = []
        for agents in ("auto", "on"):
            local = {"AUTH_MODE": "none", "WORKSPACE_URL": f"{unconfined.url}/mcp", "AGENTS": agents}
            await model.script(says("Hello."))
            async with user_at(services, **local) as there:
                await there.chatkit.say("hello")
            offered.append(len((await requests_to(model))[-1]["tools"]) - WITHOUT_AGENTS)
        assert offered == [0, 2]

    @pytest.mark.long
    async def test_each_program_is_asked_about(
        self, unconfined: ServiceProcess, services: Services, model: ScriptedModel
    ) -> None:
        local = {"AUTH_MODE": "none", "WORKSPACE_URL": f"{unconfined.url}/mcp", "AGENTS": "on", "APPROVALS": "none"}
        async with user_at(services, **local) as there:
            await model.script(calls(CODER), calls(runs_command("echo 1 > a.txt"), call("search_files", pattern="x")))
            thread = (await there.chatkit.say("do it")).thread_id
            first, second = pending(await newest_run(there, thread))
            assert "without a sandbox" in first["text"]
            assert (await there.runs.ready())["agents"] == {"offered": True, "confinement": "none"}
            assert await files(there, thread) == {}
            refused = await there.runs.http.post(f"/chats/{thread}/commit", json={"message": "all of it"})
            assert refused.status_code >= 400
            await decide(there, thread, second, approved=False)
            await model.script(says("Fine."), says("It is so."))
            assert (await decide(there, thread, first))["status"] == "COMPLETED"
            assert await files(there, thread) == {"a.txt": "1\n"}


ASKING = {"APPROVALS": "bulk,run_command"}


class TestApprovals:
    async def test_call_of_a_coder(self, services: Services, user: User, model: ScriptedModel) -> None:
        """It is asked with the whole command, what needs no approval is done before, and the coder goes on after."""
        before = calls(WRITES, runs_command("echo once >> b.txt\ncat a.txt"), text="I write.")
        await model.script(calls(CODER), before)
        async with user_at(services, user, **ASKING) as there:
            answer = await there.chatkit.say("do it")
            thread = answer.thread_id
            [asked] = pending(await newest_run(there, thread))
            assert (asked["agent"], asked["tool_name"]) == ("coder", "run_command")
            assert "echo once >> b.txt" in asked["text"]
            assert "cat a.txt" in asked["text"]
            assert await files(there, thread) == {"a.txt": "x"}
            await model.script(says("It holds x."), says("Fine."))
            assert (await decide(there, thread, asked))["status"] == "COMPLETED"
            assert await files(there, thread) == {"a.txt": "x", "b.txt": "once\n"}
            [shown] = work_of(await there.chatkit.items(thread))
            assert len(shown["tasks"]) == 4
        requests = [body["messages"] for body in await requests_to(model)]
        assert requests[2][: len(requests[1])] == requests[1], "it goes on from what it had read"
        assert (await outputs(model))[0].startswith("It holds x.")

    @pytest.mark.long
    async def test_rejection_is_the_output_and_the_next_call_is_asked_about(
        self, services: Services, user: User, model: ScriptedModel
    ) -> None:
        await model.script(calls(CODER), calls(runs_command("echo 1 > a.txt"), runs_command("echo 2 > b.txt")))
        async with user_at(services, user, **ASKING) as there:
            thread = (await there.chatkit.say("do it")).thread_id
            first, second = pending(await newest_run(there, thread))
            await decide(there, thread, first, approved=False, reason="not this")
            assert len(await requests_to(model)) == 2, "it goes on once all is decided"
            await model.script(calls(runs_command("echo 3 > c.txt")))
            [third] = pending(await decide(there, thread, second))
            assert await files(there, thread) == {"b.txt": "2\n"}
            assert "not this" in (await outputs(model))[0]
            await model.script(says("Fine."), says("It is so."))
            run = await decide(there, thread, third)
            assert await files(there, thread) == {"b.txt": "2\n", "c.txt": "3\n"}
        assert [one["approved"] for one in run["approvals"]] == [False, True, True]
        assert [event["type"] for event in run["agent_events"]] == ["TOOL_CALL", "TOOL_RESULT", "ANSWER"]

    @pytest.mark.long
    async def test_two_agents_and_the_assistant_wait_side_by_side(
        self, services: Services, user: User, model: ScriptedModel, stored: Stored
    ) -> None:
        all_of_it = {"APPROVALS": "agents,run_python,run_command,delete_task"}
        await model.script(add_task("milk"), says("Added."), calls(CODER, RESEARCHER, delete_tasks(1)["tool_calls"][0]))
        async with user_at(services, user, **all_of_it) as there:
            thread = (await there.chatkit.say("add milk")).thread_id
            await there.chatkit.say("do all", thread)
            coder, researcher, deletion = pending(await newest_run(there, thread))
            await decide(there, thread, coder)
            await decide(there, thread, researcher)
            await model.script(calls(runs_command("echo 1 > a.txt")), calls(call("run_python", code="print(2)")))
            run = await decide(there, thread, deletion, approved=False)
            first, second = pending(run)
            assert [first["agent"], second["agent"]] == ["coder", "researcher"]
            await decide(there, thread, second)
            await model.script(says("One."), says("Two."), says("All is done."))
            assert (await decide(there, thread, first))["status"] == "COMPLETED"
            assert await files(there, thread) == {"a.txt": "1\n"}
        assert stored.titles(user.name) == ["milk"]
        said = (await outputs(model))[-3:]
        assert [one.split("\n")[0] for one in said[:2]] == ["One.", "Two."]

    @pytest.mark.parametrize("mode", ["steer", "message"])
    async def test_another_message_ends_the_agent_that_waits(
        self, mode: str, services: Services, user: User, model: ScriptedModel
    ) -> None:
        await model.script(calls(CODER), calls(WRITES, runs_command("echo 1")))
        async with user_at(services, user, **ASKING) as there:
            thread = (await there.chatkit.say("do it")).thread_id
            run = await newest_run(there, thread)
            await model.script(says("As you like."))
            if mode == "steer":
                await there.runs.send(thread, run["id"], "leave it", mode="steer")
                await until_ended(there, thread)
            else:
                assert (await there.chatkit.say("leave it", thread)).text == "As you like."
                assert (await there.runs.get_interaction(thread, run["id"]))["status"] == "CANCELLED"
            [shown] = work_of(await there.chatkit.items(thread))
            assert shown["summary"]["title"].endswith("stopped")
            assert await files(there, thread) == {"a.txt": "x"}
        bodies = await requests_to(model)
        assert len(bodies) == 3, "the agent's model is not asked again"
        assert bodies[-1]["messages"][-1]["content"] == "leave it"
        reason = "The coder was stopped. The person wrote something else instead. What it did before:\n- Wrote a.txt\n"
        assert (await outputs(model))[0].startswith(reason)

    @pytest.mark.parametrize(
        ("command", "asked"),
        [
            ("x\n" * 197 + "x", True),
            ("x\n" * 198 + "x", False),
            ("x" * 20_000, False),
            ("touch b\u200b.txt", True),
        ],
        ids=["many lines", "too many lines", "too long", "a character that is not seen"],
    )
    async def test_only_what_a_card_shows_whole_is_asked(
        self, command: str, asked: bool, services: Services, user: User, model: ScriptedModel
    ) -> None:
        """Other calls are not made."""
        await model.script(calls(CODER), calls(runs_command(command)), says("No."), says("Fine."))
        async with user_at(services, user, **ASKING) as there:
            answer = await there.chatkit.say("do it")
            run = await newest_run(there, answer.thread_id)
        assert bool(pending(run)) is asked
        assert len(run["approvals"]) == asked

    async def test_start_of_an_agent(
        self, services: Services, user: User, model: ScriptedModel, stored: Stored
    ) -> None:
        """It is asked with the assignment; `always` holds for the conversation."""
        asking = {"APPROVALS": "agents"}
        done = says("Nothing to do."), says("Fine.")
        async with user_at(services, user, **asking) as there:
            await model.script(start_coder("write a.txt"))
            thread = (await there.chatkit.say("do it")).thread_id
            [asked] = pending(await newest_run(there, thread))
            assert "write a.txt" in asked["text"]
            assert len(await requests_to(model)) == 1
            await model.script(*done)
            assert (await decide(there, thread, asked))["status"] == "COMPLETED"
            assert stored.consents(user.name) == []
            await model.script(calls(CODER))
            await there.chatkit.say("once more", thread)
            [again] = pending(await newest_run(there, thread))
            await model.script(*done, calls(CODER), *done, calls(CODER))
            assert (await decide(there, thread, again, always=True))["status"] == "COMPLETED"
            assert stored.consents(user.name) == ["do_with_coder"]
            assert (await there.chatkit.say("and again", thread)).text == "Fine."
            other = (await there.chatkit.say("elsewhere")).thread_id
            assert pending(await newest_run(there, other))

    async def test_always_is_for_agents_alone(
        self, services: Services, user: User, model: ScriptedModel, stored: Stored
    ) -> None:
        async with user_at(services, user, APPROVALS="add_task") as there:
            await model.script(add_task("milk"))
            thread = (await there.chatkit.say("add milk")).thread_id
            [asked] = pending(await newest_run(there, thread))
            await model.script(says("Added."))
            run = (await newest_run(there, thread))["id"]
            body = {"approval_id": asked["approval_id"], "approved": True, "always": True}
            await there.runs.http.post(f"/chats/{thread}/interactions/{run}/approve", json=body)
        assert stored.consents(user.name) == []

    async def test_click_on_a_task_is_the_approval(self, services: Services, user: User, model: ScriptedModel) -> None:
        """In the conversation that it begins, for its first message alone."""
        async with user_at(services, user, APPROVALS="agents") as there:
            await model.script(calls(CODER), says("Nothing to do."), says("Fine."), calls(CODER))
            body = request("threads.create", {"allow_agents": True}, input=user_input("do task 3"))
            assert "Fine." in (await there.chatkit.http.post("/chatkit", json=body)).text
            thread = (await there.chatkit.list_threads()).data[0]["id"]
            await there.chatkit.say("once more", thread)
            assert pending(await newest_run(there, thread))


def states_of_calls(stored: Stored, user: User) -> list[tuple[str, str]]:
    return [(row["tool"], row["state"]) for row in stored.rows_of(user.name, "tool_calls")]


async def until_ended(user: User, thread: str) -> Json:
    async def ended() -> Json | None:
        run = await newest_run(user, thread)
        return None if run["status"] == "WAITING_APPROVAL" else run

    return await until(ended)


STEPS: dict[str, Json] = {
    "command": calls(WRITES, runs_command(SLEEPS)),
    "answer": endless_answer("one two three"),
    "request": {"text": "x", "delay": 300},
}


class TestEnds:
    @pytest.mark.parametrize("kind", STEPS)
    async def test_stop(self, kind: str, user: User, model: ScriptedModel, stored: Stored) -> None:
        """Nothing follows, what the agent ran is gone, and the model is told what it did."""
        await model.script(calls(CODER), STEPS[kind], says("never"))
        async with user.chatkit.open("threads.create", input=user_input("do it")) as events:
            thread = await thread_of(events)
            if kind == "command":
                await user.wait_for_file(thread, "begun")
            else:
                await model.received_requests(2)
        await stored.run_with_status(user.name, "cancelled")
        assert len(await requests_to(model)) == 2
        run = await newest_run(user, thread)
        steps = (await user.runs.get_steps(thread, run["id"]))["steps"]
        expected = ["task", "step", "output", "output", "end"] if kind == "command" else ["task", "end"]
        assert [step["kind"] for step in steps] == expected
        if kind == "command":
            assert steps[3]["details"]["stdout"] == "so far\n"
            assert sleeping() == []
        assert len(work_of(await user.chatkit.items(thread))) == 1
        await model.reset()
        await model.script(says("Yes?"))
        await user.chatkit.say("go on", thread)
        [told] = await outputs(model)
        assert ("a.txt" in told) is (kind == "command")

    @pytest.mark.long
    async def test_stop_while_the_workspace_is_slow(
        self, services: Services, user: User, model: ScriptedModel, stored: Stored
    ) -> None:
        """The command's output is kept all the same."""
        await model.script(calls(CODER), STEPS["command"])
        workspace = services.workspace
        async with user.chatkit.open("threads.create", input=user_input("do it")) as events:
            thread = await thread_of(events)
            await user.wait_for_file(thread, "begun")
            workspace.send(signal.SIGSTOP)
        await asyncio.sleep(1)
        workspace.send(signal.SIGCONT)
        run = await stored.run_with_status(user.name, "cancelled")
        steps = (await user.runs.get_steps(thread, run.id))["steps"]
        assert steps[3]["details"]["stdout"] == "so far\n"

    @pytest.mark.long
    async def test_stop_while_the_command_is_queued(
        self, services: Services, user: User, model: ScriptedModel, stored: Stored
    ) -> None:
        """It is not waited for: no output of it will come."""
        audience = services.workspace.environment["WORKSPACE_URL"]
        token = make_call_token(WORKSPACE_TOKEN_SECRET, user.name, audience=audience, expires=int(time.time()) + 600)
        headers = {"authorization": f"Bearer {token}"}
        async with (
            Client(StreamableHttpTransport(audience, headers=headers, verify=False)) as client,
            user_at(services, user, TOOL_WAIT_SECONDS="600") as there,
        ):
            others = [
                asyncio.create_task(
                    client.call_tool_mcp("run_command", {"command": SLEEPS}, meta={"todo/folder": name})
                )
                for name in ("one", "two", "three", "four")  # as many as a user may run at once
            ]
            await until(lambda: len(sleeping()) == len(others))
            await model.script(calls(CODER), calls(runs_command("echo never")))
            async with there.chatkit.open("threads.create", input=user_input("do it")) as events:
                await thread_of(events)
                await until(lambda: ("run_command", "running") in states_of_calls(stored, user))
            await stored.run_with_status(user.name, "cancelled")  # before TOOL_WAIT_SECONDS have passed
            for other in others:
                other.cancel()
            await until(lambda: not sleeping())

    async def test_stop_while_another_agent_waits(
        self, services: Services, user: User, model: ScriptedModel, stored: Stored
    ) -> None:
        slow = {"text": "x", "delay": 300}
        async with user_at(services, user, **ASKING) as there:
            await model.script(calls(CODER, RESEARCHER), calls(runs_command("echo 1")), slow)
            async with there.chatkit.open("threads.create", input=user_input("do both")) as events:
                thread = await thread_of(events)
                await model.received_requests(3)
            await stored.run_with_status(user.name, "cancelled")
            assert stored.pending_approvals(user.name) == 0
            await model.reset()
            await model.script(says("Yes?"))
            await there.chatkit.say("go on", thread)
        assert len(await outputs(model)) == 2

    @pytest.mark.parametrize("how", ["stop", "failure"])
    async def test_end_after_a_decision(
        self, how: str, services: Services, user: User, model: ScriptedModel, stored: Stored
    ) -> None:
        """Two waited: the second is ended with the first."""
        command = runs_command(SLEEPS) if how == "stop" else runs_command("echo 1")
        broken = {"status": 401, "body": {"error": {"message": "no"}}}
        async with user_at(services, user, **ASKING) as there:
            await model.script(calls(CODER, CODER), calls(command), calls(runs_command("echo 2")))
            thread = (await there.chatkit.say("do both")).thread_id
            run = await newest_run(there, thread)
            first, second = pending(run)
            await decide(there, thread, second)
            await model.script(*([] if how == "stop" else [broken]))
            await there.runs.approve(thread, run["id"], first["approval_id"], approved=True)
            if how == "stop":
                await there.wait_for_file(thread, "begun")
                await there.runs.cancel(thread, run["id"])
            ended = await newest_run(there, thread)
            steps = (await there.runs.get_steps(thread, run["id"]))["steps"]
            assert sleeping() == []
        assert ended["status"] == ("CANCELLED" if how == "stop" else "FAILED")
        assert [step["kind"] for step in steps].count("end") == 2
        assert stored.run_statuses(user.name) == ["cancelled" if how == "stop" else "failed"]

    async def test_provider_error(self, user: User, model: ScriptedModel) -> None:
        """The run fails without another request; the model is told later what the agent did."""
        broken = {"status": 401, "body": {"error": {"message": "no"}}}
        await model.script(calls(CODER), calls(WRITES), broken)
        answer = await user.chatkit.say("do it")
        assert answer.error
        assert len(await requests_to(model)) == 3
        assert len(work_of(answer.items)) == 1
        await model.script(says("I see."))
        await user.chatkit.say("what happened?", answer.thread_id)
        assert "a.txt" in (await outputs(model))[0]

    @pytest.mark.long
    async def test_workspace_is_killed(
        self, services: Services, user: User, model: ScriptedModel, stored: Stored
    ) -> None:
        with run_workspace() as (workspace, _):
            own = {"WORKSPACE_URL": f"{workspace.url}/mcp", "MCP_RESEND_SECONDS": "0.3"}
            async with user_at(services, user, **own) as there:
                await model.script(calls(CODER), calls(runs_command(SLEEPS)), says("never"))
                answering = asyncio.create_task(there.chatkit.say("do it"))
                [thread] = await until(lambda: stored.conversations(there.name))
                await there.wait_for_file(thread, "begun")
                workspace.end(signal.SIGKILL)
                answer = await answering
                assert answer.error
                await model.reset()
                await model.script(says("I see."))
                assert (await there.chatkit.say("and?", answer.thread_id)).text == "I see."
            workspace.start()  # to be ended
        assert len(await outputs(model)) == 1


async def thread_of(events: AsyncIterator[Json]) -> str:
    async for event in events:
        if event["type"] == "thread.created":
            return event["thread"]["id"]
    raise AssertionError("no thread was created")


def sleeping() -> list[str]:
    """The processes of `SLEEPS` that are there."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", SECONDS.encode()]:
            found.append(str(path))
    return found
