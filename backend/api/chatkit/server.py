"""The server of openai-chatkit: a run answers a message, and its events are rendered as ChatKit's."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from chatkit import types as ck
from chatkit.actions import Action
from chatkit.server import ChatKitServer, NonStreamingResult, StreamingResult
from pydantic import BaseModel

from backend.api.chatkit import checks, requests
from backend.api.chatkit.context import RequestContext
from backend.api.chatkit.events import EventRenderer
from backend.api.chatkit.render import record_of_item, render_card
from backend.api.chatkit.store import TimelineStore
from backend.api.chatkit.stream import Events, explain_errors, frame, in_order, interaction_event
from backend.api.idempotency import find_started_run
from backend.api.messages import create_message, with_titles
from backend.cards.actions import Click
from backend.cards.agent_workflow import WorkflowStream
from backend.cards.approvals import APPROVE, REFUSE, parse_decision, render_approval
from backend.cards.service import CardService
from backend.cards.stream import CardStream
from backend.conversations import branches, conversations, runs, timeline
from backend.conversations.entries import store_feedback
from backend.conversations.errors import AlreadyDecided
from backend.conversations.records import Entry, Event
from backend.conversations.run_requests import RunRequest
from backend.errors import BackendError, InvalidRequest, NotFound
from backend.model.providers import ModelEndpoint, check_options
from backend.runs.outcomes import Ending
from backend.runs.service import RunService
from backend.tools.workspace.files import FolderFiles
from common.ids import new_id


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
        """Processes a request as the SDK does, but raises before there is a result if it cannot be done: the first
        event is held back. A request that came before under the same key gets the answer of that run.
        """
        context.request = parsed = requests.parse_request(request)
        checks.check_request(parsed, message_chars=self._message_chars)
        if context.is_guest and (thread_id := requests.changed_thread(parsed)) is not None:
            await conversations.check_owner(self._database, context.user_id, thread_id)
        if not ck.is_streaming_req(parsed):
            return NonStreamingResult(await self._process_non_streaming(parsed, context))
        context.options = self._options(parsed)
        context.key = requests.idempotency_key_of(parsed)
        if (run_id := await find_started_run(self._database, context.user_id, context.key)) is not None:
            return StreamingResult(self._replay(run_id, context))
        await self._check(parsed, context)
        try:
            return StreamingResult(await self._begin(parsed, context))
        except BackendError:
            if (run_id := await find_started_run(self._database, context.user_id, context.key)) is None:
                raise
            return StreamingResult(self._replay(run_id, context))

    def _options(self, request: ck.StreamingReq) -> dict[str, Any]:
        """The options of the run; raises `InvalidRequest` for a model that is not offered."""
        options = check_options(*requests.model_choice(request), endpoint=self._endpoint)
        allowed = requests.allowed_tools(request)
        return options | ({"allowed_tools": allowed} if allowed else {})

    async def _check(self, request: ck.StreamingReq, context: RequestContext) -> None:
        """Raises before the stream begins what the SDK's stream could not tell with a status, and notes the run that is
        answered again.
        """
        match request:
            case ck.ThreadsRetryAfterItemReq(params=params):
                message = await self.store.find_message(params.thread_id, params.item_id, context)
                context.answered_run_id = message.run_id
            case ck.ThreadsCustomActionReq(params=params) if params.action.type == requests.EDIT:
                edit = requests.parse_edit(params.action)
                message = await self.store.find_message(params.thread_id, edit.item_id, context)
                checks.check_message(_edited(message.item, edit), self._message_chars)
                context.answered_run_id = message.run_id
            case ck.ThreadsCustomActionReq(params=params) if params.action.type not in requests.WITHOUT_ITEM:
                await self._check_card(params, context)
                if params.action.type in (APPROVE, REFUSE):
                    call_id, _, _ = parse_decision(params.action.payload, approved=params.action.type == APPROVE)
                    if record_of_item(params.item_id or "") != call_id:
                        raise NotFound
            case ck.ThreadsAddStructuredInputReq(params=params):
                await self.store.load_item(params.thread_id, params.item_id, context)
                raise InvalidRequest("This question cannot be answered any more.")  # no question of this kind is asked
            case ck.ThreadsAddClientToolOutputReq(params=params):
                await self.store.find(params.thread_id, context)
                raise InvalidRequest("No tool call in this conversation is waiting for an output.")
            case _:
                pass

    async def _check_card(self, params: ck.ThreadCustomActionParams, context: RequestContext) -> None:
        """Raises `InvalidRequest` or `NotFound` for an action that names no item, or an item that is no card."""
        if params.item_id is None:
            await self.store.find(params.thread_id, context)
            raise InvalidRequest(f"There is no action {params.action.type!r}.")
        if record_of_item(params.item_id) == params.item_id:
            raise NotFound

    # Streams

    async def _begin(self, request: ck.StreamingReq, context: RequestContext) -> AsyncGenerator[bytes, None]:
        """Waits for the first frame of a stream, so that errors before it are raised, and returns all frames.

        All are read in one task, as the SDK sets a ContextVar.
        """
        frames = self._frames(request, context)
        first = await anext(frames, None)

        async def with_first() -> AsyncGenerator[bytes, None]:
            async with aclosing(frames):
                if first is not None:
                    yield first
                    async for frame in frames:
                        yield frame

        return with_first()

    async def _frames(self, request: ck.StreamingReq, context: RequestContext) -> AsyncGenerator[bytes, None]:
        """Yields a stream's frames; a reader who leaves stops the run, unless it is detached."""
        try:
            events = self._process_streaming_impl(request, context)
            async for event in in_order(events, context):
                yield frame(self._serialize(event))
        finally:
            if context.live is not None and not context.is_detached:
                context.live.stop(Ending("cancelled", "cancelled"))

    async def _process_streaming_impl(
        self, request: ck.StreamingReq, context: RequestContext
    ) -> AsyncGenerator[ck.ThreadStreamEvent, None]:
        """Yields the events of a request as the SDK does; only a retry is begun here, as the SDK reads page after page
        up to the item and deletes each item after it.
        """
        if not isinstance(request, ck.ThreadsRetryAfterItemReq):
            events: Events = super()._process_streaming_impl(request, context)
        else:
            thread = await self.store.load_thread(request.params.thread_id, context)
            events = self._process_events(thread, context, lambda: self.respond(thread, None, context))
        async for event in events:
            yield event

    def respond(
        self, thread: ck.ThreadMetadata, input_user_message: ck.UserMessageItem | None, context: RequestContext
    ) -> Events:
        """Yields the events of the answer to a message, as the SDK asks for them."""
        return explain_errors(self._answer(thread, context))

    async def _answer(self, thread: ck.ThreadMetadata, context: RequestContext) -> Events:
        """Yields the events of the run that the message has started; for a retry, starts the run first."""
        if context.live is None:
            request = RunRequest(
                thread.id,
                None,
                replaces=context.answered_run_id,
                options=context.options,
                key=context.key,
                moment=self._runs.moment(context.time_zone),
            )
            async for event in self._begin_run(request, context):
                yield event
        assert context.live is not None
        head = context.live.conversation
        if isinstance(context.request, ck.ThreadsAddUserMessageReq) and head is not None:
            # Its reader may know another title, as one is made after the first answer; the SDK sends what has changed.
            thread.title, thread.created_at = head.title, head.created_at
        async for event in self._stream_run(thread.id, context, without_message=True):
            yield event

    async def _begin_run(self, request: RunRequest, context: RequestContext) -> Events:
        """Starts a run and notes it in the context; yields its id if it is detached."""
        started = await self._runs.start(context.user_id, request, is_detached=context.is_detached)
        context.begin(started)
        if context.is_detached:
            yield interaction_event(started.run.id)

    async def _stream_run(self, thread_id: str, context: RequestContext, *, without_message: bool = False) -> Events:
        """Yields the events of the request's run, which this process executes, since it came to this process, and then
        those of its follow-ups. `without_message` leaves out the message that the run answers, as the reader has it.
        """
        live = context.live
        assert live is not None
        renderer = self._renderer(thread_id, context)
        if live.stream.base:
            before = await timeline.load_events(self._database, context.user_id, live.run.id, after=0)
            await renderer.skip([event for event in before.events if (event.number or 0) <= live.stream.base])
        async for event in live.stream.read_events():
            if without_message and event.number == live.first_number and _is_message(event):
                continue
            for rendered in await renderer.render(event):
                yield rendered
        if context.is_detached and live.run.next_run_id is not None:
            async for rendered in self._follow_ups(thread_id, live.run.next_run_id, context):
                yield rendered

    def _renderer(self, thread_id: str, context: RequestContext) -> EventRenderer:
        """Creates the renderer of a run's events for one reader."""
        cards = CardStream(self._cards, context.user_id, thread_id, context.time_zone)
        return EventRenderer(thread_id, cards, WorkflowStream(self.store.folder_url(thread_id)))

    async def _replay(self, run_id: str, context: RequestContext) -> AsyncGenerator[bytes, None]:
        """Yields the frames of the answer to a request that came before under the same key."""
        async for event in self._replay_events(run_id, context):
            yield frame(self._serialize(event))

    async def _replay_events(self, run_id: str, context: RequestContext) -> Events:
        """Yields the events of a run from its beginning, with those that begin the stream of its kind of request."""
        run = await runs.load(self._database, context.user_id, run_id)
        thread = await self.store.find(run.conversation_id, context)
        if context.is_detached:
            yield interaction_event(run_id)
        if isinstance(context.request, ck.ThreadsCreateReq):
            shown = ck.Thread(id=thread.id, title=thread.title, created_at=thread.created_at, items=ck.Page())
            yield ck.ThreadCreatedEvent(thread=shown)
        has_begun = False
        async for event in self._follow(thread.id, run_id, context):
            yield event
            if not has_begun:
                has_begun = True
                yield ck.StreamOptionsEvent(stream_options=ck.StreamOptions(allow_cancel=True))

    async def _follow(self, thread_id: str, run_id: str, context: RequestContext) -> Events:
        """Yields the events of a run of any process, from its beginning to where it ends or waits, and those of its
        follow-ups.
        """
        renderer = self._renderer(thread_id, context)
        next_run_id: str | None = None
        events: AsyncIterator[Event] = self._runs.streams.follow(context.user_id, run_id, while_waiting=False)
        async for event in events:
            if event.type == "run_ended" and event.run is not None:
                next_run_id = event.run.next_run_id
            for rendered in await renderer.render(event):
                yield rendered
        if context.is_detached and next_run_id is not None:
            async for rendered in self._follow_ups(thread_id, next_run_id, context):
                yield rendered

    async def _follow_ups(self, thread_id: str, run_id: str, context: RequestContext) -> Events:
        """Yields the id of a follow-up's run and its events."""
        yield interaction_event(run_id)
        async for event in self._follow(thread_id, run_id, context):
            yield event

    async def handle_stream_cancelled(
        self, thread: ck.ThreadMetadata, pending_items: list[ck.ThreadItem], context: RequestContext
    ) -> None:
        """Does nothing: the run stores what was shown."""

    # Actions

    def action(
        self,
        thread: ck.ThreadMetadata,
        action: Action[str, Any],
        sender: ck.WidgetItem | None,
        context: RequestContext,
    ) -> Events:
        """Carries out an action of a card or the page, as the SDK asks for it, and yields its events."""
        return explain_errors(self._act(thread, action, sender, context))

    async def _act(
        self, thread: ck.ThreadMetadata, action: Action[str, Any], sender: ck.WidgetItem | None, context: RequestContext
    ) -> Events:
        """Carries out an action by its type: an edit, following a run, a decision or a click in a card."""
        match action.type:
            case requests.EDIT:
                async for event in self._edit(thread, requests.parse_edit(action), context):
                    yield event
            case requests.FOLLOW:
                async for event in self._follow_running(thread, context):
                    yield event
            case kind if kind in (APPROVE, REFUSE):
                assert sender is not None
                async for event in self._decide(thread, action, sender, context):
                    yield event
            case _:
                assert sender is not None
                # The clicked card last: it is the newest of what a client has replaced.
                for item in reversed(await self._click(thread.id, action, sender, context)):
                    yield ck.ThreadItemReplacedEvent(item=item)

    async def _decide(
        self, thread: ck.ThreadMetadata, action: Action[str, Any], sender: ck.WidgetItem, context: RequestContext
    ) -> Events:
        """Approves or rejects a call and yields its new card; the last decision continues the run, whose events follow.

        For a call that was decided before, yields its card and raises `AlreadyDecided`.
        """
        call_id, decision, always = parse_decision(action.payload, approved=action.type == APPROVE)
        try:
            call, live = await self._runs.decide(
                context.user_id, call_id, decision, always=always, is_detached=context.is_detached
            )
        except AlreadyDecided:
            yield ck.ThreadItemReplacedEvent(item=await self.store.load_item(thread.id, sender.id, context))
            raise
        if live is not None:
            context.begin(live)
            if context.is_detached:
                yield interaction_event(live.run.id)
        if (card := render_approval(call)) is not None:
            yield ck.ThreadItemReplacedEvent(item=render_card(thread.id, card))
        if live is not None:
            async for event in self._stream_run(thread.id, context):
                yield event

    async def _click(
        self, thread_id: str, action: Action[str, Any], sender: ck.WidgetItem, context: RequestContext
    ) -> list[ck.ThreadItem]:
        """Does what a click in a card asks for; returns its card first, then the others that show the same tasks."""
        assert context.request is not None
        key = context.request.metadata.get("idempotency_key")
        click = Click(sender.id, action.type, action.payload, key if isinstance(key, str) else None)
        cards = await self._cards.act(context.user_id, thread_id, click, time_zone=context.time_zone)
        return [render_card(thread_id, card) for card in cards]

    async def _edit(self, thread: ck.ThreadMetadata, edit: requests.Edit, context: RequestContext) -> Events:
        """Starts a run that answers an edited message in place of the old one, and yields its events; what it quotes
        stays.
        """
        message = await self.store.find_message(thread.id, edit.item_id, context)
        edited = _edited(message.item, edit)
        content = await with_titles(edited.content, self._cards.tools, user_id=context.user_id)
        moment = self._runs.moment(context.time_zone)
        stored = create_message(new_id("msg"), content, quoted_text=edited.quoted_text, moment=moment)
        request = RunRequest(thread.id, stored, replaces=message.run_id, options=context.options, key=context.key)
        async for event in self._begin_run(request, context):
            yield event
        async for event in self._stream_run(thread.id, context):
            yield event

    async def _follow_running(self, thread: ck.ThreadMetadata, context: RequestContext) -> Events:
        """Yields the answer that is being written in a conversation, from its beginning; nothing if there is none.

        Raises `LimitReached`.
        """
        self._runs.streams.check_readers(context.user_id)
        run_id = (await self.store.find(thread.id, context)).answering
        if run_id is not None:
            context.interaction_id = run_id
            yield interaction_event(run_id)
            async for event in self._follow(thread.id, run_id, context):
                yield event

    # Without a stream

    async def _process_non_streaming(self, request: ck.NonStreamingReq, context: RequestContext) -> bytes:
        """Processes a request without a stream; two actions of our page here, all others by the SDK."""
        match request:
            case ck.ThreadsSyncCustomActionReq(params=params) if params.action.type == requests.CLEAR_FEEDBACK:
                return self._serialize(await self._clear_feedback(params, context))
            case ck.ThreadsSyncCustomActionReq(params=params) if params.action.type == requests.SHOW_VERSION:
                run_id = requests.parse_version(params.action)
                await self._runs.find(context.user_id, params.thread_id, run_id)
                where = (context.user_id, params.thread_id)
                newest = await branches.find_newest_descendant(self._database, *where, run_id)
                await self._runs.show(*where, newest)
                return self._serialize(ck.SyncCustomActionResponse())
            case ck.ThreadsSyncCustomActionReq(params=params):
                await self._check_card(params, context)
            case _:
                pass
        return await super()._process_non_streaming(request, context)

    async def add_feedback(
        self, thread_id: str, item_ids: list[str], feedback: ck.FeedbackKind, context: RequestContext
    ) -> None:
        """Stores feedback on the records of these items. Raises `NotFound`."""
        records = map(record_of_item, item_ids)
        await store_feedback(self._database, context.user_id, thread_id, records, feedback)

    async def _clear_feedback(
        self, params: ck.ThreadCustomActionParams, context: RequestContext
    ) -> ck.SyncCustomActionResponse:
        """Removes the feedback on an item and returns the item."""
        item_id = params.item_id or ""
        await store_feedback(self._database, context.user_id, params.thread_id, [record_of_item(item_id)], None)
        return ck.SyncCustomActionResponse(updated_item=await self.store.load_item(params.thread_id, item_id, context))

    async def sync_action(
        self,
        thread: ck.ThreadMetadata,
        action: Action[str, Any],
        sender: ck.WidgetItem | None,
        context: RequestContext,
    ) -> ck.SyncCustomActionResponse:
        """Carries out a click in a card without a stream and returns the new card."""
        assert sender is not None
        items = await self._click(thread.id, action, sender, context)
        return ck.SyncCustomActionResponse(updated_item=items[0])

    def _serialize(self, obj: BaseModel) -> bytes:
        """Serializes as the SDK does, with the fields of our own classes too."""
        context = {"exclude_metadata": True}
        return obj.model_dump_json(by_alias=True, exclude_none=True, context=context, serialize_as_any=True).encode()


def _is_message(event: Event) -> bool:
    return isinstance(event.record, Entry) and event.record.kind == "user_message"


def _edited(message: ck.UserMessageItem, edit: requests.Edit) -> ck.UserMessageInput:
    """Returns the message with the new text or parts, and the old quote."""
    return ck.UserMessageInput(
        content=edit.content or [ck.UserMessageTextContent(text=edit.text or "")],
        attachments=[],
        quoted_text=message.quoted_text,
        inference_options=message.inference_options,
    )
