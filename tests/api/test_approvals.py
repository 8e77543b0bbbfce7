"""What becomes of a call that waits for approval, by each API, in the same process, in another and after a restart."""

import asyncio
import itertools
import signal
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.scripted_model import ScriptedModel
from tests.support.approvals import APIS, PendingApproval, wait_for_approval
from tests.support.fixtures import NewUser
from tests.support.script import add_task, call, calls, delete_tasks, says, start_coder
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.connection import ApiError

pytestmark = pytest.mark.long

DECISIONS = ("approve", "reject", "new_message", "stop")
STATUS = {"approve": "completed", "reject": "completed", "new_message": "cancelled", "stop": "cancelled"}


@pytest.fixture
def stack_name() -> str:
    return "approvals"


@dataclass(frozen=True)
class Case:
    api: str
    decision: str
    agent: str

    @property
    def name(self) -> str:
        return f"{self.api}-{self.decision}-{self.agent}"

    @property
    def steps(self) -> Sequence[dict[str, object]]:
        """What the model does for a message or an assignment that names the case."""
        if self.agent == "assistant":
            steps = [add_task("milk"), delete_tasks(1), says("Over.")]
        else:
            command = calls(call("run_command", command="echo made > made.txt"))
            steps = [start_coder(f"work on {self.name}"), command, says("The file is made."), says("Over.")]
        return [{**step, "when": self.name} for step in steps]


CASES = [
    Case(api, decision, agent)
    for api, decision, agent in itertools.product(APIS, DECISIONS, ("assistant", "coder"))
    if decision != "stop" or api == "run_api"  # the other APIs have no stop of their own
]
BY_RUN_API = [case for case in CASES if case.api == "run_api"]


async def start(case: Case, user: User, model: ScriptedModel) -> PendingApproval:
    await model.script(*case.steps)
    chat = await APIS[case.api].say(user, None, f"go on with {case.name}")
    waiting = await wait_for_approval(user, chat)
    if case.agent == "coder":  # that the coder may start was asked first
        await APIS["run_api"].decide(user, waiting, approved=True, reason=None)
        first = waiting.approval
        async with user.runs.events(chat, waiting.run) as events:
            async for event in events:
                if event.name == "approval_required" and event.data["approval_id"] != first:
                    break
        waiting = await wait_for_approval(user, chat)
    return waiting


async def decide(case: Case, user: User, model: ScriptedModel, waiting: PendingApproval) -> None:
    api = APIS[case.api]
    match case.decision:
        case "approve":
            await api.decide(user, waiting, approved=True, reason=None)
        case "reject":
            await api.decide(user, waiting, approved=False, reason="Not now.")
        case "stop":
            await user.runs.cancel(waiting.chat, waiting.run)
        case _:
            await model.script({"when": "leave it", **says("As you like.")})
            await api.say(user, waiting.chat, "leave it")


async def check(case: Case, user: User, stored: Stored, waiting: PendingApproval) -> None:
    """The outcome of the run, and whether the call was made, once or not at all."""
    status = STATUS[case.decision]
    await until(lambda: [run.status for run in stored.runs(user.name) if run.id == waiting.run] == [status], seconds=60)
    made = case.decision == "approve"
    if case.agent == "assistant":
        assert stored.titles(user.name) == ([] if made else ["milk"])
        assert [operation for operation, _ in stored.task_calls(user.name)] == ["add", *(["delete"] if made else [])]
    else:
        files = await user.page.files(waiting.chat)
        assert [file["path"] for file in files["files"]] == (["made.txt"] if made else [])
    assert stored.pending_approvals(user.name) == 0
    with pytest.raises(ApiError) as refused:
        await user.runs.approve(waiting.chat, waiting.run, waiting.approval, approved=not made)
    assert refused.value.status in (400, 409), "it is decided once"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_decided(case: Case, user: User, model: ScriptedModel, stored: Stored) -> None:
    waiting = await start(case, user, model)
    await decide(case, user, model, waiting)
    await check(case, user, stored, waiting)


@pytest.mark.parametrize("case", BY_RUN_API, ids=lambda case: case.name)
async def test_decided_in_another_process(
    case: Case, user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    waiting = await start(case, user, model)
    await decide(case, new_user(user.name, backend=1), model, waiting)
    await check(case, user, stored, waiting)


@pytest.mark.long(seconds=15)
async def test_decided_after_a_restart(stack: Stack, new_user: NewUser, model: ScriptedModel, stored: Stored) -> None:
    """All cases wait when the process that asked is killed."""
    users = {case: new_user() for case in CASES}
    waiting = {case: await start(case, user, model) for case, user in users.items()}
    stack.backends[0].end(signal.SIGKILL)
    stack.ensure_running()

    async def finish(case: Case) -> None:
        await decide(case, users[case], model, waiting[case])
        await check(case, users[case], stored, waiting[case])

    results = await asyncio.gather(*(finish(case) for case in CASES), return_exceptions=True)
    assert {case.name: result for case, result in zip(CASES, results, strict=True) if result} == {}
