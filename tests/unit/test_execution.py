"""How one run is executed and recorded, on a real PostgreSQL, with a scripted model and scripted task tools."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from agents import Agent, AgentBase, ModelSettings, RunContextWrapper
from agents.mcp import MCPServer
from mcp.types import CallToolResult, GetPromptResult, ListPromptsResult, TextContent, Tool

from backend.agents.assistant import create_assistant
from backend.conversations import run_requests, runs, steering
from backend.conversations.approvals import Decision, decide
from backend.conversations.errors import from_database
from backend.conversations.history import load_history
from backend.conversations.records import ASSISTANT, Entry, Run, Timeline, ToolCall
from backend.conversations.run_requests import NewConversation, RunRequest, UserMessage
from backend.conversations.timeline import events_of, load_trees
from backend.model.capabilities.tool_call_modes import ToolCallModes
from backend.model.chat_model import ChatModel
from backend.model.client import OnUsage
from backend.model.failures.errors import ModelError
from backend.model.providers import PROFILES, ModelEndpoint
from backend.model.responses.reader import Piece
from backend.model.tool_calls import ParsedToolCall
from backend.runs.calls import MAX_CALLS, Approvals
from backend.runs.dependencies import Dependencies
from backend.runs.execution import MAX_MODEL_TURNS, Execution
from backend.runs.live_run import LiveRun
from backend.runs.outcomes import Ending
from backend.runs.recorder import Recorder, store_growth
from backend.runs.stream import RunStream, Streams
from backend.tools.approval_policy import Policy
from backend.users.limits import UserLimits
from common.database import Database, DatabaseUnavailable

USER, CONVERSATION, PROCESS = "ada", "thr_1", 1
NO_LIMITS = UserLimits()
HELLO = Piece(text="Hello.", finish="stop")
FALSE = Piece(text="I've added milk.", finish="stop")
ENDPOINT = ModelEndpoint(PROFILES["offline"], "http://model.test/v1", "", "rules")

Act = Callable[[], Awaitable[object]]


class ScriptedClient:
    """Answers requests to the model with the next response; an act is carried out, or an error raised, before it."""

    base_url = ENDPOINT.base_url

    def __init__(self, *script: Piece | Act | Exception) -> None:
        self.requests: list[dict[str, Any]] = []
        self.modes = ToolCallModes(ENDPOINT)
        self._script = list(script)

    async def request(self, body: dict[str, Any], *, on_usage: OnUsage, **_: Any) -> AsyncIterator[Piece]:
        self.requests.append(body)
        while not isinstance(step := self._script.pop(0), Piece):
            if isinstance(step, Exception):
                raise step
            await step()
        if step.text:
            yield Piece(text=step.text)
        yield replace(step, text="")
        on_usage(Counter(requests=1, input_tokens=10, output_tokens=2))

    async def aclose(self) -> None:
        pass


class ScriptedTools(MCPServer):
    """Notes the titles of the tasks that are added; an act of a title is carried out before that returns."""

    def __init__(self) -> None:
        super().__init__()
        self.began: list[str] = []
        self.ended: list[str] = []
        self.acts: dict[str, Act] = {}
        self.facts: dict[str, Any] = {"changes": []}
        self.reads = 0

    async def read_changes(self, batch: str, *, user_id: str) -> dict[str, Any]:
        self.reads += 1
        return self.facts

    @property
    def name(self) -> str:
        return "tasks"

    async def connect(self) -> None:
        pass

    async def cleanup(self) -> None:
        pass

    async def list_tools(
        self, run_context: RunContextWrapper[Any] | None = None, agent: AgentBase[Any] | None = None
    ) -> list[Tool]:
        schema = {"type": "object", "properties": {"title": {"type": "string"}, "task_id": {"type": "integer"}}}
        return [Tool(name=name, input_schema=schema) for name in ("add_task", "delete_task")]

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> CallToolResult:
        title = (arguments or {}).get("title", tool_name)
        self.began.append(title)
        if title in self.acts:
            await self.acts[title]()
        self.ended.append(title)
        return CallToolResult(content=[TextContent(type="text", text=f"Done: {title}.")])

    async def list_prompts(self) -> ListPromptsResult:
        return ListPromptsResult(prompts=[])

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> GetPromptResult:
        raise NotImplementedError


@dataclass
class Machine:
    """A run that was started, and what it is executed with."""

    database: Database
    run: Run
    history: Timeline
    tools: ScriptedTools = field(default_factory=ScriptedTools)

    def __post_init__(self) -> None:
        self.live = LiveRun(self.run, RunStream(), agent_model_turns_left=0)

    def prepare(self, *script: Piece | Act | Exception, approvals: str = "none") -> Execution:
        model = ChatModel(ENDPOINT)
        self.client = ScriptedClient(*script)
        model.client = self.client  # pyright: ignore[reportAttributeAccessIssue] - has what the model uses
        policy, no_tools = Policy([approvals]), SimpleNamespace()
        agent: Agent[Any] = create_assistant(model, ModelSettings(max_tokens=100), self.tools, may_ask=policy.may_ask)
        after_runs: Any = SimpleNamespace()
        dependencies = Dependencies(
            database=self.database,
            agents={ASSISTANT: agent},
            approvals=Approvals(self.database, policy, no_tools),  # pyright: ignore[reportArgumentType]
            tools=self.tools,  # pyright: ignore[reportArgumentType] - has what runs use
            workspace=None,
            streams=Streams(self.database),
            summaries=after_runs,
            titles=after_runs,
            history_tokens=4_000,
            tool_wait_seconds=10,
            run_seconds=60,
            agent_model_turns=0,
            sub_agents_per_day=None,
            limits=NO_LIMITS,
        )
        return Execution(dependencies, self.live, self.run, self.history)

    async def send(self, text: str, mode: steering.Mode) -> None:
        message = UserMessage(f"msg_{text}", text, {})
        await steering.add(self.database, self.run, message, mode, process_id=PROCESS, limits=NO_LIMITS)

    async def load(self) -> Timeline:
        return await load_trees(self.database, USER, [self.run.id])

    @property
    def events(self) -> list[str]:
        """What readers get: the types of events, with the tools of calls and the kinds of entries."""
        return [" ".join(filter(None, (one.type, _describe(one.record)))) for one in self.live.stream.events]


def _describe(record: object) -> str:
    if isinstance(record, ToolCall):
        return f"{record.tool} {record.state}"
    return record.kind if isinstance(record, Entry) else ""


def calls(*titles: str, tool: str = "add_task", text: str = "") -> Piece:
    made = [ParsedToolCall(tool, f'{{"title": "{title}"}}') for title in titles]
    return Piece(text=text, calls=made, finish="stop")


@pytest.fixture
async def machine(database_url: str) -> AsyncIterator[Machine]:
    async with Database(database_url, translate_error=from_database) as database:
        request = RunRequest(CONVERSATION, UserMessage("msg_1", "hello"), NewConversation())
        started = await run_requests.start(database, USER, request, process_id=PROCESS, limits=NO_LIMITS)
        yield Machine(database, started.run, started.timeline)


def describe_rows(timeline: Timeline) -> list[str]:
    return [_describe(record) for record in timeline.records]


async def test_calls_are_stored_before_their_tool_runs_and_results_before_the_next_request(machine: Machine) -> None:
    stored: list[list[str]] = []

    async def read() -> None:
        stored.append(describe_rows(await machine.load()))

    machine.tools.acts["milk"] = read
    execution = machine.prepare(calls("milk", text="I add it."), read, Piece(text="Added.", finish="stop"))
    assert await execution.execute() == "ended"
    assert stored == [
        ["user_message", "assistant_message", "add_task running"],
        ["user_message", "assistant_message", "add_task done"],
    ]
    ended = await machine.load()
    assert describe_rows(ended) == ["user_message", "assistant_message", "add_task done", "assistant_message"]
    assert (ended.runs[0].status, ended.runs[0].process_id) == ("completed", None)
    assert ended.runs[0].usage == {"model": "rules", "requests": 2, "input_tokens": 20, "output_tokens": 4}
    assert [turn.model_turn for turn in ended.model_turns] == [1, 2]
    assert machine.events == [
        "model_turn_started",
        "entry_started assistant_message",
        "entry_delta assistant_message",
        "entry_completed assistant_message",
        "model_turn_ended",
        "call_requested add_task done",
        "call_completed add_task done",
        "model_turn_started",
        "entry_started assistant_message",
        "entry_delta assistant_message",
        "model_turn_ended",
        "entry_completed assistant_message",
    ]
    numbers = [event.number for event in machine.live.stream.events if event.number is not None]
    assert numbers == sorted(set(numbers))


async def test_call_beyond_the_limit_is_recorded_as_not_made(machine: Machine) -> None:
    titles = [f"task {number}" for number in range(MAX_CALLS + 1)]
    await machine.prepare(calls(*titles), HELLO).execute()
    assert machine.tools.ended == titles[:-1]
    made = (await machine.load()).calls
    assert [call.state for call in made] == ["done"] * MAX_CALLS + ["not_made"]
    assert [call.id for call in sorted(made, key=lambda call: call.result_seq or 0)] == [call.id for call in made]
    outputs = [one["content"] for one in machine.client.requests[1]["messages"] if one["role"] == "tool"]
    assert outputs[-1].startswith("This call was not made: at most 6 calls")


async def test_call_that_waits_for_approval_is_not_begun_and_ends_the_execution(machine: Machine) -> None:
    execution = machine.prepare(calls("milk", tool="delete_task"), approvals="always")
    assert await execution.execute() == "waiting"
    assert machine.tools.began == []
    waiting = await machine.load()
    assert [waiting.runs[0].status, waiting.calls[0].state] == ["waiting", "awaiting_approval"]
    assert machine.events[-1] == "approval_requested delete_task awaiting_approval"


async def test_guard_comes_before_approval(machine: Machine) -> None:
    """What is not made needs nobody's approval: the user is asked for six calls only."""
    titles = [f"task {number}" for number in range(MAX_CALLS + 1)]
    assert await machine.prepare(calls(*titles), approvals="add_task").execute() == "waiting"
    assert [call.state for call in (await machine.load()).calls] == ["awaiting_approval"] * MAX_CALLS + ["not_made"]
    assert machine.tools.began == []


