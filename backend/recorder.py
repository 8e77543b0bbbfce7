"""Tool steps, written down before they run."""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from agents import Agent, ModelResponse, RunHooks, Tool
from agents.items import ItemHelpers, RunItem, TResponseInputItem
from agents.run_context import RunContextWrapper
from chatkit.types import (
    HiddenContextItem,
    ProgressUpdateEvent,
    ThreadItem,
    ThreadItemDoneEvent,
    ThreadItemReplacedEvent,
    WidgetItem,
)
from openai.types.responses import ResponseFunctionToolCall, ResponseReasoningItem

from backend import progress, widgets
from backend.history import plain
from backend.identity import RequestContext
from backend.progress import TaskViews
from backend.store_adapter import PostgresStore
from backend.turns import Turn
from backend.widgets import Task
from database import new_id, utc_now


class Recorder(RunHooks[Turn]):
    """Writes each step's calls before a tool runs, and each output as it comes; at the end nothing is unpaired."""

    def __init__(self, store: PostgresStore, thread_id: str, context: RequestContext, *, message_id: str) -> None:
        assert context.turn is not None
        self._store = store
        self._thread_id = thread_id
        self._context = context
        self._turn = context.turn
        self._message_id = message_id
        self._made: Counter[tuple[str, str]] = Counter()
        self._open: set[str] = set()
        self._views = TaskViews()
        self._showing = asyncio.Lock()  # what is shown first comes first after a reload, too
        self._stored = asyncio.Event()

    async def on_llm_end(self, context: RunContextWrapper[Turn], agent: Agent[Turn], response: ModelResponse) -> None:
        calls = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
        if not calls:
            return
        await self._stored.wait()  # what the model said before, so that the rows are in its order
        for call in calls:
            self._turn.call_keys[call.call_id] = self._key(call)
        self._open.update(call.call_id for call in calls)
        self._turn.tool_calls += len(calls)
        self._views.begin_step(call.name for call in calls)
        await self._store.write(self._thread_id, [self._step(calls, response)], self._context)

    async def on_tool_start(self, context: RunContextWrapper[Turn], agent: Agent[Turn], tool: Tool) -> None:
        self._show(progress.running(tool.name, getattr(context, "tool_arguments", "")))

    async def on_tool_end(self, context: RunContextWrapper[Turn], agent: Agent[Turn], tool: Tool, result: Any) -> None:
        call: ResponseFunctionToolCall = context.tool_call  # pyright: ignore[reportAttributeAccessIssue] - a ToolContext
        output = ItemHelpers.tool_call_output_item(call, result)
        text = plain(output["output"])
        card = self._views.card(tool.name, text)
        items = [widgets.item(self._thread_id, card)] if card else []
        async with self._showing:
            await self._record([output], items)
            if tool.name == "list_tasks":
                self._views.add_page(call.arguments, text)
            self._show(progress.done(tool.name, text))
            for item in items:
                self._turn.emit(ThreadItemDoneEvent(item=item))
            if (task := progress.changed_task(tool.name, text)) is not None:
                await self._redraw(task)

    async def _redraw(self, task: Task) -> None:
        """Let the widgets that are shown already follow a change."""
        for item in await self._store.redraw(
            self._thread_id, lambda shown: widgets.redrawn(shown, task), self._context
        ):
            self._turn.emit(ThreadItemReplacedEvent(item=item))

    def final_list(self) -> WidgetItem | None:
        """The list, when the turn was about it."""
        found = self._views.final()
        return widgets.item(self._thread_id, found) if found else None

    def _show(self, event: ProgressUpdateEvent | None) -> None:
        if event is not None:
            self._turn.emit(event)

    async def on_llm_start(
        self,
        context: RunContextWrapper[Turn],
        agent: Agent[Turn],
        system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        self._stored.clear()
        # Calls that ran no tool (unknown name, refused) have an output too, made by the SDK.
        await self._record(input_items)

    def shown_is_stored(self) -> None:
        """Say that everything which was shown of the model's answer is stored; its calls are written after that."""
        self._stored.set()

    async def finish(self, items: list[RunItem]) -> None:
        """Record the outputs that no hook told of, once the run has ended."""
        await self._record([item.to_input_item() for item in items if item.type == "tool_call_output_item"])

    @property
    def busy(self) -> bool:
        """Whether a call was written down that has no output yet."""
        return bool(self._open)

    async def _record(self, items: list[Any], shown: Sequence[ThreadItem] = ()) -> None:
        """Write the outputs that are not there yet, and with them what is shown of them."""
        outputs = [item for item in items if item.get("call_id") in self._open and "output" in item]
        if not outputs:
            return
        rows: list[ThreadItem] = [self._hidden({"kind": "tool_output", "output": output}) for output in outputs]
        await self._store.write(self._thread_id, [*rows, *shown], self._context)
        self._open.difference_update(output["call_id"] for output in outputs)

    def _key(self, call: ResponseFunctionToolCall) -> str:
        """The same for the same call of the same message in another attempt; another for a second such call in one."""
        arguments = _canonical(call.arguments)
        count = self._made[call.name, arguments]
        self._made[call.name, arguments] += 1
        return hashlib.sha256(json.dumps([self._message_id, call.name, arguments, count]).encode()).hexdigest()

    def _step(self, calls: list[ResponseFunctionToolCall], response: ModelResponse) -> HiddenContextItem:
        reasoning = [
            item.model_dump(exclude_unset=True) for item in response.output if isinstance(item, ResponseReasoningItem)
        ]
        made = [
            {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}
            for call in calls
        ]
        return self._hidden({"kind": "tool_calls", "calls": made, "reasoning": reasoning})

    def _hidden(self, content: dict[str, Any]) -> HiddenContextItem:
        return HiddenContextItem(id=new_id("step"), thread_id=self._thread_id, created_at=utc_now(), content=content)


def _canonical(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True, separators=(",", ":"))
    except ValueError:
        return arguments
