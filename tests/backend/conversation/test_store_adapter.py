from datetime import timedelta
from typing import get_args

import pytest
from chatkit.types import ThreadItem, ThreadMetadata
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.acting import Acting
from backend.conversation.errors import LeaseLost, NotFound
from backend.conversation.model_input.history import note
from backend.conversation.rows import VISIBLE
from backend.conversation.store_adapter import PostgresStore
from tests.backend.conftest import Rows
from tests.backend.items import ALICE, BOB, EXAMPLES, make, new_thread

HIDDEN = {"hidden_context_item", "sdk_hidden_context"}


@pytest.fixture
async def store(engine: AsyncEngine) -> PostgresStore:
    return PostgresStore(engine)


@pytest.fixture
async def thread(engine: AsyncEngine) -> str:
    return await new_thread(engine, "alice")


def test_the_examples_and_the_kinds_cover_every_item_of_the_pinned_sdk() -> None:
    kinds = {member.model_fields["type"].default for member in get_args(get_args(ThreadItem)[0])}
    assert set(EXAMPLES) == kinds
    assert set(VISIBLE) == kinds - HIDDEN


@pytest.mark.parametrize("kind", [kind for kind in EXAMPLES if kind in VISIBLE])
async def test_every_visible_item_comes_back_as_it_was(store: PostgresStore, thread: str, kind: str) -> None:
    item = make(kind, thread)
    await store.add_thread_item(thread, item, ALICE)
    loaded = await store.load_item(thread, item.id, ALICE)
    assert loaded == item.model_copy(update={"created_at": loaded.created_at})
    assert loaded.created_at.utcoffset() == timedelta(0)
    assert abs(loaded.created_at.timestamp() - item.created_at.timestamp()) < 0.001
    assert (await store.load_thread_items(thread, None, 10, "asc", ALICE)).data == [loaded]


@pytest.mark.parametrize("kind", [kind for kind in EXAMPLES if kind in HIDDEN])
async def test_a_hidden_item_is_in_the_history_only(store: PostgresStore, thread: str, kind: str) -> None:
    item = make(kind, thread)
    await store.add_thread_item(thread, item, ALICE)
    assert (await store.load_thread_items(thread, None, 10, "asc", ALICE)).data == []
    with pytest.raises(NotFound):
        await store.load_item(thread, item.id, ALICE)
    assert [row.id for row in (await store.history(thread, ALICE)).rows] == [item.id]


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_pages_are_full_and_in_order_with_hidden_rows_between(
    store: PostgresStore, thread: str, order: str
) -> None:
    visible = []
    for number in range(25):
        item = make("assistant_message", thread)
        visible.append(item.id)
        await store.write(thread, [item, *(note("hidden") for _ in range(number % 4))], ALICE)
    expected = visible if order == "asc" else visible[::-1]
    seen: list[str] = []
    after = None
    while True:
        page = await store.load_thread_items(thread, after, 10, order, ALICE)
        seen += [item.id for item in page.data]
        if not page.has_more:
            break
        assert len(page.data) == 10
        after = page.after
    assert seen == expected
    assert page.after is None


async def test_a_cursor_holds_when_its_item_is_taken_out(store: PostgresStore, thread: str) -> None:
    items = [make("assistant_message", thread) for _ in range(4)]
    await store.write(thread, items, ALICE)
    page = await store.load_thread_items(thread, None, 2, "asc", ALICE)
    await store.delete_thread_item(thread, items[1].id, ALICE)
    rest = await store.load_thread_items(thread, page.after, 2, "asc", ALICE)
    assert [item.id for item in rest.data] == [items[2].id, items[3].id]


async def test_a_type_of_a_later_version_stays_in_its_row_unshown(
    store: PostgresStore, thread: str, rows: Rows
) -> None:
    items = [make("assistant_message", thread) for _ in range(3)]
    await store.write(thread, items, ALICE)
    rows("UPDATE messages SET kind = 'hologram', item = item || '{\"type\": \"hologram\"}' WHERE id = %s", items[1].id)
    page = await store.load_thread_items(thread, None, 2, "asc", ALICE)
    assert [item.id for item in page.data] == [items[0].id, items[2].id]
    assert not page.has_more
    assert len((await store.history(thread, ALICE)).rows) == 3


async def test_writing_an_item_again_updates_it_in_its_place(store: PostgresStore, thread: str) -> None:
    first, second = make("workflow", thread), make("assistant_message", thread)
    await store.write(thread, [first, second], ALICE)
    changed = make("workflow", thread, id=first.id, workflow={"type": "reasoning", "tasks": []})
    await store.save_item(thread, changed, ALICE)
    loaded = (await store.load_thread_items(thread, None, 10, "asc", ALICE)).data
    assert [item.id for item in loaded] == [first.id, second.id]
    assert loaded[0].model_dump()["workflow"]["type"] == "reasoning"