async def test_after_a_stop_the_tool_at_work_is_recorded_and_no_other_begins(machine: Machine) -> None:
    async def stop() -> None:
        machine.live.stop(Ending("cancelled", "cancelled"))
        await asyncio.sleep(0.1)

    machine.tools.acts["milk"] = stop
    await machine.prepare(calls("milk", "tea")).execute()
    assert (machine.tools.began, machine.tools.ended) == (["milk"], ["milk"])
    stopped = await machine.load()
    assert stopped.runs[0].status == "cancelled"
    assert [(call.state, call.reason) for call in stopped.calls] == [("done", None), ("not_made", "stopped")]
    assert describe_rows(stopped)[-1] == "notice"
    assert len(machine.client.requests) == 1


async def test_stop_that_is_requested_in_another_process_is_seen_with_the_next_result(machine: Machine) -> None:
    async def request_stop() -> None:
        await runs.request_stop(machine.database, machine.run)

    machine.tools.acts["milk"] = request_stop
    await machine.prepare(calls("milk", "tea")).execute()
    assert machine.tools.began == ["milk"]
    assert (await machine.load()).runs[0].status == "cancelled"


async def test_stop_while_the_model_writes_keeps_what_was_shown(machine: Machine) -> None:
    async def write() -> None:
        execution.recorder.read_piece(Piece(text="I was about to"))
        machine.live.stop(Ending("cancelled", "cancelled"))
        await asyncio.Event().wait()

    execution = machine.prepare(write)
    await execution.execute()
    stopped = await machine.load()
    answer = stopped.find_last("assistant_message")
    assert answer is not None
    assert (answer.text, answer.complete) == ("I was about to", True)
    assert stopped.runs[0].status == "cancelled"


