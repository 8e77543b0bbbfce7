"""The server of openai-chatkit: `respond` follows the run that answers a message, and renders its events."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from chatkit import types as ck
from chatkit.actions import Action
from chatkit.server import DEFAULT_PAGE_SIZE, ChatKitServer, NonStreamingResult, StreamingResult
from pydantic import BaseModel

from backend.api.chatkit import requests
from backend.api.chatkit.events import ChatKitRenderer, encode_event, explain_error
from backend.api.chatkit.render import render_card, serialize, serialize_items, serialize_thread
from backend.api.chatkit.requests import RequestContext
from backend.api.chatkit.store import TimelineStore
from backend.api.messages import MessageTooLong
from backend.cards.agent_workflow import WorkflowStream
from backend.cards.approvals import APPROVE, REJECT, parse_decision, render_approval
from backend.cards.service import CardService, CardStream, Click
from backend.cards.widget import record_of_item
from backend.conversations import branches, conversations, runs
from backend.conversations.errors import AlreadyDecided
from backend.conversations.run_requests import RunRequest
from backend.errors import BackendError, Busy, InvalidRequest, LimitReached, NotFound, Overloaded
from backend.ids import new_id
from backend.model.providers import ModelEndpoint
from backend.runs.outcomes import Ending
from backend.runs.service import RunService
from backend.tools.workspace.files import FolderFiles
from backend.users.idempotency import start_once

Events = AsyncIterator[ck.ThreadStreamEvent]

_OPTIONS = ck.StreamOptionsEvent(stream_options=ck.StreamOptions(allow_cancel=True))


class TodoChatKitServer(ChatKitServer[RequestContext]):
    store: TimelineStore

    def __init__(
        self,
        run_service: RunService,
        cards: CardService,
        files: FolderFiles | None,
        endpoint: ModelEndpoint,
        *,
        message_chars: int,
        backend_url: str,
    ) -> None:
        super().__init__(TimelineStore(run_service, cards, files, backend_url))
        self._runs, self._cards, self._database = run_service, cards, run_service.database
        self._endpoint, self._message_chars = endpoint, message_chars

    async def process(
        self, request: str | bytes | bytearray, context: RequestContext
    ) -> StreamingResult | NonStreamingResult:
        """Processes the request of the context, which was parsed of `request`; raises what an HTTP status can tell.

        An error that is only about limits is sent in the stream, as OpenAI's widget does not show a status.

        What the SDK's own (openai-chatkit 1.6.5) cannot do:
        - It streams before anything is stored, so that a request that cannot be done would have the status 200.
        - It knows no idempotency keys.
        - It has the store add, replace and delete what is streamed; here, runs store themselves, and items are views.
        - To answer a message again, it reads page after page and deletes what followed; here, that becomes a branch.
        """
        parsed = context.request
        try:
            requests.check_request(parsed, message_chars=self._message_chars)
            if context.user.is_guest and (thread_id := requests.get_changed_thread(parsed)) is not None:
                await conversations.check_owner(self._database, context.user_id, thread_id)
            if not ck.is_streaming_req(parsed):
                return NonStreamingResult(await self._process_non_streaming(parsed, context))
            context.options = requests.run_options(parsed, self._endpoint)
            context.key = requests.parse_idempotency_key(parsed)
            start = partial(self._start, parsed, context)
            events = await start_once(self._database, context.user_id, context.key, start)
            if isinstance(events, str):
                events = await self._replay(events, context)
        except (Busy, LimitReached, MessageTooLong, Overloaded) as error:
            if not ck.is_streaming_req(parsed):
                raise
            events = _yield_error(error)
        return StreamingResult(self._encode(events, context))

    async def _encode(self, events: Events, context: RequestContext) -> AsyncGenerator[bytes, None]:
        """Yields a stream's frames; a reader who leaves stops the run, unless it is detached; the end of the sign-in
        does not.
        """
        try:
            try:
                async for event in events:
                    yield encode_event(event)
            except Exception as error:  # noqa: BLE001 - it is logged, and the reader gets a sentence
                yield encode_event(explain_error(error))
        finally:
            if context.live is not None and not context.is_detached and not context.user.sign_in.is_over:
                context.live.stop(Ending("cancelled", "cancelled"))

    async def _start(self, request: ck.StreamingReq, context: RequestContext) -> Events:
        """Returns the events of a request, which has started its run if it has a message. Raises what is wrong with it:
        `NotFound`, `InvalidRequest`, and for a message also the errors of `RunService.start`.
        """
        if isinstance(request, ck.ThreadsCreateReq | ck.ThreadsAddUserMessageReq):
            return await self._add_message(request, context)
        # An answer again is started here, too, and not by its reader, so that its key is found if it was stored.
        thread = await self.store.load_thread(request.params.thread_id, context)
        match request:
            case ck.ThreadsRetryAfterItemReq(params=params):
                message, run_id = await self.store.find_message(thread.id, params.item_id, context)
                return await self._answer_again(thread, run_id, message, context)
            case ck.ThreadsCustomActionReq(params=params) if params.action.type == requests.EDIT:
                edit = requests.parse_edit(params.action)
                message, run_id = await self.store.find_message(thread.id, edit.item_id, context)
                content = edit.content or [ck.UserMessageTextContent(text=edit.text or "")]
                edited = message.model_copy(update={"id": new_id("msg"), "content": content})
                requests.check_message(edited, self._message_chars)
                return await self._answer_again(thread, run_id, edited, context, is_edited=True)
            case ck.ThreadsCustomActionReq(params=params) if params.action.type == requests.FOLLOW:
                return self._follow_running(thread, context)
            case ck.ThreadsCustomActionReq(params=params):
                sender = await self.store.find_sender(params, context)
                return self.action(thread, params.action, sender, context)
            case ck.ThreadsAddStructuredInputReq(params=params):
                await self.store.load_item(thread.id, params.item_id, context)
                raise InvalidRequest("This question cannot be answered any more.")  # no question of this kind is asked
            case _:
                raise InvalidRequest("No tool call in this conversation is waiting for an output.")

    async def _add_message(
        self, request: ck.ThreadsCreateReq | ck.ThreadsAddUserMessageReq, context: RequestContext
    ) -> Events:
        is_new = isinstance(request, ck.ThreadsCreateReq)
        thread_id = self.store.generate_thread_id(context) if is_new else request.params.thread_id
        thread = ck.ThreadMetadata(id=thread_id, created_at=datetime.now(UTC))
        item = await self._build_user_message_item(request.params.input, thread, context)
        await self.store.add_thread_item(thread_id, item, context)
        assert context.live is not None
        if (head := context.live.conversation) is not None:
            thread.title, thread.created_at = head.title, head.created_at
        shown = self._to_thread_response(thread)
        before: list[ck.ThreadStreamEvent] = [ck.ThreadItemDoneEvent(item=item), _OPTIONS]
        if is_new:
            before.insert(0, ck.ThreadCreatedEvent(thread=shown))
        else:  # its reader may know another title, as one is made after the first answer
            before.append(ck.ThreadUpdatedEvent(thread=shown))
        return self._follow(thread, context.live.run.id, context, before=before, message=item)

    async def _answer_again(
        self,
        thread: ck.ThreadMetadata,
        run_id: str,
        message: ck.UserMessageItem,
        context: RequestContext,
        *,
        is_edited: bool = False,
    ) -> Events:
        """Starts a run that answers a message in place of an earlier run, and returns its events."""
        request = RunRequest(
            thread.id,
            await self.store.create_message(message, context) if is_edited else None,
            replaces=run_id,
            options=context.options,
            key=context.key,
            moment=self._runs.moment(context.user.time_zone),
        )
        context.live = await self._runs.start(context.user_id, request)
        known = None if is_edited else message
        return self._follow(thread, context.live.run.id, context, message=known)

    async def _replay(self, run_id: str, context: RequestContext) -> Events:
        run = await runs.load(self._database, context.user_id, run_id)
        if run.conversation_id is None:
            raise NotFound("The conversation that this message was sent to was deleted. Send it with a new key.")
        thread = await self.store.load_thread(run.conversation_id, context)
        before: list[ck.ThreadStreamEvent] = [_OPTIONS]
        if isinstance(context.request, ck.ThreadsCreateReq):
            before.insert(0, ck.ThreadCreatedEvent(thread=self._to_thread_response(thread)))
        return self._follow(thread, run_id, context, before=before)

    async def _follow_running(self, thread: ck.ThreadMetadata, context: RequestContext) -> Events:
        """Yields the answer that is being written, from its beginning."""
        run_id = (await self.store.find(thread.id, context)).answering
        if run_id is not None:
            before = (_OPTIONS,) if context.is_detached else (_create_interaction_event(run_id), _OPTIONS)
            async for event in self._follow(thread, run_id, context, before=before):
                yield event

    async def _follow(
        self,
        thread: ck.ThreadMetadata,
        run_id: str,
        context: RequestContext,
        *,
        before: Sequence[ck.ThreadStreamEvent] = (_OPTIONS,),
        message: ck.UserMessageItem | None = None,
        after: int = 0,
    ) -> Events:
        """Yields what comes before the answer, and the answer of a run, from its events after a number."""
        context.run_id, context.after = run_id, after
        if context.is_detached:
            yield _create_interaction_event(run_id)
        for event in before:
            yield event
        async for event in self.respond(thread, message, context):
            yield event

    async def respond(
        self, thread: ck.ThreadMetadata, input_user_message: ck.UserMessageItem | None, context: RequestContext
    ) -> Events:
        """Yields the events of the run that answers, to where it ends or waits, and for a detached reader those of its
        follow-ups. The run was started when its message was added; its reader has `input_user_message`.
        """
        run_id, after = context.run_id, context.after
        known_message_id = input_user_message.id if input_user_message is not None else None
        while run_id is not None:
            cards = CardStream(self._cards, context.user_id, thread.id, context.user.time_zone)
            workflows = WorkflowStream(self.store.folder_url(thread.id))
            renderer = ChatKitRenderer(thread.id, cards, workflows, after=after, known_message_id=known_message_id)
            events = self._runs.streams.follow(context.user_id, run_id, while_waiting=False)
            async for event in renderer.render(events):
                yield event
            run_id, after, known_message_id = renderer.next_run_id if context.is_detached else None, 0, None
            if run_id is not None:
                yield _create_interaction_event(run_id)

    # Actions

    async def action(
        self, thread: ck.ThreadMetadata, action: Action[str, Any], sender: ck.WidgetItem | None, context: RequestContext
    ) -> Events:
        assert sender is not None
        if action.type in (APPROVE, REJECT):
            async for event in self._decide(thread, action, sender, context):
                yield event
            return
        # The clicked card last: it is the newest of what a client has replaced.
        for item in reversed(await self._handle_click(thread.id, action, sender, context)):
            yield ck.ThreadItemReplacedEvent(item=item)

    async def _decide(
        self, thread: ck.ThreadMetadata, action: Action[str, Any], card: ck.WidgetItem, context: RequestContext
    ) -> Events:
        """Approves or rejects a call and yields its new card; the last decision continues the run, whose events follow.

        For a call that was decided before, yields its card and raises `AlreadyDecided`.
        """
        call_id, decision, always = parse_decision(action.payload, approved=action.type == APPROVE)
        try:
            call, live = await self._runs.decide(context.user_id, call_id, decision, always=always)
        except AlreadyDecided:
            yield ck.ThreadItemReplacedEvent(item=await self.store.load_item(thread.id, card.id, context))
            raise
        context.live = live
        decided = render_approval(call)
        shown = [ck.ThreadItemReplacedEvent(item=render_card(thread.id, decided))] if decided else []
        if live is None:
            for event in shown:
                yield event
            return
        before = [_OPTIONS, *shown]
        async for event in self._follow(thread, live.run.id, context, before=before, after=live.stream.base):
            yield event

    async def _handle_click(
        self, thread_id: str, action: Action[str, Any], sender: ck.WidgetItem, context: RequestContext
    ) -> list[ck.ThreadItem]:
        key = context.request.metadata.get("idempotency_key")
        click = Click(sender.id, action.type, action.payload, key if isinstance(key, str) else None)
        cards = await self._cards.act(context.user_id, thread_id, click, time_zone=context.user.time_zone)
        return [render_card(thread_id, card) for card in cards]

    # Without a stream

    async def _process_non_streaming(self, request: ck.NonStreamingReq, context: RequestContext) -> bytes:
        if isinstance(request, ck.ThreadsSyncCustomActionReq):
            params, user_id = request.params, context.user_id
            if params.action.type == requests.CLEAR_FEEDBACK:
                item_id = params.item_id or ""
                await conversations.store_feedback(
                    self._database, user_id, params.thread_id, [record_of_item(item_id)], None
                )
                item = await self.store.load_item(params.thread_id, item_id, context)
                return self._serialize(ck.SyncCustomActionResponse(updated_item=item))
            if params.action.type == requests.SHOW_VERSION:
                run_id = requests.parse_version(params.action)
                await self._runs.find(user_id, params.thread_id, run_id)
                newest = await branches.find_newest_descendant(self._database, user_id, params.thread_id, run_id)
                await self._runs.show(user_id, params.thread_id, newest)
                return self._serialize(ck.SyncCustomActionResponse())
            sender = await self.store.find_sender(params, context)
            items = await self._handle_click(params.thread_id, params.action, sender, context)
            return self._serialize(ck.SyncCustomActionResponse(updated_item=items[0]))
        match request:
            case ck.ItemsListReq(params=params):
                limit = params.limit or DEFAULT_PAGE_SIZE
                page = await self.store.load_thread_items(params.thread_id, params.after, limit, params.order, context)
                return serialize_items(page)
            case ck.ThreadsGetByIdReq(params=params):
                thread = await self.store.load_thread(params.thread_id, context)
                page = await self.store.load_thread_items(thread.id, None, DEFAULT_PAGE_SIZE, "asc", context)
                return serialize_thread(self._to_thread_response(thread), page)
            case _:
                return await super()._process_non_streaming(request, context)

    async def add_feedback(
        self, thread_id: str, item_ids: list[str], feedback: ck.FeedbackKind, context: RequestContext
    ) -> None:
        records = map(record_of_item, item_ids)
        await conversations.store_feedback(self._database, context.user_id, thread_id, records, feedback)

    def _serialize(self, obj: BaseModel) -> bytes:
        return serialize(obj)


async def _yield_error(error: BackendError) -> Events:
    yield explain_error(error)


def _create_interaction_event(run_id: str) -> ck.ClientEffectEvent:
    """Creates the event that tells a client the run's id, by which it can stop the run."""
    return ck.ClientEffectEvent(name="todo.interaction", data={"interaction_id": run_id})
