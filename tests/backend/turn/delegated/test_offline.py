"""The one demonstration of the offline model: it carries a task out as an agent, by the real tools."""

from typing import Any

from offline_model.app import create_app
from offline_model.settings import Settings
from tests.backend.agents_at_work import Files, work
from tests.backend.conftest import Backend, Rows
from tests.serving import serve


async def test_the_offline_model_carries_tasks_out(
    backend: Backend, with_agents: dict[str, Any], rows: Rows, files: Files
) -> None:
    async with (
        serve(create_app(Settings()), lifespan="off") as url,
        backend(**with_agents, llm_base_url=f"{url}/v1") as chat,
    ):
        thread = (await chat.say("add write a shopping list for pancakes to shopping.md")).thread_id
        await chat.say("add count the words of notes.txt", thread)
        await chat.http.put(f"/chats/{thread}/files/notes.txt", content=b"one two\nthree four five\n")

        written = await chat.say("do task 1", thread)
        assert written.error is None
        assert files.of(thread)["shopping.md"].startswith("# Shopping list for pancakes\n\n- 200 g flour\n")
        told = "I wrote a shopping list for pancakes to shopping.md and read it again. It lists 200 g flour,"
        assert told in written.text
        assert written.text.endswith('Shall I complete task 1? Say "yes" to complete it.')
        assert [task["title"] for task in work(written)["tasks"][1:]] == ["Wrote shopping.md", "Read shopping.md"]
        assert (await chat.say("yes", thread)).text.startswith('Completed "write a shopping list')
        assert rows("SELECT id FROM tasks WHERE status = 'completed'") == [{"id": 1}]

        counted = await chat.say("do task 2", thread)
        assert "notes.txt has 5 words." in counted.text
        assert (await chat.say("no", thread)).text.startswith("All right")
        assert "I found no task" in (await chat.say("do task 9", thread)).text