async def test_steering_message_is_read_before_the_next_request(machine: Machine) -> None:
    machine.tools.acts["milk"] = lambda: machine.send("oat", "steer")
    await machine.prepare(calls("milk"), HELLO).execute()
    assert [one["role"] for one in machine.client.requests[1]["messages"][-3:]] == ["assistant", "tool", "user"]
    assert describe_rows(await machine.load())[1:] == ["add_task done", "user_message", "assistant_message"]


async def test_steering_message_during_the_answer_gets_another_one_in_the_same_run(machine: Machine) -> None:
    execution = machine.prepare(lambda: machine.send("oat", "steer"), Piece(text="One.", finish="stop"), HELLO)
    assert await execution.execute() == "ended"
    assert execution.follow_up is None
    ended = await machine.load()
    assert [entry.text for entry in ended.entries] == ["hello", "One.", "oat", "Hello."]
    assert ended.runs[0].status == "completed"


async def test_follow_up_starts_when_the_run_completes(machine: Machine) -> None:
    execution = machine.prepare(lambda: machine.send("then", "follow_up"), HELLO)
    assert await execution.execute() == "ended"
    assert execution.follow_up is not None
    following = execution.follow_up.run
    assert (machine.run.status, machine.run.next_run_id) == ("completed", following.id)
    assert (following.status, following.previous_run_id) == ("running", machine.run.id)
    assert [entry.text for entry in execution.follow_up.timeline.entries] == ["hello", "Hello.", "then"]


