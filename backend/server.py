"""The ChatKit server: what each operation needs to be true, and the one stream of a turn."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from agents import Agent, RunConfig, Runner, RunResultStreaming
from agents.exceptions import ModelRefusalError
from chatkit import types as ck
from chatkit.actions import Action
from chatkit.server import ChatKitServer
from sqlalchemy.exc import SQLAlchemyError

from backend import budget, checks, history, widgets
from backend.assistant import MAX_STEPS
from backend.errors import BackendError, EmptyAnswer, explain
from backend.events import OpenItems, ThreadEvents
from backend.identity import RequestContext
from backend.model import ChatModel
from backend.recorder import Recorder
from backend.retries import answering
from backend.store_adapter import PostgresStore
from backend.task_tools import TaskTools
from backend.turns import Turn, Turns
from database import to_utc

logger = logging.getLogger(__name__)

_END = object()
_RUN_CONFIG = RunConfig(tracing_disabled=True, tool_not_found_behavior="return_error_to_model")
_SUMMARY_TOKENS = 600
_ASKING = ("user_message", "structured_input", "client_tool_call")
_STOPPED = {
    "cancelled": "The person stopped this answer. Do not go on with it unless they ask for it.",
    "interrupted": "The server had to end this answer. Check what was done before you go on with it.",
}


class TodoChatServer(ChatKitServer[RequestContext]):
    """Every ChatKit operation of the pinned SDK; those that run the model are driven by `backend.turns`."""

    store: PostgresStore

    def __init__(
        self,
        store: PostgresStore,
        turns: Turns,
        model: ChatModel,
        agent: Agent[Any],
        tools: TaskTools,
        *,
        message_chars: int,
        tool_wait_seconds: float,
    ) -> None:
        super().__init__(store)
        self._turns = turns
        self._agent = agent
        self._tools = tools
        self._model = model
        self._history_tokens = model.endpoint.profile.history_tokens
        self._message_chars = message_chars
        self._tool_wait_seconds = tool_wait_seconds

    async def check(self, request: ck.ChatKitReq, context: RequestContext) -> None:
        """Raise for what cannot be done, before anything is stored."""
        await checks.check(request, self.store, context, message_chars=self._message_chars)

    # Operations without the model

    async def answer(self, request: ck.NonStreamingReq, context: RequestContext) -> bytes:
        """The JSON reply to a request that does not stream."""
        if isinstance(request, ck.ThreadsDeleteReq):
            await self._turns.stop_conversation(request.params.thread_id, user_id=context.user_id)
        return await self._process_non_streaming(request, context)

    async def add_feedback(
        self, thread_id: str, item_ids: list[str], feedback: ck.FeedbackKind, context: RequestContext
    ) -> None:
        await self.store.save_feedback(thread_id, item_ids, feedback, context)

    async def sync_action(
        self, thread: ck.ThreadMetadata, action: Action[str, Any], sender: ck.WidgetItem | None, context: RequestContext
    ) -> ck.SyncCustomActionResponse:
        assert sender is not None, "`check` lets no action through without its widget"
        redrawn = await self._complete(action, sender, context)
        return ck.SyncCustomActionResponse(updated_item=next(item for item in redrawn if item.id == sender.id))

    async def _act(
        self, params: ck.ThreadCustomActionParams, context: RequestContext
    ) -> AsyncIterator[ck.ThreadStreamEvent]:
        try:
            sender = await self.store.load_item(params.thread_id, params.item_id or "", context)
            assert isinstance(sender, ck.WidgetItem)
            for item in await self._complete(params.action, sender, context):
                yield ck.ThreadItemReplacedEvent(item=item)
        except Exception as error:  # noqa: BLE001 - the edge of the stream: the person is told
            yield ck.ErrorEvent(message=explain(error).message)

    async def _complete(
        self, action: Action[str, Any], sender: ck.WidgetItem, context: RequestContext
    ) -> list[ck.WidgetItem]:
        """Complete the task that was ticked, redraw the widgets that show it, and let the model know."""
        task_id = widgets.ticked_task(action, sender)
        key = f"tick {sender.id} {task_id}"  # the same tick sent twice is one
        completed = await self._tools.complete_task(task_id, user_id=context.user_id, key=key)
        task = widgets.Task.model_validate(completed)
        told = f"The person ticked task {task.id}, {json.dumps(task.title, ensure_ascii=False)}: it is completed."
        return await self.store.redraw(
            sender.thread_id,
            lambda shown: widgets.redrawn(shown, task),
            context,
            sender=sender.id,
            note=history.change_by_hand(sender.thread_id, told),
        )

    # A turn

    async def events(self, request: ck.StreamingReq, context: RequestContext) -> AsyncIterator[ck.ThreadStreamEvent]:
        """The events of a streaming request, not rendered; times are UTC, as they are after a reload."""
        match request:
            case ck.ThreadsRetryAfterItemReq(params=params):
                stream = self._retry(params, context)
            case ck.ThreadsCustomActionReq(params=params):
                stream = self._act(params, context)
            case ck.ThreadsCreateReq() | ck.ThreadsAddUserMessageReq():
                stream = self._answer(context)
            case _:
                stream = self._process_streaming_impl(request, context)
        async for event in stream:
            for dated in (getattr(event, "item", None), getattr(event, "thread", None)):
                if dated is not None:
                    dated.created_at = to_utc(dated.created_at)
            yield event

    async def _answer(self, context: RequestContext) -> AsyncIterator[ck.ThreadStreamEvent]:
        """Answer the message that was stored when the turn began."""
        turn = context.turn
        assert turn is not None
        assert turn.message is not None
        thread, message = turn.thread, turn.message
        if turn.is_new:
            yield ck.ThreadCreatedEvent(thread=self._to_thread_response(thread))
        yield ck.ThreadItemDoneEvent(item=message)
        async for event in self._process_events(thread, context, lambda: self.respond(thread, message, context)):
            yield event

    async def _retry(
        self, params: ck.ThreadRetryAfterItemParams, context: RequestContext
    ) -> AsyncIterator[ck.ThreadStreamEvent]:
        thread = await self.store.load_thread(params.thread_id, context)
        message = await self.store.load_item(params.thread_id, params.item_id, context)
        assert isinstance(message, ck.UserMessageItem)
        await self.store.retry_after(thread.id, message.id, history.abandoned_attempt, context)
        async for event in self._process_events(thread, context, lambda: self.respond(thread, message, context)):
            yield event

    async def _process_events(
        self,
        thread: ck.ThreadMetadata,
        context: RequestContext,
        stream: Callable[[], AsyncIterator[ck.ThreadStreamEvent]],
    ) -> AsyncIterator[ck.ThreadStreamEvent]:
        """Store each event's item, then pass the event on.

        Unlike the SDK's, this keeps shown text on every failure, closes what is open and says what happened.
        """
        yield ck.StreamOptionsEvent(stream_options=self.get_stream_options(thread, context))
        shown = OpenItems()
        try:
            async for event in stream():
                await self._store(thread.id, event, context)
                shown.track(event)
                yield event
        except asyncio.CancelledError:
            await self._keep(thread.id, shown, context)
            raise
        except Exception as error:  # noqa: BLE001 - whatever ended the stream: the person is told
            await self._keep(thread.id, shown, context)
            for event in shown.close():
                yield event
            explanation = explain(error)
            yield ck.ErrorEvent(message=explanation.message, allow_retry=explanation.allow_retry)

    async def _store(self, thread_id: str, event: ck.ThreadStreamEvent, context: RequestContext) -> None:
        match event:
            case ck.ThreadItemDoneEvent() | ck.ThreadItemReplacedEvent():
                await self.store.write(thread_id, [event.item], context)
            case ck.ThreadItemRemovedEvent():
                await self.store.delete_thread_item(thread_id, event.item_id, context)
            case _:
                pass

    async def _keep(self, thread_id: str, shown: OpenItems, context: RequestContext) -> None:
        """Store what was shown of unfinished items and, after a stop, a note that tells the model of it."""
        items: list[ck.ThreadItem] = [*shown.unfinished]
        stopping = context.turn.stopping if context.turn else None
        if stopping is not None:
            items.append(history.note(thread_id, _STOPPED[stopping]))
        if not items:
            return
        try:
            await self.store.write(thread_id, items, context)
        except (BackendError, SQLAlchemyError) as error:
            logger.warning("what was shown in %s could not be kept: %s", thread_id, type(error).__name__)

    async def respond(
        self, thread: ck.ThreadMetadata, input_user_message: ck.UserMessageItem | None, context: RequestContext
    ) -> AsyncIterator[ck.ThreadStreamEvent]:
        turn = context.turn
        assert turn is not None, "a turn is started by backend.turns"
        recent = turn.recent or await self.store.history(thread.id, context)
        window = budget.window(recent, tokens=self._history_tokens)
        if window.left_out is not None:
            turn.afterwards.append(
                partial(self._summarise, thread.id, window.left_out, RequestContext(context.user_id))
            )
        asked = next((row.id for row in reversed(window.rows) if row.kind in _ASKING), turn.run_id)
        recorder = Recorder(self.store, thread.id, context, message_id=asked)
        answering.set(turn)
        run = Runner.run_streamed(
            self._agent,
            await window.to_model_input(),
            context=turn,
            hooks=recorder,
            max_turns=MAX_STEPS,
            run_config=_RUN_CONFIG,
        )
        queue: asyncio.Queue[Any] = asyncio.Queue()
        pump = asyncio.create_task(_pump(run, queue))
        turn.on_end.push_async_callback(self._settle, turn, run, pump, recorder)
        events = ThreadEvents(thread.id)
        while (event := await queue.get()) is not _END:
            for thread_event in events.map(event):
                yield thread_event
            if event.type == "raw_response_event" and event.data.type == "response.completed":
                recorder.shown_is_stored()
        with suppress(ModelRefusalError):  # its words were shown, as any answer's
            await pump
        if not events.answered:
            raise EmptyAnswer
        tasks = recorder.final_list()
        turn.closing = [*events.take_closing(), *([ck.ThreadItemDoneEvent(item=tasks)] if tasks else [])]

    async def _settle(self, turn: Turn, run: RunResultStreaming, pump: asyncio.Task[None], recorder: Recorder) -> None:
        """End the run: a tool in flight finishes and is recorded, no model call follows."""
        if not pump.done():
            run.cancel("after_turn")
            if recorder.busy:
                await asyncio.wait({pump}, timeout=self._tool_wait_seconds)
            run.cancel()
        await asyncio.wait({pump})
        if not pump.cancelled():
            pump.exception()  # a turn that was stopped has no use for it, and asyncio tells of what nobody looks at
        usage = run.context_wrapper.usage
        turn.usage = {
            "model": self._model.endpoint.model,
            "requests": usage.requests,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
        }
        await recorder.finish(run.new_items)

    async def _summarise(self, thread_id: str, up_to: int, context: RequestContext) -> None:
        """Keep a summary of what the model did not read any more; without one, a plain note stands in for it."""
        try:
            left_out = await self.store.left_out(thread_id, up_to=up_to, context=context)
            request = budget.request_for_summary(left_out, tokens=self._history_tokens)
            if request is None:
                return
            text = await self._model.complete(request.text, max_tokens=_SUMMARY_TOKENS)
            if text.strip():
                await self.store.add_summary(thread_id, text, covers=request.covers, context=context)
        except Exception as error:  # noqa: BLE001 - a job of its own: nobody waits for it, and the next turn tries again
            logger.warning("no summary of conversation %s: %s", thread_id, type(error).__name__)


async def _pump(run: RunResultStreaming, queue: asyncio.Queue[Any]) -> None:
    """Read the run's events in a task of their own: a cancelled reader would abort a tool in flight."""
    try:
        async for event in run.stream_events():
            queue.put_nowait(event)
    finally:
        queue.put_nowait(_END)
