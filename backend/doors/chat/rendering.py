"""A turn's log as chunks of the AI SDK's UI message stream: an interaction is one message of the assistant.

A reader may have seen the message's beginning in another response: where a call was asked about, that ends, and another
goes on with the same message once it was decided.
"""

from collections.abc import Collection, Iterator
from typing import Any

from backend.api.frontends.json_values import parse_value as plain
from backend.conversation.items import Json, Message, Thought, Widget, Work
from backend.doors.task_list_text import TaskListText
from backend.tools.table import TOOLS, shown
from backend.turn import log
from backend.turn.speech import CUT_SHORT

Chunk = dict[str, Any]
_UNFINISHED = "This call was interrupted. It may have been carried out partly or completely."
_LOST = "The connection was lost, but the assistant is still answering. Open the chat again to see the answer."
_REASONS = {CUT_SHORT["max_output_tokens"]: "length", CUT_SHORT["content_filter"]: "content-filter"}
_REASONING, _TEXT = "reasoning", "text"


class Rendering:
    """Of one interaction; `thread` is the chat's name, where its reader named it.

    One who has `decided` on calls goes on after these decisions: what came before was told in the response that asked.
    """

    def __init__(self, run_id: str, thread: str | None = None, *, decided: Collection[str] = ()) -> None:
        self._run_id = run_id
        self._thread = thread
        self._undecided = set(decided)
        self._has_begun = False
        self._in_step = False
        self._reason = "stop"
        self._open: dict[str, str] = {}  # parts that grow: text or reasoning, by their ids
        self._told: dict[tuple[str, int], str] = {}  # what parts of items have grown to
        self._thoughts: set[str] = set()
        self._calls: dict[str, str] = {}  # the tools of calls without an output yet
        self._asked: dict[str, log.Asked] = {}  # what is not decided yet
        self._approved: dict[str, str] = {}  # calls of agents, who tell of them in their steps
        self._agent = ""  # that was called last
        self._works: dict[str, str] = {}  # which agent's they are
        self._steps: dict[tuple[str, int], Json] = {}  # of works, as they were told
        self._lists = TaskListText()
        self.is_over = False

    def chunks(self, event: log.Event) -> Iterator[Chunk]:
        """What is told of an event: nothing after the one with which the message, or this part of it, `is_over`."""
        if not self._undecided:
            yield from self._chunks(event)
            return
        found = [*self._chunks(event)]
        self.is_over = False
        mine = isinstance(event, log.Decided) and event.approval_id in self._undecided
        if isinstance(event, log.Decided):
            self._undecided.discard(event.approval_id)
        yield from (chunk for chunk in found if mine or chunk["type"] == "start")

    def _chunks(self, event: log.Event) -> Iterator[Chunk]:  # noqa: C901 - one row per case
        if not self._has_begun:
            self._has_begun = True
            yield self._start(event)
        listed = self._lists.read(event)
        match event:
            case log.StepBegun():
                yield from self._begin_step()
            case log.Begun(item=Thought(id=item_id)):
                self._thoughts.add(item_id)
            case log.Grown(item_id=item_id, part=part, text=text):
                yield from self._grow(item_id, part, text)
            case log.PartDone(item_id=item_id, part=part):
                yield from self._close(_id(item_id, part))
            case log.Done(item=Message(id=item_id, parts=parts)):
                yield from self._complete(item_id, parts)
            case log.Done(item=Thought(id=item_id, text=text)):
                self._thoughts.add(item_id)
                yield from self._complete(item_id, [text])
            case log.Done(item=Widget(id=item_id)) if listed:
                yield from self._complete(item_id, [listed])
            case log.Removed(item_id=item_id):
                yield from self._complete(item_id, [])
            case log.Called(call_id=call_id, tool=tool, arguments=arguments):
                self._agent = shown(tool).agent or self._agent
                self._calls[call_id] = tool
                yield _called(call_id, tool, arguments)
            case log.Answered(call_id=call_id, tool=tool, output=output):
                self._calls.pop(call_id, None)
                yield from self._close_calls_of(shown(tool).agent)
                yield _answered(call_id, tool, output)
            case log.Asked():
                yield from self._ask(event)
            case log.Decided(approval_id=approval_id, approved=approved):
                asked = self._asked.pop(approval_id, None)
                if asked is not None and not approved:
                    yield {"type": "tool-output-denied", "toolCallId": asked.call_id}
                elif asked is not None and asked.agent is not None:
                    self._approved[asked.call_id] = asked.agent
            case log.Begun(item=Work(id=item_id)):
                self._works[item_id] = self._agent
            case log.WorkedOn(item_id=item_id, number=number, step=step):
                yield from self._work(item_id, number, step)
            case log.Done(item=Work() as work) | log.Replaced(item=Work() as work):
                for number, step in enumerate(work.steps):
                    yield from self._work(work.id, number, step)
                yield _data("agent", work.id, {"agent": self._works.get(work.id, work.agent), "ended": work.ended})
            case log.Notice(text=text):
                self._reason = _REASONS.get(text, self._reason)
                yield _data("notice", f"{self._run_id}:notice", {"text": text})
            case log.Failed(message=message):
                yield from self._leave()
                yield {"type": "error", "errorText": message}
            case log.Cancelled():
                yield from self._leave()
                yield {"type": "abort", "reason": "You stopped this answer."}
                self.is_over = True
            case log.Paused():
                yield from self.pause()
            case log.Ended(outcome=outcome) if not self.is_over:
                yield from self._finish(self._reason if outcome == "completed" else "error")
            case _:
                pass  # what a page shows beside it: progress, cards, summaries

    def pause(self) -> Iterator[Chunk]:
        """Its person is asked: it goes on in another response."""
        yield from self._finish("tool-calls")

    def lose(self) -> Iterator[Chunk]:
        """Nothing more is heard of it here, although it has not ended; it may wait for more to be decided."""
        if self._asked:
            yield from self.pause()
        else:
            yield {"type": "error", "errorText": _LOST}
        self.is_over = True

    def _start(self, event: log.Event) -> Chunk:
        thread = self._thread
        if thread is None and isinstance(event, log.Started):
            thread = event.conversation["id"]
        known = {"interactionId": self._run_id, **({"threadId": thread} if thread else {})}
        return {"type": "start", "messageId": self._run_id, "messageMetadata": known}

    def _grow(self, item_id: str, part: int, text: str) -> Iterator[Chunk]:
        if not text:
            return
        one, kind = _id(item_id, part), _REASONING if item_id in self._thoughts else _TEXT
        if one not in self._open:
            self._open[one] = kind
            yield {"type": f"{kind}-start", "id": one}
        self._told[item_id, part] = self._told.get((item_id, part), "") + text
        yield {"type": f"{kind}-delta", "id": one, "delta": text}

    def _complete(self, item_id: str, parts: list[str]) -> Iterator[Chunk]:
        """The rest of an item's parts, and their ends."""
        for part, text in enumerate(parts):
            told = self._told.get((item_id, part), "")
            if text != told and text.startswith(told):
                yield from self._grow(item_id, part, text.removeprefix(told))
        for one in [one for one in self._open if one.startswith(f"{item_id}:")]:
            yield from self._close(one)

    def _close(self, one: str) -> Iterator[Chunk]:
        if (kind := self._open.pop(one, None)) is not None:
            yield {"type": f"{kind}-end", "id": one}

    def _ask(self, event: log.Asked) -> Iterator[Chunk]:
        """Beside a call that stays open, as that of an agent who asks, in a step of its own.

        A client goes on by itself once all that the last step asked is decided, and nothing else in it is open.
        """
        if self._calls and not self._asked:
            yield from self._begin_step()
        self._asked[event.approval_id] = event
        yield _called(event.call_id, event.tool, event.arguments)
        asked = {"approvalId": event.approval_id, "toolCallId": event.call_id, "reason": event.text}
        yield {"type": "tool-approval-request", **asked}

    def _close_calls_of(self, agent: str | None) -> Iterator[Chunk]:
        for call_id in [one for one, of in self._approved.items() if of == agent]:
            del self._approved[call_id]
            told = {"toolCallId": call_id, "output": f"The result is in the {agent}'s steps.", "dynamic": True}
            yield {"type": "tool-output-available", **told}

    def _work(self, item_id: str, number: int, step: Json) -> Iterator[Chunk]:
        """A step, unless it is told already as it is."""
        shown = {name: step.get(name) for name in ("title", "content", "state")}
        if self._steps.get((item_id, number)) != shown:
            self._steps[item_id, number] = shown
            agent = self._works.get(item_id, self._agent)
            yield _data("agent-step", f"{item_id}:{number}", {"agent": agent, "number": number, **shown})

    def _begin_step(self) -> Iterator[Chunk]:
        yield from self._end_step()
        self._in_step = True
        yield {"type": "start-step"}

    def _end_step(self) -> Iterator[Chunk]:
        if self._in_step:
            self._in_step = False
            yield {"type": "finish-step"}

    def _leave(self) -> Iterator[Chunk]:
        """Nothing stays open: a client waits for what is."""
        for one in [*self._open]:
            yield from self._close(one)
        for agent in {*self._approved.values()}:
            yield from self._close_calls_of(agent)
        for call_id in self._calls:
            yield {"type": "tool-output-error", "toolCallId": call_id, "errorText": _UNFINISHED, "dynamic": True}
        self._calls.clear()
        for asked in self._asked.values():
            yield {"type": "tool-output-denied", "toolCallId": asked.call_id}
        self._asked.clear()

    def _finish(self, reason: str) -> Iterator[Chunk]:
        if reason != "tool-calls":
            yield from self._leave()
        yield from self._end_step()
        yield {"type": "finish", "finishReason": reason}
        self.is_over = True


def _called(call_id: str, tool: str, arguments: str) -> Chunk:
    given = {"toolCallId": call_id, "toolName": tool, "input": plain(arguments or "{}"), "dynamic": True}
    return {"type": "tool-input-available", **given}


def _answered(call_id: str, tool: str, output: str) -> Chunk:
    """The tools of tasks answer an object, and a sentence in its place where they refuse."""
    value = plain(output)
    if tool in TOOLS and shown(tool).agent is None and not isinstance(value, dict):
        return {"type": "tool-output-error", "toolCallId": call_id, "errorText": output, "dynamic": True}
    return {"type": "tool-output-available", "toolCallId": call_id, "output": value, "dynamic": True}


def _data(name: str, one: str, data: Json) -> Chunk:
    return {"type": f"data-{name}", "id": one, "data": data}


def _id(item_id: str, part: int) -> str:
    return f"{item_id}:{part}"