MILK: dict[str, Any] = {"changes": [{"task_id": 1, "title": "milk", "change": "added"}]}


async def test_changes_are_read_once_and_stored_with_the_outcome(machine: Machine) -> None:
    machine.tools.facts = MILK
    await machine.prepare(calls("milk"), HELLO).execute()
    assert machine.tools.reads == 1
    assert machine.events[-1] == "entry_completed changes"
    ended = await machine.load()
    assert describe_rows(ended)[-1] == "changes"
    assert (machine.run.changes, ended.runs[0].changes) == (MILK, MILK)
    assert (ended.entries[-1].last_seq or 0) < (ended.runs[0].end_seq or 0)


async def test_run_that_changed_nothing_stores_no_changes(machine: Machine) -> None:
    await machine.prepare(calls("milk"), HELLO).execute()  # it was undone, for example
    assert machine.tools.reads == 1
    assert (machine.run.changes, (await machine.load()).find_first("changes")) == (None, None)


async def test_run_without_a_call_reads_no_changes(machine: Machine) -> None:
    machine.tools.facts = MILK
    await machine.prepare(HELLO).execute()
    assert machine.tools.reads == 0
    assert machine.run.changes is None


async def test_changes_of_a_failed_run_are_stored(machine: Machine) -> None:
    machine.tools.facts = MILK
    await machine.prepare(calls("milk"), ModelError("model_not_found")).execute()
    assert (machine.run.status, machine.run.changes) == ("failed", MILK)


async def test_changes_of_a_run_that_is_cancelled_while_it_waits(machine: Machine) -> None:
    """They are read when it begins to wait, and shown when it has ended."""
    machine.tools.facts = MILK
    execution = machine.prepare(calls("milk"), calls("", tool="delete_task"), approvals="delete_task")
    assert await execution.execute() == "waiting"
    waiting = await machine.load()
    assert (waiting.runs[0].changes, waiting.find_first("changes")) == (None, None)
    await runs.request_stop(machine.database, machine.run)
    stopped = await machine.load()
    assert (stopped.runs[0].status, stopped.runs[0].changes) == ("cancelled", MILK)
    assert describe_rows(stopped)[-2:] == ["changes", "notice"]


async def test_changes_of_a_run_that_waited_come_after_what_it_did_later(machine: Machine) -> None:
    machine.tools.facts = MILK
    await machine.prepare(calls("milk"), calls("", tool="delete_task"), approvals="delete_task").execute()
    [waiting] = [call for call in (await machine.load()).calls if call.state == "awaiting_approval"]
    approved = Decision(approved=True)
    _, [run] = await decide(machine.database, USER, waiting.id, approved, process_id=PROCESS)
    again = Machine(machine.database, run, await load_history(machine.database, USER, CONVERSATION))
    again.tools.facts = facts = {"changes": [{"task_id": 2, "title": "tea", "change": "deleted"}]}
    await again.prepare(HELLO, approvals="delete_task").execute()
    ended = await again.load()
    assert ended.runs[0].changes == facts
    assert describe_rows(ended)[-3:] == ["delete_task done", "assistant_message", "changes"]


