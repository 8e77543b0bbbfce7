"""The server of openai-chatkit: a run answers a message, and its events are rendered as ChatKit's."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from chatkit import types as ck
from chatkit.actions import Action
from chatkit.server import ChatKitServer, NonStreamingResult, StreamingResult
from pydantic import BaseModel

from backend.api.chatkit import requests
from backend.api.chatkit.events import EventRenderer
from backend.api.chatkit.render import render_card
from backend.api.chatkit.requests import RequestContext
from backend.api.chatkit.store import TimelineStore
from backend.api.errors import explain_unexpected
from backend.api.messages import MessageTooLong
from backend.cards.agent_workflow import WorkflowStream
from backend.cards.approvals import APPROVE, REFUSE, parse_decision, render_approval
from backend.cards.service import CardService, CardStream, Click
from backend.cards.widget import record_of_item
from backend.conversations import branches, conversations, runs
from backend.conversations.errors import AlreadyDecided
from backend.conversations.run_requests import RunRequest
from backend.errors import BackendError, Busy, InvalidRequest, LimitReached, Overloaded
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
        """Processes a request; raises before there is a result if it cannot be done.

        An error that is only about limits is sent in the stream, as OpenAI's widget does not show a status.
        """
        context.request = parsed = requests.parse_request(request)
        try:
            requests.check_request(parsed, message_chars=self._message_chars)
            if context.is_guest and (thread_id := requests.get_changed_thread(parsed)) is not None:
                await conversations.check_owner(self._database, context.user_id, thread_id)
            if not ck.is_streaming_req(parsed):
                return NonStreamingResult(await self._process_non_streaming(parsed, context))
            context.options = requests.run_options(parsed, self._endpoint)
            context.key = requests.parse_idempotency_key(parsed)
            start = partial(self._find_events, parsed, context)
            events = await start_once(self._database, context.user_id, context.key, start)
            if isinstance(events, str):
                events = await self._replay(events, context)
        except (Busy, LimitReached, MessageTooLong, Overloaded) as error:
            if not ck.is_streaming_req(parsed):
                raise
            events = _explain(error)
        return StreamingResult(self._frames(events, context))

    # Streams. The SDK (1.6.5) would send events before anything is stored, have the store add what is sent, and for a
    # retry read page after page and delete each item.

    async def _frames(self, events: Events, context: RequestContext) -> AsyncGenerator[bytes, None]:
        """Yields a stream's frames; a reader who leaves stops the run, unless it is detached."""
        try:
            try:
                async for event in events:
                    yield self._render_frame(event)
            except Exception as error:  # noqa: BLE001 - it is logged, and the reader gets a sentence
                async for event in _explain(error):
                    yield self._render_frame(event)
        finally:
            if context.live is not None and not context.is_detached:
                context.live.stop(Ending("cancelled", "cancelled"))

    def _render_frame(self, event: ck.ThreadStreamEvent) -> bytes:
        return b"data: " + self._serialize(event) + b"\n\n"

    async def _find_events(self, request: ck.StreamingReq, context: RequestContext) -> Events:
        """Returns the events of a request, which has started its run if it has a message. Raises what is wrong with it:
        `NotFound`, `InvalidRequest`, and for a message also the errors of `RunService.start`.
        """
        if isinstance(request, ck.ThreadsCreateReq | ck.ThreadsAddUserMessageReq):
            return await self._add_message(request, context)
        thread = await self.store.load_thread(request.params.thread_id, context)
        match request:
            case ck.ThreadsRetryAfterItemReq(params=params):
                _, run_id = await self.store.find_message(thread.id, params.item_id, context)
                return self._answer_again(thread.id, run_id, None, context)
            case ck.ThreadsCustomActionReq(params=params) if params.action.type == requests.EDIT:
                edit = requests.parse_edit(params.action)
                message, run_id = await self.store.find_message(thread.id, edit.item_id, context)
                content = edit.content or [ck.UserMessageTextContent(text=edit.text or "")]
                edited = message.model_copy(update={"content": content})
                requests.check_message(edited, self._message_chars)
                return self._answer_again(thread.id, run_id, edited, context)
            case ck.ThreadsCustomActionReq(params=params) if params.action.type == requests.FOLLOW:
                return self._follow_running(thread.id, context)
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
        message: list[ck.ThreadStreamEvent] = [ck.ThreadItemDoneEvent(item=item), _OPTIONS]
        if is_new:
            message.insert(0, ck.ThreadCreatedEvent(thread=shown))
        else:  # its reader may know another title, as one is made after the first answer
            message.append(ck.ThreadUpdatedEvent(thread=shown))
        return self._follow(thread_id, context.live.run.id, context, before=message, with_message=False)

    def respond(
        self, thread: ck.ThreadMetadata, input_user_message: ck.UserMessageItem | None, context: RequestContext
    ) -> Events:
        raise NotImplementedError("A run answers, which was started when its message was added.")

    async def _answer_again(
        self, thread_id: str, run_id: str, edited: ck.UserMessageItem | None, context: RequestContext
    ) -> Events:
        """Starts a run that answers an edited or the old message in place of an earlier run; yields its events."""
        message = await self.store.create_message(new_id("msg"), edited, context) if edited is not None else None
        moment = self._runs.moment(context.time_zone)
        request = RunRequest(
            thread_id, message, replaces=run_id, options=context.options, key=context.key, moment=moment
        )
        live = context.live = await self._runs.start(context.user_id, request)
        async for event in self._follow(thread_id, live.run.id, context, with_message=edited is not None):
            yield event

    async def _follow(
        self,
        thread_id: str,
        run_id: str,
        context: RequestContext,
        *,
        before: Sequence[ck.ThreadStreamEvent] = (_OPTIONS,),
        after: int = 0,
        with_message: bool = True,
    ) -> Events:
        """Yields the events of a run of any process after a number, to where the run ends or waits, and for a detached
        reader those of its follow-ups. The first event is the message, which the reader of an answer to it has.
        """
        if context.is_detached:
            yield _create_interaction_event(run_id)
        for event in before:
            yield event
        cards = CardStream(self._cards, context.user_id, thread_id, context.time_zone)
        renderer = EventRenderer(thread_id, cards, WorkflowStream(self.store.folder_url(thread_id)), after=after)
        next_run_id: str | None = None
        async for event in self._runs.streams.follow(context.user_id, run_id, while_waiting=False):
            if not with_message:
                with_message = True
                continue
            if event.type == "run_ended" and event.run is not None:
                next_run_id = event.run.next_run_id
            for rendered in await renderer.render(event):
                yield rendered
        if context.is_detached and next_run_id is not None:
            async for rendered in self._follow(thread_id, next_run_id, context, before=()):
                yield rendered

    async def _replay(self, run_id: str, context: RequestContext) -> Events:
        run = await runs.load(self._database, context.user_id, run_id)
        thread = await self.store.load_thread(run.conversation_id, context)
        before: list[ck.ThreadStreamEvent] = [_OPTIONS]
        if isinstance(context.request, ck.ThreadsCreateReq):
            before.insert(0, ck.ThreadCreatedEvent(thread=self._to_thread_response(thread)))
        return self._follow(thread.id, run_id, context, before=before)

    async def _follow_running(self, thread_id: str, context: RequestContext) -> Events:
        """Yields the answer that is being written, from its beginning. Raises `LimitReached`."""
        self._runs.streams.check_readers(context.user_id)
        run_id = (await self.store.find(thread_id, context)).answering
        if run_id is not None:
            before = (_OPTIONS,) if context.is_detached else (_create_interaction_event(run_id), _OPTIONS)
            async for event in self._follow(thread_id, run_id, context, before=before):
                yield event

    # Actions

    async def action(
        self, thread: ck.ThreadMetadata, action: Action[str, Any], sender: ck.WidgetItem | None, context: RequestContext
    ) -> Events:
        assert sender is not None
        if action.type in (APPROVE, REFUSE):
            async for event in self._decide(thread.id, action, sender, context):
                yield event
            return
        # The clicked card last: it is the newest of what a client has replaced.
        for item in reversed(await self._handle_click(thread.id, action, sender, context)):
            yield ck.ThreadItemReplacedEvent(item=item)

    async def _decide(
        self, thread_id: str, action: Action[str, Any], card: ck.WidgetItem, context: RequestContext
    ) -> Events:
        """Approves or rejects a call and yields its new card; the last decision continues the run, whose events follow.

        For a call that was decided before, yields its card and raises `AlreadyDecided`.
        """
        call_id, decision, always = parse_decision(action.payload, approved=action.type == APPROVE)
        try:
            call, live = await self._runs.decide(context.user_id, call_id, decision, always=always)
        except AlreadyDecided:
            yield ck.ThreadItemReplacedEvent(item=await self.store.load_item(thread_id, card.id, context))
            raise
        context.live = live
        decided = render_approval(call)
        shown = [ck.ThreadItemReplacedEvent(item=render_card(thread_id, decided))] if decided else []
        if live is None:
            for event in shown:
                yield event
            return
        before = [_OPTIONS, *shown]
        async for event in self._follow(thread_id, live.run.id, context, before=before, after=live.stream.base):
            yield event

    async def _handle_click(
        self, thread_id: str, action: Action[str, Any], sender: ck.WidgetItem, context: RequestContext
    ) -> list[ck.ThreadItem]:
        assert context.request is not None
        key = context.request.metadata.get("idempotency_key")
        click = Click(sender.id, action.type, action.payload, key if isinstance(key, str) else None)
        cards = await self._cards.act(context.user_id, thread_id, click, time_zone=context.time_zone)
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
        return await super()._process_non_streaming(request, context)

    async def add_feedback(
        self, thread_id: str, item_ids: list[str], feedback: ck.FeedbackKind, context: RequestContext
    ) -> None:
        records = map(record_of_item, item_ids)
        await conversations.store_feedback(self._database, context.user_id, thread_id, records, feedback)

    def _serialize(self, obj: BaseModel) -> bytes:
        """Serializes as the SDK does, with the fields of our own classes too."""
        context = {"exclude_metadata": True}
        return obj.model_dump_json(by_alias=True, exclude_none=True, context=context, serialize_as_any=True).encode()


async def _explain(error: Exception) -> Events:
    if isinstance(error, BackendError):
        yield ck.ErrorEvent(message=str(error), allow_retry=error.allow_retry)
        return
    yield ck.ErrorEvent(message=explain_unexpected(error), allow_retry=True)


def _create_interaction_event(run_id: str) -> ck.ClientEffectEvent:
    """Creates the event that tells a client the run's id, by which it can stop the run."""
    return ck.ClientEffectEvent(name="todo.interaction", data={"interaction_id": run_id})
