"""The ChatKit server: what each operation needs to be true, and the one stream of a turn."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Any

from agents import Agent, ModelSettings, RunConfig, Runner, RunResultStreaming
from agents.exceptions import ModelRefusalError
from chatkit import types as ck
from chatkit.actions import Action
from chatkit.errors import CustomStreamError
from chatkit.server import ChatKitServer

from backend import budget, history
from backend.assistant import MAX_STEPS
from backend.errors import EmptyAnswer, InvalidRequest, MessageTooLong, NotFound, explain
from backend.events import ThreadEvents
from backend.identity import RequestContext
from backend.model import ChatModel
from backend.recorder import Recorder
from backend.retries import retry_settings
from backend.store_adapter import PostgresStore
from backend.turns import Turn, Turns
from database import to_utc

logger = logging.getLogger(__name__)

_END = object()
_SUMMARY_TOKENS = 600


class TodoChatServer(ChatKitServer[RequestContext]):
    """Every ChatKit operation of the pinned SDK; those that run the model are driven by `backend.turns`."""

    store: PostgresStore

    def __init__(
        self,
        store: PostgresStore,
        turns: Turns,
        model: ChatModel,
        agent: Agent[Any],
        *,
        message_chars: int,
        tool_wait_seconds: float,
    ) -> None:
        super().__init__(store)
        self._turns = turns
        self._agent = agent
        self._model = model
        self._history_tokens = model.endpoint.profile.history_tokens
        self._message_chars = message_chars
        self._tool_wait_seconds = tool_wait_seconds

    # Before anything runs

    async def check(self, request: ck.ChatKitReq, context: RequestContext) -> None:
        """Raise `NotFound`, `InvalidRequest` or `MessageTooLong` for what cannot be done, before anything is stored."""
        params = request.params
        if isinstance(request, ck.AttachmentsCreateReq | ck.AttachmentsDeleteReq):
            raise InvalidRequest("This assistant takes no attachments: describe what you need in words.")
        if isinstance(request, ck.InputTranscribeReq):
            raise InvalidRequest("This assistant takes no dictation: type the message instead.")
        if isinstance(request, ck.ThreadsListReq | ck.ItemsListReq):
            _check_limit(request.params)
        if isinstance(request, ck.ThreadsUpdateReq):
            _check_title(request.params)
        if isinstance(request, ck.ThreadsCreateReq | ck.ThreadsAddUserMessageReq):
            self._check_message(request.params.input)
        if (thread_id := getattr(params, "thread_id", None)) is not None:
            await self.store.load_thread(thread_id, context)
        await self._check_item(request, context)

    def _check_message(self, message: ck.UserMessageInput) -> None:
        if message.attachments:
            raise InvalidRequest("This assistant takes no attachments: describe what you need in words.")
        length = sum(len(part.text) for part in message.content) + len(message.quoted_text or "")
        if not any(part.text.strip() for part in message.content):
            raise InvalidRequest("The message is empty: write what you want to have done.")
        if length > self._message_chars:
            raise MessageTooLong(
                f"The message has {length:,} characters; {self._message_chars:,} is the most. Split it up."
            )

    async def _check_item(self, request: ck.ChatKitReq, context: RequestContext) -> None:
        match request:
            case ck.ThreadsRetryAfterItemReq(params=params):
                item = await self.store.load_item(params.thread_id, params.item_id, context)
                if not isinstance(item, ck.UserMessageItem):
                    raise InvalidRequest("Only a message of the person can be answered again.")
            case ck.ThreadsAddStructuredInputReq(params=params):
                item = await self.store.load_item(params.thread_id, params.item_id, context)
                if not isinstance(item, ck.StructuredInputItem) or item.status != "pending":
                    raise InvalidRequest("This question is not open any more.")
            case ck.ThreadsAddClientToolOutputReq(params=params):
                last = await self.store.load_thread_items(params.thread_id, None, 1, "desc", context)
                if not any(isinstance(item, ck.ClientToolCallItem) and item.status == "pending" for item in last.data):
                    raise InvalidRequest("No tool call of this conversation waits for an output.")
            case ck.ThreadsCustomActionReq(params=params) | ck.ThreadsSyncCustomActionReq(params=params):
                if params.item_id is None:
                    raise InvalidRequest(f"There is no action {params.action.type!r}.")
                item = await self.store.load_item(params.thread_id, params.item_id, context)
                if not isinstance(item, ck.WidgetItem):
                    raise NotFound

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

    async def action(
        self, thread: ck.ThreadMetadata, action: Action[str, Any], sender: ck.WidgetItem | None, context: RequestContext
    ) -> AsyncIterator[ck.ThreadStreamEvent]:
        raise CustomStreamError(f"There is no action {action.type!r}.")
        yield  # makes this an async generator, as ChatKit expects

    async def sync_action(
        self, thread: ck.ThreadMetadata, action: Action[str, Any], sender: ck.WidgetItem | None, context: RequestContext
    ) -> ck.SyncCustomActionResponse:
        raise InvalidRequest(f"There is no action {action.type!r}.")

    # A turn

    async def events(self, request: ck.StreamingReq, context: RequestContext) -> AsyncIterator[ck.ThreadStreamEvent]:
        """The events of a streaming request, not rendered; times are UTC, as they are after a reload."""
        retry = isinstance(request, ck.ThreadsRetryAfterItemReq)
        stream = self._retry(request.params, context) if retry else self._process_streaming_impl(request, context)
        async for event in stream:
            for dated in (getattr(event, "item", None), getattr(event, "thread", None)):
                if dated is not None:
                    dated.created_at = to_utc(dated.created_at)
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

    async def respond(
        self, thread: ck.ThreadMetadata, input_user_message: ck.UserMessageItem | None, context: RequestContext
    ) -> AsyncIterator[ck.ThreadStreamEvent]:
        turn = context.turn
        assert turn is not None, "a turn is started by backend.turns"
        if thread.title is None and input_user_message is not None:
            thread.title = title_from(history.user_text(input_user_message))
        window = budget.window(await self.store.history(thread.id, context), tokens=self._history_tokens)
        if window.left_out:
            turn.afterwards.append(partial(self._summarise, thread.id, window, RequestContext(context.user_id)))
        asked = next((row.id for row in reversed(window.rows) if row.role == "user"), turn.run_id)
        recorder = Recorder(self.store, thread.id, context, message_id=asked)
        run = Runner.run_streamed(
            self._agent,
            await window.to_model_input(),
            context=turn,
            hooks=recorder,
            max_turns=MAX_STEPS,
            run_config=RunConfig(
                tracing_disabled=True,
                tool_not_found_behavior="return_error_to_model",
                model_settings=ModelSettings(retry=retry_settings(turn)),
            ),
        )
        queue: asyncio.Queue[Any] = asyncio.Queue()
        pump = asyncio.create_task(_pump(run, queue))
        turn.on_end.push_async_callback(self._settle, turn, run, pump, recorder)
        shown = ThreadEvents(thread.id)
        try:
            while (event := await queue.get()) is not _END:
                for thread_event in shown.map(event):
                    yield thread_event
            with suppress(ModelRefusalError):  # its words were shown, as any answer's
                await pump
            if not shown.answered:
                raise EmptyAnswer
        except Exception as error:
            for thread_event in shown.close():
                yield thread_event
            explanation = explain(error)
            raise CustomStreamError(explanation.message, allow_retry=explanation.allow_retry) from error

    async def _settle(self, turn: Turn, run: RunResultStreaming, pump: asyncio.Task[None], recorder: Recorder) -> None:
        """End the run: a tool in flight finishes and is recorded, no model call follows."""
        if not pump.done():
            run.cancel("after_turn")
            if recorder.busy:
                await asyncio.wait({pump}, timeout=self._tool_wait_seconds)
            run.cancel()
        await asyncio.wait({pump})
        await recorder.finish(run.new_items)
        usage = run.context_wrapper.usage
        turn.usage = {
            "requests": usage.requests,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
        }

    async def _summarise(self, thread_id: str, window: budget.Window, context: RequestContext) -> None:
        """Keep a summary of what the model did not read any more; without one, a plain note stands in for it."""
        request = budget.request_for_summary(window, tokens=self._history_tokens)
        covers = window.left_out[-1].seq
        assert covers is not None
        try:
            text = await self._model.complete(request, max_tokens=_SUMMARY_TOKENS)
            if text.strip():
                await self.store.add_summary(thread_id, text, covers=covers, context=context)
        except Exception as error:  # noqa: BLE001 - a job of its own: nobody waits for it, and the next turn tries again
            logger.warning("no summary of conversation %s: %s", thread_id, type(error).__name__)

    def _apply_assistant_message_update(self, item: ck.AssistantMessageItem, update: Any) -> ck.AssistantMessageItem:
        # ChatKit keeps the update's own objects and lets them grow, while the reader has not rendered them yet.
        return super()._apply_assistant_message_update(item, update.model_copy(deep=True))


async def _pump(run: RunResultStreaming, queue: asyncio.Queue[Any]) -> None:
    """Read the run's events in a task of their own: a cancelled reader would abort a tool in flight."""
    try:
        async for event in run.stream_events():
            queue.put_nowait(event)
    finally:
        queue.put_nowait(_END)


def title_from(text: str, *, longest: int = 60) -> str:
    """A conversation's title: the first words of its first message, in at most `longest` characters."""
    words = " ".join(text.split())
    if len(words) <= longest:
        return words
    return words[:longest].rsplit(" ", 1)[0].rstrip(",.;:") + "…"


def _check_limit(params: ck.ThreadListParams | ck.ItemsListParams) -> None:
    if params.limit is not None and params.limit < 1:
        raise InvalidRequest("limit must be at least 1.")
    params.limit = min(params.limit or 20, 100)


def _check_title(params: ck.ThreadUpdateParams) -> None:
    params.title = params.title.strip()
    if not 1 <= len(params.title) <= 200:
        raise InvalidRequest("A title has 1 to 200 characters.")
