"""A user who has one connection of the database can do everything: nothing begins a transaction within another."""

import pytest

from tests.scripted_model import ScriptedModel
from tests.support.approvals import decide, newest_run, pending
from tests.support.backends import user_at
from tests.support.script import add_task, call, calls, delete_tasks, says, start_coder
from tests.support.stack import Services

WORK = calls(call("write_file", path="a.txt", content="x"), call("run_command", command="cat a.txt"))
READS = (
    *("/tasks?view=all", "/tasks/changes", "/tasks/1", "/tasks/preview?text=milk", "/memory", "/usage", "/chats"),
    *("/chats/{chat}", "/chats/{chat}?limit=100", "/chats/{chat}/log", "/chats/{chat}/files"),
)


@pytest.mark.long(seconds=15)
async def test_one_connection_of_a_user_is_enough(services: Services, model: ScriptedModel) -> None:
    """A transaction within another would wait for the connection of that one, and fail."""
    await model.script(
        *(add_task("call mum", also=["milk"]), says("Fine.")),
        *(start_coder("do it"), WORK, says("It is written."), says("Fine.")),
        *(delete_tasks(1, 2), says("Fine.")),
    )
    async with user_at(services, LIMIT_DATABASE_SHARE="1", APPROVALS="delete_task,agents") as user:
        chat = (await user.chatkit.say("add call mum and milk")).thread_id
        for message in ("do task 1", "delete both tasks"):
            await user.chatkit.say(message, chat)
            run = await newest_run(user, chat)
            assert run["status"] == "WAITING_APPROVAL"
            while waiting := pending(run):
                run = await decide(user, chat, waiting[0])
            assert run["status"] == "COMPLETED"
        http = user.runs.http
        for path in READS:
            response = await http.get(path.format(chat=chat))
            assert response.status_code == 200 or path == "/tasks/1", response.text
        calendar = await http.post("/calendar")
        assert (await http.get(calendar.json()["url"])).status_code == 200
        assert (await http.delete(f"/chats/{chat}")).status_code < 300
