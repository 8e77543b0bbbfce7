"""The store adapter of openai-chatkit over conversations: items are rendered from runs, and nothing rendered is stored.

Raising `NotFound` here becomes the status 404, as no event has been sent by then.
"""

from typing import Any
from urllib.parse import quote

from chatkit import types as ck
from chatkit.store import Store, StoreItemType

from backend.api.chatkit import render
from backend.api.chatkit.requests import RequestContext, parse_replaced_conversation
from backend.api.messages import build_message, fill_titles
from backend.cards.agent_workflow import render_calls, render_workflow
from backend.cards.approvals import APPROVE, REJECT, parse_decision, render_approval
from backend.cards.service import CardService
from backend.cards.widget import Card, Workflow, record_of_item
from backend.conversations import branches, conversations, timeline
from backend.conversations.branches import RunPage
from backend.conversations.conversations import Conversation
from backend.conversations.errors import NotFirstMessage
from backend.conversations.run_requests import NewConversation, RunRequest, UserMessage
from backend.conversations.timeline import PAGE_BYTES
from backend.errors import InvalidRequest, NotFound
from backend.ids import new_id
from backend.runs.service import RunService
from backend.tools.table import find_tool
from backend.tools.workspace.files import FolderFiles
from common.pauses import with_pauses


class TimelineStore(Store[RequestContext]):
    """Adding a user's message starts the run that answers it; other items that are added are stored by their run."""

    def __init__(self, runs: RunService, cards: CardService, files: FolderFiles | None, backend_url: str) -> None:
        self._runs, self._database, self._cards, self._files = runs, runs.database, cards, files
        self._backend_url = backend_url

    def generate_thread_id(self, context: RequestContext) -> str:
        return new_id("thr")

    def generate_item_id(self, item_type: StoreItemType, thread: ck.ThreadMetadata, context: RequestContext) -> str:
        return new_id("msg")

    # Threads

    async def load_thread(self, thread_id: str, context: RequestContext) -> ck.ThreadMetadata:
        return _render_metadata(await self.find(thread_id, context))

    async def find(self, thread_id: str, context: RequestContext) -> Conversation:
        """Loads a conversation by its id, not by its name. Raises `NotFound`."""
        conversation = await conversations.find(self._database, context.user_id, thread_id)
        if conversation.id != thread_id:
            raise NotFound.of("conversation", thread_id)
        return conversation

    async def save_thread(self, thread: ck.ThreadMetadata, context: RequestContext) -> None:
        """Renames a conversation: nothing else of it is changed here, and its first run stores it."""
        await conversations.rename(self._database, context.user_id, thread.id, thread.title or "")

    async def load_threads(
        self, limit: int, after: str | None, order: str, context: RequestContext
    ) -> ck.Page[ck.ThreadMetadata]:
        if after is not None:
            await self.find(after, context)
        found, has_more = await conversations.load_page(
            self._database, context.user_id, limit=limit, after=after, oldest_first=order == "asc"
        )
        threads = [_render_metadata(conversation) for conversation in found]
        return ck.Page(data=threads, has_more=has_more, after=found[-1].id if has_more else None)

    async def delete_thread(self, thread_id: str, context: RequestContext) -> None:
        await conversations.delete(self._database, context.user_id, thread_id)
        if self._files is not None:
            await self._files.remove_all(thread_id, user_id=context.user_id)

    # Items

    async def load_thread_items(
        self, thread_id: str, after: str | None, limit: int, order: str, context: RequestContext
    ) -> render.ItemPage:
        """Loads at most `limit` items, and one megabyte of them, but at least one."""
        newest_first = order == "desc"
        record = record_of_item(after) if after is not None else None
        page = await self._load_page(thread_id, context, runs=limit + 2, newest_first=newest_first, from_record=record)
        shown = await self._list_shown(thread_id, page, context)
        if newest_first:
            shown.reverse()
        if after is not None:
            shown = shown[_find_position(shown, after) + 1 :]
        loaded, size, is_full = render.ItemPage(), 0, False
        async for one in with_pauses(shown):
            item = render.render_item(thread_id, one, page)
            if item is None:
                continue
            is_full = len(loaded.data) == limit or size > PAGE_BYTES
            if is_full:
                break
            loaded.data.append(item)
            loaded.serialized.append(render.serialize(item))
            size += len(loaded.serialized[-1])
        loaded.answering = next((run.id for run in page.runs if run.status == "running"), None)
        loaded.has_more = bool(loaded.data) and (is_full or page.is_cut)
        loaded.after = loaded.data[-1].id if loaded.has_more else None
        return loaded

    async def load_item(self, thread_id: str, item_id: str, context: RequestContext) -> ck.ThreadItem:
        page = await self._load_page(thread_id, context, runs=1, from_record=record_of_item(item_id))
        shown = await self._list_shown(thread_id, page, context)
        item = render.render_item(thread_id, shown[_find_position(shown, item_id)], page)
        if item is None:
            raise NotFound.of("item", item_id)
        return item

    async def find_message(
        self, thread_id: str, item_id: str, context: RequestContext
    ) -> tuple[ck.UserMessageItem, str]:
        """Loads the message that is to be edited or answered again, and the id of the run that it has started.

        Raises `NotFound`, `InvalidRequest` for an item that is no message of the user, and `NotFirstMessage` for one
        that has not started a run.
        """
        page = await self._load_page(thread_id, context, runs=1, from_record=record_of_item(item_id))
        entry = next((entry for entry in page.entries if entry.id == item_id), None)
        item = render.render_entry(thread_id, entry) if entry is not None else None
        if entry is None or not isinstance(item, ck.UserMessageItem):
            raise InvalidRequest("Only your own messages can be edited or answered again.")
        if entry is not page.find_first("user_message"):
            raise NotFirstMessage
        return item, entry.run_id

    async def find_sender(self, params: ck.ThreadCustomActionParams, context: RequestContext) -> ck.WidgetItem:
        action = params.action
        if params.item_id is None:
            raise InvalidRequest(f"There is no action {action.type!r}.")
        item = await self.load_item(params.thread_id, params.item_id, context)
        is_decision = action.type in (APPROVE, REJECT)
        if is_decision and parse_decision(action.payload, approved=False)[0] != record_of_item(item.id):
            raise NotFound.of("item", params.item_id)
        if not isinstance(item, ck.WidgetItem):
            raise NotFound.of("item", params.item_id)
        return item

    async def _load_page(self, thread_id: str, context: RequestContext, **page: Any) -> RunPage:
        return await branches.load_page(self._database, context.user_id, thread_id, **page)

    async def _list_shown(self, thread_id: str, page: RunPage, context: RequestContext) -> list[render.Shown]:
        cards = await self._cards.render(context.user_id, page.records, time_zone=context.user.time_zone)
        workflows, approvals = await self._render_sub_agents(thread_id, page, context)
        return render.order_shown(page, [*cards, *approvals], workflows)

    async def _render_sub_agents(
        self, thread_id: str, page: RunPage, context: RequestContext
    ) -> tuple[list[Workflow], list[Card]]:
        calls = {call.id: call for call in page.calls if find_tool(call.tool).agent is not None}
        if not calls:
            return [], []
        ids = list({call.run_id for call in calls.values()})
        trees = await timeline.load_trees(self._database, context.user_id, ids, only_sub_agents=True)
        url = self.folder_url(thread_id)
        workflows: list[Workflow] = []
        for run in trees.runs:
            if run.parent_call_id in calls:
                records = trees.of_run(run.id).records
                rendered = await render_calls(records, url)
                workflows.append(render_workflow(calls[run.parent_call_id], run, records, rendered))
        return workflows, [card for call in trees.calls if (card := render_approval(call)) is not None]

    def folder_url(self, thread_id: str) -> str:
        return f"{self._backend_url}/chats/{quote(thread_id)}/files"

    async def add_thread_item(self, thread_id: str, item: ck.ThreadItem, context: RequestContext) -> None:
        """Starts the run that answers a message; the item gets the time and the titles that are stored."""
        assert isinstance(item, ck.UserMessageItem)
        new = None
        if isinstance(context.request, ck.ThreadsCreateReq):
            new = NewConversation(details=await self._check_details(context.request, context))
        message = await self.create_message(item, context)
        request = RunRequest(thread_id, message, new, options=context.options, key=context.key)
        live = await self._runs.start(context.user_id, request)
        item.created_at, context.live = live.run.created_at, live

    async def create_message(self, item: ck.UserMessageItem, context: RequestContext) -> UserMessage:
        """Creates the message of an item, and gives the item the titles that its tasks have now."""
        item.content = await fill_titles(item.content, self._cards.tools, user_id=context.user_id)
        moment = self._runs.moment(context.user.time_zone)
        return build_message(item.id, item.content, quoted_text=item.quoted_text, moment=moment)

    async def _check_details(self, request: ck.ThreadsCreateReq, context: RequestContext) -> dict[str, Any]:
        name = parse_replaced_conversation(request)
        return {} if name is None else {"left": (await conversations.find(self._database, context.user_id, name)).id}

    async def _reject(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("Nothing rendered is stored, and there are no attachments.")

    save_item = delete_thread_item = save_attachment = load_attachment = delete_attachment = _reject


def _render_metadata(conversation: Conversation) -> ck.ThreadMetadata:
    return ck.ThreadMetadata(id=conversation.id, title=conversation.title, created_at=conversation.created_at)


def _find_position(shown: list[render.Shown], item_id: str) -> int:
    position = next((place for place, one in enumerate(shown) if one.id == item_id), None)
    if position is None:
        raise NotFound.of("item", item_id)
    return position