async def test_changes_of_a_run_that_goes_on_and_is_abandoned(machine: Machine) -> None:
    """Those that were stored while it waited are replaced by what the process that ends it has read."""
    machine.tools.facts = MILK
    await machine.prepare(calls("milk"), calls("", tool="delete_task"), approvals="delete_task").execute()
    [waiting] = [call for call in (await machine.load()).calls if call.state == "awaiting_approval"]
    await decide(machine.database, USER, waiting.id, Decision(approved=True), process_id=PROCESS)
    facts = {"changes": [], "unread": True}
    read = Entry(machine.run.id, "chg_2", "changes", details=facts)
    await runs.end_abandoned(machine.database, USER, machine.run.id, process_id=PROCESS, changes=read)
    ended = await machine.load()
    assert ended.runs[0].changes == facts
    assert describe_rows(ended).count("changes") == 1


async def test_changes_are_stored_once_by_a_run_that_has_a_message_to_read_first(machine: Machine) -> None:
    machine.tools.facts = MILK
    answer = Piece(text="One.", finish="stop")
    await machine.prepare(calls("milk"), lambda: machine.send("oat", "steer"), answer, HELLO).execute()
    ended = await machine.load()
    assert [describe_rows(ended).count("changes"), ended.runs[0].changes] == [1, MILK]
    assert describe_rows(ended)[-1] == "changes"


async def test_changes_of_a_run_with_a_follow_up(machine: Machine) -> None:
    machine.tools.facts = MILK
    execution = machine.prepare(calls("milk"), lambda: machine.send("then", "follow_up"), HELLO)
    await execution.execute()
    assert execution.follow_up is not None
    assert machine.events[-1] == "entry_completed changes"
    ended = await machine.load()
    assert (machine.run.changes, ended.runs[0].changes) == (MILK, MILK)
    assert describe_rows(ended)[-1] == "changes"


async def test_error_of_the_model_fails_the_run_with_a_notice(machine: Machine) -> None:
    execution = machine.prepare(ModelError("model_not_found"))
    assert await execution.execute() == "ended"
    failed = await machine.load()
    assert (failed.runs[0].status, failed.runs[0].error_code) == ("failed", "model_not_found")
    assert describe_rows(failed) == ["user_message", "notice"]


async def test_answer_without_text_fails_the_run(machine: Machine) -> None:
    await machine.prepare(Piece(finish="stop")).execute()
    assert (await machine.load()).runs[0].error_code == "empty_answer"


async def test_run_without_its_lease_stores_nothing_and_has_the_outcome_of_the_other_process(machine: Machine) -> None:
    async def lose() -> None:
        await runs.end_abandoned(machine.database, USER, machine.run.id, process_id=PROCESS)

    machine.tools.acts["milk"] = lose
    assert await machine.prepare(calls("milk", "tea")).execute() == "ended"
    assert machine.run.status == "interrupted"
    assert machine.tools.began == ["milk"]
    assert [call.state for call in (await machine.load()).calls] == ["unknown", "unknown"]


async def test_text_is_stored_while_it_is_written(machine: Machine) -> None:
    stored: list[tuple[str, bool]] = []

    async def store() -> None:
        for text in ("The ", "answer", ""):
            execution.recorder.read_piece(Piece(text=text))
            await store_growth(machine.database, machine.live)
            entry = (await machine.load()).find_last("assistant_message")
            assert entry is not None
            stored.append((entry.text, entry.complete))

    execution = machine.prepare(store, Piece(text=" is 42.", finish="stop"))
    await execution.execute()
    assert stored == [("The ", False), ("The answer", False), ("The answer", False)]
    answer = (await machine.load()).find_last("assistant_message")
    assert answer is not None
    assert (answer.text, answer.complete) == ("The answer is 42.", True)
    assert machine.live.growing == {}


