"""ChatKit's server, store and converter, as `doors` and `conversation` use them."""

from typing import Any, get_args

import chatkit.server
import httpx2
import pytest
from chatkit import types as ck
from chatkit.agents import ThreadItemConverter
from chatkit.server import ChatKitServer, NonStreamingResult
from chatkit.store import StoreItemType
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from backend.conversation.acting import Acting
from backend.conversation.errors import NotFound
from backend.conversation.store_adapter import PostgresStore
from tests.backend.items import ALICE, make, new_thread
from tests.conftest import ROOT
from tests.serving import serve

REQUEST = TypeAdapter[Any](ck.ChatKitReq)
THREAD = ck.ThreadMetadata.model_validate({"id": "thr_1", "created_at": "2026-11-22T12:00:00"})


class Server(ChatKitServer[Acting]):
    """Notes what it is asked by the methods that `TodoChatServer` overrides."""

    def __init__(self, store: PostgresStore) -> None:
        super().__init__(store)
        self.asked: list[Any] = []

    def respond(self, thread: Any, input_user_message: Any, context: Acting) -> Any:
        raise AssertionError("nothing here streams")

    async def add_feedback(self, thread_id: str, item_ids: list[str], feedback: Any, context: Acting) -> None:
        self.asked.append((thread_id, item_ids, feedback))

    async def sync_action(self, thread: Any, action: Any, sender: Any, context: Acting) -> ck.SyncCustomActionResponse:
        self.asked.append((thread.id, action.type, action.payload, sender.id))
        return ck.SyncCustomActionResponse(updated_item=sender)


async def test_what_does_not_stream_is_answered_from_the_store_and_by_the_hooks(engine: AsyncEngine) -> None:
    """By `_process_non_streaming`."""
    store, thread = PostgresStore(engine), await new_thread(engine, "alice")
    server, widget = Server(store), make("widget", thread)
    await store.write(thread, [widget], ALICE)

    async def ask(operation: str, **params: Any) -> Any:
        request = REQUEST.validate_python({"type": operation, "params": params})
        return TypeAdapter(Any).validate_json(await server._process_non_streaming(request, ALICE))

    assert (await ask("threads.update", thread_id=thread, title="tea"))["title"] == "tea"
    assert [(one["id"], one["title"]) for one in (await ask("threads.list"))["data"]] == [(thread, "tea")]
    assert await ask("items.feedback", thread_id=thread, item_ids=[widget.id], kind="positive") == {}
    action = {"type": "tick", "payload": {"id": 1}}
    given = {"thread_id": thread, "item_id": widget.id, "action": action}
    assert (await ask("threads.sync_custom_action", **given))["updated_item"]["id"] == widget.id
    assert server.asked == [(thread, [widget.id], "positive"), (thread, "tick", {"id": 1}, widget.id)]
    assert await ask("threads.delete", thread_id=thread) == {}
    with pytest.raises(NotFound):
        await store.load_thread(thread, ALICE)


async def test_the_public_way_in_makes_its_reader_for_each_request(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hence `_process_non_streaming`; where this fails, `process` will do."""
    made: list[object] = []

    class Counting:
        def __getitem__(self, kind: Any) -> Any:
            made.append(kind)
            return TypeAdapter[kind]

    monkeypatch.setattr(chatkit.server, "TypeAdapter", Counting())
    server = Server(PostgresStore(engine))
    for _ in range(2):
        answer = await server.process(b'{"type": "threads.list", "params": {}}', ALICE)
        assert isinstance(answer, NonStreamingResult)
    assert len(made) == 2


def test_an_answer_shows_the_metadata_of_a_thread() -> None:
    """Hence it is left out where a thread is opened, as the SDK's own answer leaves it out."""
    shown = ck.Thread(**{**THREAD.model_dump(), "metadata": {"a": 1}}, items=ck.Page())
    assert "metadata" in shown.model_dump(context={"exclude_metadata": True})


class Marking(ThreadItemConverter):
    async def user_message_to_input(self, item: Any, is_last_message: bool = True) -> Any:
        return {"role": "user", "content": f"the person's {item.id}"}

    async def assistant_message_to_input(self, item: Any) -> Any:
        return {"role": "assistant", "content": f"the assistant's {item.id}"}

    async def hidden_context_to_input(self, item: Any) -> None:
        pass


async def test_items_are_converted_by_the_hooks_of_their_kind() -> None:
    """Those of `_Converter`; the others are the SDK's own."""
    user, assistant = make("user_message", "thr_1"), make("assistant_message", "thr_1")
    hidden = make("hidden_context_item", "thr_1")
    assert await Marking().to_agent_input([user, assistant, hidden]) == [
        {"role": "user", "content": f"the person's {user.id}"},
        {"role": "assistant", "content": f"the assistant's {assistant.id}"},
    ]
    call = make("client_tool_call", "thr_1", status="completed", output={"b": 2})
    made, output = await Marking().to_agent_input(call)
    assert (made.get("type"), output.get("type")) == ("function_call", "function_call_output")


async def test_the_store_knows_every_kind_that_it_may_be_asked_an_id_for(engine: AsyncEngine) -> None:
    for kind in get_args(StoreItemType):
        assert PostgresStore(engine).generate_item_id(kind, THREAD, ALICE)


async def test_a_file_is_answered_by_the_hook_that_adds_to_it() -> None:
    """`_Files.file_response`, also where it has not changed since."""

    class Files(StaticFiles):
        def file_response(self, *given: Any, **options: Any) -> Response:
            response = super().file_response(*given, **options)
            response.headers["x-seen"] = "yes"
            return response

    async with (
        serve(Files(directory=ROOT / "web"), lifespan="off") as url,
        httpx2.AsyncClient(base_url=url, trust_env=False) as http,
    ):
        first = await http.get("/page.js")
        second = await http.get("/page.js", headers={"if-none-match": first.headers["etag"]})
    assert [(answer.status_code, answer.headers["x-seen"]) for answer in (first, second)] == [
        (200, "yes"),
        (304, "yes"),
    ]
