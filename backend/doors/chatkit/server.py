"""ChatKit's operations: those that run no model are done here, the others are turns, whose log is rendered."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from chatkit import types as ck
from chatkit.actions import Action
from chatkit.server import DEFAULT_PAGE_SIZE, ChatKitServer
from pydantic import BaseModel

from backend.cards import approval_card as card
from backend.cards.task import Changed, Task
from backend.context import tags as tagged
from backend.conversation import chats, rows
from backend.conversation.acting import Acting
from backend.conversation.items import Said
from backend.conversation.model_input import history
from backend.conversation.runs.inbox import Mode
from backend.conversation.store_adapter import PostgresStore
from backend.conversations import profiles
from backend.doors.chatkit import checks, own
from backend.errors import InvalidRequest, NotFound
from backend.tools import actions
from backend.tools.opened import titles_now, with_tasks_now
from backend.tools.tasks.tools import CallRefused, TaskTools
from backend.tools.workspace.files import FolderFiles
from backend.turn import versions
from backend.turn.answers import Answers
from backend.turn.inbox import Inbox
from backend.turn.lifecycle.endings import explain
from backend.turn.turn import Turn
from backend.turn.turns import Turns
from backend.turn.waiting.decisions import Settled
from common.database import Database
from service.clock import Clock, real, wall_time
from service.database import new_id


class TodoChatServer(ChatKitServer[Acting]):
    """Every ChatKit operation of the pinned SDK."""

    store: PostgresStore

    def __init__(
        self,
        store: PostgresStore,
        turns: Turns,
        answers: Answers,
        tools: TaskTools,
        inbox: Inbox,
        files: FolderFiles | None = None,
        *,
        database: Database,
        message_chars: int,
        clock: Clock = real,
        time_zone: str = "UTC",
    ) -> None:
        """`time_zone` is where people are taken to be who name none."""
        super().__init__(store)
        self._clock = clock
        self._database = database
        self._time_zone = time_zone
        self._turns = turns
        self._answers = answers
        self._tools = tools
        self._inbox = inbox
        self._files = files
        self._message_chars = message_chars

    async def check(self, request: ck.ChatKitReq, context: Acting) -> None:
        """Raise for what cannot be done, before anything is stored."""
        await checks.check(request, self.store, context, message_chars=self._message_chars)
        self._answers.choice(*own.asked_of_model(request))

    async def start(self, request: ck.StreamingReq, context: Acting) -> Turn:
        """The turn that answers a request; raises what `Turns.start` raises."""
        start = partial(
            self._turns.start,
            user_id=context.user_id,
            time_zone=context.time_zone,
            detached=_detached(request),
            choice=self._answers.choice(*own.asked_of_model(request)),
        )
        match request:
            case ck.ThreadsCreateReq(params=params):
                said = await self._said(params.input, context)
                left, allowed = await self._left(request, context), own.allowed(request)
                return await start(self._answers.answer, conversation_id=None, said=said, left=left, allowed=allowed)
            case ck.ThreadsAddUserMessageReq(params=params):
                said = await self._said(params.input, context)
                return await start(self._answers.answer, conversation_id=params.thread_id, said=said)
            case ck.ThreadsRetryAfterItemReq(params=params):
                return await start(self._answers.answer, conversation_id=params.thread_id, instead_of=params.item_id)
            case ck.ThreadsCustomActionReq(params=params) if params.action.type == own.EDIT:
                edit = own.edit_of(params.action)
                message = await self.store.load_item(params.thread_id, edit.item_id, context)
                said = await self._said(own.edited(message, edit), context)
                return await start(
                    self._answers.answer, conversation_id=params.thread_id, said=said, instead_of=edit.item_id
                )
            case _:
                raise AssertionError("`check` lets no other request through")

    async def _left(self, request: ck.ThreadsCreateReq, context: Acting) -> str | None:
        """The id of the conversation that is cleared; raises `NotFound`."""
        if (named := own.left(request)) is None:
            return None
        if (chat := await chats.find(self.store.engine, named, user_id=context.user_id)) is None:
            raise NotFound
        return chat.id

    async def decide(self, request: ck.ThreadsCustomActionReq, context: Acting) -> tuple[Settled, Turn | None]:
        """What a click in a card that asks decides, and the turn that goes on; raises what `Turns.decide` raises."""
        params = request.params
        given = card.answered(params.action.payload)
        return await self._turns.decide(
            self._answers.resume,
            given.approval_id,
            approved=params.action.type == card.APPROVE,
            always=bool(given.always),
            reason=given.reason,
            user_id=context.user_id,
            conversation_id=params.thread_id,
            time_zone=context.time_zone,
            detached=_detached(request),
        )

    async def queue(
        self, request: ck.ThreadsAddUserMessageReq, mode: Mode, context: Acting
    ) -> list[ck.ThreadStreamEvent]:
        """Let the answer that is running read a message; raises what `Inbox.add` raises."""
        said = await self._said(request.params.input, context)
        conversation = request.params.thread_id
        queued = await self._inbox.add(said, mode, user_id=context.user_id, conversation_id=conversation)
        data = {"input_id": queued.input_id, "mode": mode, "overtaken": list(queued.overtaken)}
        return [ck.ClientEffectEvent(name="todo.queued", data=data)]

    async def _said(self, message: ck.UserMessageInput, context: Acting) -> Said:
        """What the person wrote, with the titles of the tasks that it names as they are now."""
        if numbers := tagged.numbers_of(message.content):
            titles = await titles_now(numbers, self._tools, user_id=context.user_id)
            message = tagged.with_titles(message, titles)
        return rows.said(message)

    def respond(
        self, thread: ck.ThreadMetadata, input_user_message: ck.UserMessageItem | None, context: Acting
    ) -> AsyncIterator[ck.ThreadStreamEvent]:
        raise NotImplementedError("The assistant answers in a turn: see `start`.")

    async def answer(self, request: ck.NonStreamingReq, context: Acting) -> bytes:
        """The JSON reply to a request that does not stream."""
        match request:
            case ck.ThreadsDeleteReq(params=params):
                await self._turns.stop_conversation(params.thread_id, user_id=context.user_id)
                deleted = await self._process_non_streaming(request, context)
                if self._files is not None:
                    await self._files.remove_all(params.thread_id, user_id=context.user_id)
                return deleted
            case ck.ThreadsGetByIdReq(params=params):
                thread, page, inbox = await self.store.open_thread(params.thread_id, DEFAULT_PAGE_SIZE, context)
                shown = thread.model_dump(exclude={"metadata"})
                unread = [rows.unread(thread.id, waiting) for waiting in inbox] or None
                return _as_json(rows.AnsweredThread(**shown, items=await self._opened(page, context), unread=unread))
            case ck.ThreadsListReq(params=params):
                limit = params.limit or DEFAULT_PAGE_SIZE
                found = await self.store.load_threads(
                    limit, params.after, params.order, context, titled=own.titled(request)
                )
                return _as_json(found.model_copy(update={"data": [rows.listed(thread) for thread in found.data]}))
            case ck.ItemsListReq(params=params):
                page = await self.store.load_thread_items(
                    params.thread_id, params.after, params.limit or checks.LONGEST_PAGE, params.order, context
                )
                return _as_json(await self._opened(page, context))
            case ck.ThreadsSyncCustomActionReq(params=params) if params.action.type == own.TAKE_BACK:
                return await self._take_feedback_back(params, context)
            case ck.ThreadsSyncCustomActionReq(params=params) if params.action.type == own.SHOW_VERSION:
                run_id = own.version_of(params.action)
                whose = {"user_id": context.user_id}
                await versions.show(self.store.engine, params.thread_id, run_id, to_its_end=True, **whose)
                return _as_json(ck.SyncCustomActionResponse())
            case _:
                pass
        # Not `process`, which reads the request anew and makes the reader for it each time: 14 ms.
        return await self._process_non_streaming(request, context)

    async def _opened(self, page: ck.Page[ck.ThreadItem], context: Acting) -> ck.Page[ck.ThreadItem]:
        shown = [rows.widget(item) for item in page.data if isinstance(item, ck.WidgetItem)]
        now = await with_tasks_now(shown, self._tools, user_id=context.user_id, time_zone=context.time_zone)
        redrawn = {widget.id: widget for old, widget in zip(shown, now, strict=True) if widget is not old}
        items = [rows.as_shown(item.thread_id, redrawn[item.id]) if item.id in redrawn else item for item in page.data]
        return page.model_copy(update={"data": items})

    async def add_feedback(
        self, thread_id: str, item_ids: list[str], feedback: ck.FeedbackKind, context: Acting
    ) -> None:
        await self.store.save_feedback(thread_id, item_ids, feedback, context)

    async def _take_feedback_back(self, params: ck.ThreadCustomActionParams, context: Acting) -> bytes:
        assert params.item_id is not None, "`check` lets no such action through without its item"
        await self.store.save_feedback(params.thread_id, [params.item_id], None, context)
        item = await self.store.load_item(params.thread_id, params.item_id, context)
        return _as_json(ck.SyncCustomActionResponse(updated_item=item))

    async def sync_action(
        self, thread: ck.ThreadMetadata, action: Action[str, Any], sender: ck.WidgetItem | None, context: Acting
    ) -> ck.SyncCustomActionResponse:
        assert sender is not None, "`check` lets no action through without its widget"
        redrawn = await self._by_hand(action, sender, context)
        return ck.SyncCustomActionResponse(updated_item=next(item for item in redrawn if item.id == sender.id))

    async def act(self, params: ck.ThreadCustomActionParams, context: Acting) -> list[ck.ThreadStreamEvent]:
        """The events of a click, in a widget or on what was not read yet; it runs no model, so needs no lease."""
        try:
            if params.action.type in own.OF_INPUT:
                return [await self._act_on_input(params, context)]
            sender = await self.store.load_item(params.thread_id, params.item_id or "", context)
            assert isinstance(sender, ck.WidgetItem)
            redrawn = await self._by_hand(params.action, sender, context)
            return [ck.ThreadItemReplacedEvent(item=item) for item in redrawn]
        except Exception as error:  # noqa: BLE001 - the edge of the stream: the person is told
            return [ck.ErrorEvent(message=explain(error).message)]

    async def _act_on_input(self, params: ck.ThreadCustomActionParams, context: Acting) -> ck.ClientEffectEvent:
        given = own.input_of(params.action)
        where = {"user_id": context.user_id, "conversation_id": params.thread_id}
        if params.action.type == own.DROP_INPUT:
            await self._inbox.drop(given, **where)
            return ck.ClientEffectEvent(name="todo.dropped", data={"input_id": given})
        await self._inbox.send_now(given, **where)
        return ck.ClientEffectEvent(name="todo.queued", data={"input_id": given, "mode": "steer", "overtaken": []})

    async def _by_hand(self, asked: Action[str, Any], sender: ck.WidgetItem, context: Acting) -> list[ck.ThreadItem]:
        """Do what was asked for in a widget, redraw those that show the tasks, and let the model know."""
        zone = context.time_zone or await profiles.load_time_zone(self._database, context.user_id)
        here = partial(wall_time, zone=zone or self._time_zone)
        wanted = actions.asked_for(asked.type, asked.payload, rows.widget(sender), here)
        # A key of its own: a box may be ticked, unticked and ticked again, and what is done twice changes nothing more.
        act = new_id("act")
        changed = await self._changed(wanted, act, context.user_id, zone) if wanted.tool else []
        redrawn = await self.store.redraw(
            sender.thread_id,
            lambda shown: wanted.redrawn(shown, changed, now=here(self._clock()), act=act, sender=sender.id),
            context,
            sender=sender.id,
            note=history.change_by_hand(wanted.note(changed)) if changed else None,
        )
        return [rows.as_shown(sender.thread_id, item) for item in redrawn]

    async def _changed(self, wanted: actions.Asked, act: str, user_id: str, zone: str | None) -> list[Task]:
        """The tasks as they are after what was asked for."""
        try:
            result = await self._tools.change(
                wanted.tool,
                wanted.arguments,
                user_id=user_id,
                key=act,
                time_zone=zone,
                undo_batch=wanted.undo_batch,
            )
        except CallRefused as refusal:
            raise wanted.refused or InvalidRequest(str(refusal)) from None
        return Changed.model_validate(result).tasks


def _detached(request: ck.ChatKitReq) -> bool:
    """Whether the turn goes on when its reader leaves; otherwise leaving is ChatKit's way to say stop."""
    return request.metadata.get("detached") is True


def _as_json(answer: BaseModel) -> bytes:
    """As the SDK writes its answers, but that what `rows` adds to ChatKit's items is kept."""
    context = {"exclude_metadata": True}
    return answer.model_dump_json(by_alias=True, exclude_none=True, context=context, serialize_as_any=True).encode()