async def test_text_that_claims_a_change_is_withdrawn_and_the_model_answers_once_more(machine: Machine) -> None:
    async def write() -> None:
        execution.recorder.read_piece(Piece(text="Sure! "))
        await store_growth(machine.database, machine.live)

    execution = machine.prepare(write, FALSE, Piece(text="Nothing was changed.", finish="stop"))
    assert await execution.execute() == "ended"
    ended = await machine.load()
    assert [(entry.kind, entry.text) for entry in ended.entries] == [
        ("user_message", "hello"),
        ("withdrawn", ""),
        ("assistant_message", "Nothing was changed."),
    ]
    assert (ended.runs[0].status, execution.recorder.answer) == ("completed", "Nothing was changed.")
    assert ended.runs[0].usage == {"model": "rules", "requests": 2, "input_tokens": 20, "output_tokens": 4}
    note = machine.client.requests[1]["messages"][-1]
    assert note["role"] == "user"
    assert "No tool call has changed anything since the person's message." in note["content"]
    assert "If it was about an earlier change, do not make that again" in note["content"]
    assert "I've added milk" not in str(machine.client.requests[1])
    assert machine.events == [
        "model_turn_started",
        "entry_started assistant_message",
        *["entry_delta assistant_message"] * 2,
        "model_turn_ended",
        "entry_withdrawn withdrawn",
        "model_turn_started",
        "entry_started assistant_message",
        "entry_delta assistant_message",
        "model_turn_ended",
        "entry_completed assistant_message",
    ]
    withdrawn = [event for event in events_of(ended) if event.type == "entry_withdrawn"]
    live = [event for event in machine.live.stream.events if event.type == "entry_withdrawn"]
    assert [event.number for event in withdrawn] == [event.number for event in live]


async def test_second_claim_stays_with_a_notice(machine: Machine) -> None:
    await machine.prepare(FALSE, FALSE).execute()
    await check_notice(machine, ["user_message", "withdrawn", "assistant_message", "notice"])


async def test_model_may_call_the_tool_after_its_claim_was_withdrawn(machine: Machine) -> None:
    await machine.prepare(FALSE, calls("milk"), FALSE).execute()
    assert machine.tools.ended == ["milk"]
    rows = ["user_message", "withdrawn", "add_task done", "assistant_message"]
    assert describe_rows(await machine.load()) == rows


async def test_claim_of_a_run_that_was_steered_stays_with_a_notice(machine: Machine) -> None:
    steered = machine.prepare(lambda: machine.send("oat", "steer"), HELLO, FALSE)
    await steered.execute()
    await check_notice(machine, ["user_message", "assistant_message", "user_message", "assistant_message", "notice"])


async def test_claim_of_the_last_model_turn_stays_with_a_notice(machine: Machine) -> None:
    turns = [calls("milk", tool="no_tool") for _ in range(MAX_MODEL_TURNS - 1)]
    await machine.prepare(*turns, FALSE).execute()
    failed = ["no_tool failed"] * len(turns)
    await check_notice(machine, ["user_message", *failed, "assistant_message", "notice"])


async def test_text_is_not_withdrawn_after_a_stop(machine: Machine) -> None:
    async def request_stop() -> None:
        await runs.request_stop(machine.database, machine.run)

    await machine.prepare(request_stop, FALSE).execute()
    assert describe_rows(await machine.load())[:2] == ["user_message", "assistant_message"]


async def test_claim_is_never_stored_if_the_database_is_away_when_it_is_withdrawn(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if only the response to COMMIT was lost: what was stored then is stored again."""
    commit = Recorder._publish_stored  # pyright: ignore[reportPrivateUsage]

    async def lose(*args: Any) -> None:
        monkeypatch.setattr(Recorder, "_publish_stored", commit)
        raise DatabaseUnavailable

    monkeypatch.setattr(Recorder, "_publish_stored", lose)
    await machine.prepare(FALSE).execute()
    ended = await machine.load()
    assert [(entry.kind, entry.text) for entry in ended.entries][1:] == [("withdrawn", ""), ("notice", "")]
    assert ended.runs[0].error_code == "database_unreachable"


async def check_notice(machine: Machine, rows: list[str]) -> None:
    ended = await machine.load()
    assert describe_rows(ended) == rows
    assert (ended.runs[0].status, ended.entries[-1].details) == ("completed", {"code": "nothing_changed", "values": {}})


async def test_equal_calls_have_different_keys_and_a_retry_the_same(machine: Machine) -> None:
    await machine.prepare(calls("milk"), calls("milk", "tea"), HELLO).execute()
    keys = [call.idempotency_key for call in (await machine.load()).calls]
    assert len(set(keys)) == 3
    again = RunRequest(CONVERSATION, None, replaces=machine.run.id)
    started = await run_requests.start(machine.database, USER, again, process_id=PROCESS, limits=NO_LIMITS)
    retry = Machine(machine.database, started.run, started.timeline)
    await retry.prepare(calls("milk"), calls("milk", "tea"), HELLO).execute()
    assert [call.idempotency_key for call in (await retry.load()).calls] == keys