async def test_the_same_item_id_in_two_threads_is_two_items(engine: AsyncEngine, store: PostgresStore) -> None:
    one, other = await new_thread(engine, "alice"), await new_thread(engine, "alice")
    for thread in (one, other):
        await store.add_thread_item(thread, make("assistant_message", thread, id="msg_same"), ALICE)
    for thread in (one, other):
        assert (await store.load_item(thread, "msg_same", ALICE)).thread_id == thread


async def test_the_placeholder_id_is_refused(store: PostgresStore, thread: str) -> None:
    with pytest.raises(Exception, match="messages_real_id"):
        await store.add_thread_item(thread, make("assistant_message", thread, id="__fake_id__"), ALICE)


async def test_a_stranger_finds_nothing_and_changes_nothing(store: PostgresStore, thread: str, rows: Rows) -> None:
    item = make("assistant_message", thread)
    await store.add_thread_item(thread, item, ALICE)
    before = rows("SELECT * FROM messages"), rows("SELECT * FROM conversations")
    metadata = await store.load_thread(thread, ALICE)
    for attempt in (
        store.load_thread(thread, BOB),
        store.save_thread(metadata.model_copy(update={"title": "mine"}), BOB),
        store.delete_thread(thread, BOB),
        store.load_item(thread, item.id, BOB),
        store.load_thread_items(thread, item.id, 10, "asc", BOB),
        store.load_threads(10, thread, "asc", BOB),
        store.save_feedback(thread, [item.id], "positive", BOB),
        store.save_item(thread, make("assistant_message", thread, id=item.id), BOB),
    ):
        with pytest.raises(NotFound):
            await attempt
    await store.delete_thread_item(thread, item.id, BOB)
    assert (await store.load_thread_items(thread, None, 10, "asc", BOB)).data == []
    assert (await store.history(thread, BOB)).rows == []
    assert (await store.load_threads(10, None, "asc", BOB)).data == []
    assert (rows("SELECT * FROM messages"), rows("SELECT * FROM conversations")) == before


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_threads_are_paged_without_gaps(
    engine: AsyncEngine, store: PostgresStore, order: str, rows: Rows
) -> None:
    created = [await new_thread(engine, "alice") for _ in range(7)]
    rows("UPDATE conversations SET created_at = now()")  # equal times must not matter
    seen: list[str] = []
    after = None
    while True:
        page = await store.load_threads(3, after, order, ALICE)
        seen += [thread.id for thread in page.data]
        after = page.after
        if not page.has_more:
            break
    assert seen == (created if order == "asc" else created[::-1])


async def test_metadata_comes_back_and_only_metadata_is_saved(store: PostgresStore, thread: str) -> None:
    loaded = await store.load_thread(thread, ALICE)
    changed = TypeAdapter(ThreadMetadata).validate_python(
        loaded.model_dump()
        | {
            "title": "t",
            "status": {"type": "locked", "reason": "r"},
            "metadata": {"a": 1},
            "allowed_image_domains": ["x.org"],
        }
    )
    await store.save_thread(changed, ALICE)
    assert (await store.load_thread(thread, ALICE)).model_dump(exclude={"answering"}) == changed.model_dump()


async def test_feedback_is_kept_on_all_items_or_on_none(store: PostgresStore, thread: str, rows: Rows) -> None:
    items = [make("assistant_message", thread) for _ in range(2)]
    await store.write(thread, items, ALICE)
    with pytest.raises(NotFound):
        await store.save_feedback(thread, [items[0].id, "msg_0"], "negative", ALICE)
    assert rows("SELECT feedback FROM messages WHERE feedback IS NOT NULL") == []
    await store.save_feedback(thread, [item.id for item in items], "negative", ALICE)
    assert rows("SELECT feedback FROM messages") == [{"feedback": "negative"}] * 2


async def test_a_turn_without_a_lease_writes_nothing(store: PostgresStore, thread: str, rows: Rows) -> None:
    fenced = Acting("alice", "run_gone")
    item = make("assistant_message", thread)
    metadata = await store.load_thread(thread, ALICE)
    for attempt in (
        store.add_thread_item(thread, item, fenced),
        store.save_item(thread, item, fenced),
        store.delete_thread_item(thread, item.id, fenced),
        store.save_thread(metadata, fenced),
    ):
        with pytest.raises(LeaseLost):
            await attempt
    assert rows("SELECT * FROM messages") == []
