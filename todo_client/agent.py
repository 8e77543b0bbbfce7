"""The assistant as an object: send a prompt, listen to events, and intervene while it works."""

import asyncio
import inspect
import threading
import uuid
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from todo_client.connection import ApiError, ConnectionLost
from todo_client.events import REASONS, AgentEvent, EventType, Result, RunFailed, Usage, render_agent_events
from todo_client.reading import Reading, repeat
from todo_client.runs import Json, Message, Runs

Listener = Callable[[AgentEvent], Any]
_Request = Callable[..., Awaitable[Any]]
SILENCE_SECONDS = 45  # the server sends a comment every 15 seconds
_HAS_ENDED = 409


class Agent:
    """One chat with the assistant. It holds no connection between prompts and need not be closed.

    `chat` is the name or id of a chat; without it, the first prompt creates a chat. `time_zone` is the user's, such as
    "Europe/Berlin". If the server cannot be reached, the agent tries again for `reconnect_seconds`.

    `steer`, `follow_up`, `abort` and `approve` can be called from listeners, other coroutines and other threads while
    `prompt` runs. They return at once. If the server rejects what they ask for, listeners receive an ERROR event. The
    `Future` that they return is for other threads: its `result()` waits for the server's response.
    """

    def __init__(
        self,
        url: str = "http://localhost:8000",
        token: str | None = None,
        chat: str | None = None,
        *,
        model: str | None = None,
        temperature: float | None = None,
        time_zone: str | None = None,
        reconnect_seconds: float = 60,
    ) -> None:
        self.url, self.token = url, token
        self.chat = chat or f"chat-{uuid.uuid4().hex}"
        self.usage = Usage()
        """The usage of all prompts of this object."""
        self._time_zone, self._reconnect_seconds = time_zone, reconnect_seconds
        self._options: Json = {"model": model} if model else {}
        if temperature is not None:
            self._options["metadata"] = {"temperature": temperature}
        self._listeners: list[Listener] = []
        self._guard = threading.Lock()
        self._prompt: _Prompt | None = None

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener`, a function or a coroutine function, with each event. Returns a function that ends that.

        An exception of a listener ends `prompt`; the assistant goes on.
        """
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    async def prompt(self, message: Message) -> Result:
        """Sends a message and waits for the answer, also to follow-ups. Goes on where it was if the connection breaks.

        Raises `RunFailed` if the assistant cannot answer, `ApiError` if the server rejects the message, and
        `ConnectionLost` if it is away for too long. Cancelling `prompt` does not stop the assistant; `abort` does.
        """
        return await self._read_with_follow_ups(self._start(message))

    async def resume(self) -> Result | None:
        """Waits for the answer that the chat is writing, or that waits for an approval. Listeners receive its events
        from the beginning. Returns None if there is none.
        """
        async with self._connect() as runs:
            last = (await repeat(lambda: runs.get_chat(self.chat, limit=1), self._reconnect_seconds))["interactions"]
        if not last or last[0]["status"] in REASONS:
            return None
        return await self._read_with_follow_ups(Reading(self.chat, last[0]["id"]))

    def steer(self, message: Message) -> "Future[None]":
        """Sends a message that the model reads in its next request, in place of follow-ups that wait."""
        return self._send(Runs.send, message, mode="steer")

    def follow_up(self, message: Message) -> "Future[None]":
        """Sends a message that is answered after the present answer; `prompt` returns after both."""
        return self._send(Runs.send, message, mode="follow_up")

    def abort(self) -> "Future[None]":
        """Stops the answer, if there is one. What was said and done is kept."""
        try:
            return self._send(Runs.cancel)
        except RuntimeError:
            nothing_to_stop: Future[None] = Future()
            nothing_to_stop.set_result(None)
            return nothing_to_stop

    def approve(
        self, approval_id: str, *, approved: bool = True, reason: str | None = None, always: bool = False
    ) -> "Future[None]":
        """Decides a call that waits for approval. The model reads the `reason`. `always` allows further calls of this
        kind in this chat.
        """
        return self._send(Runs.approve, approval_id, approved=approved, reason=reason, always=always)

    def _send(self, request: _Request, *arguments: Any, **options: Any) -> "Future[None]":
        """Sends a request about the answer that is being written, on the event loop of `prompt`."""
        with self._guard:
            if (prompt := self._prompt) is None:
                raise RuntimeError("The agent is not answering. Call prompt() first.")
            sending = self._send_or_report(prompt, request, *arguments, **options)
            future = asyncio.run_coroutine_threadsafe(sending, prompt.loop)
            prompt.requests.add(future)
            future.add_done_callback(prompt.requests.discard)
            return future

    async def _send_or_report(self, prompt: "_Prompt", request: _Request, *arguments: Any, **options: Any) -> None:
        """Sends a request once it is known to which interaction, and again if the connection breaks."""
        key = str(uuid.uuid4())
        prompt.is_aborted = prompt.is_aborted or request is Runs.cancel
        try:
            async with prompt.one_at_a_time:
                await prompt.is_known.wait()
                send = partial(request, prompt.runs, self.chat, prompt.interaction_id, *arguments, key=key, **options)
                await repeat(send, self._reconnect_seconds)
        except (ApiError, ConnectionLost) as error:
            if isinstance(error, ApiError) and error.status == _HAS_ENDED and request is not Runs.approve:
                prompt.late_messages += arguments
                return
            await self._emit(EventType.ERROR, {"error": str(error), "code": None, "allow_retry": False}, prompt)
            raise

    def _connect(self) -> Runs:
        headers = {"X-Time-Zone": self._time_zone} if self._time_zone else {}
        return Runs(self.url, token=self.token, headers=headers, timeout=SILENCE_SECONDS)

    def _start(self, message: Message) -> Reading:
        key = str(uuid.uuid4())
        return Reading(self.chat, start=lambda runs: runs.interact(self.chat, message, key=key, more=self._options))

    async def _read_with_follow_ups(self, first: Reading) -> Result:
        async with self._connect() as runs:
            with self._guard:
                if self._prompt is not None:
                    raise RuntimeError("The agent is answering already. Call steer() or follow_up().")
                self._prompt = prompt = _Prompt(runs)
            try:
                outcome = await self._read_interaction(first, prompt)
                while (following := await self._find_next(outcome, prompt)) is not None:
                    outcome = await self._read_interaction(following, prompt)
            finally:
                with self._guard:
                    self._prompt = None if self._prompt is prompt else self._prompt
                for request in tuple(prompt.requests):
                    request.cancel()
        reason = REASONS[outcome["status"]]
        await self._emit(EventType.AGENT_END, {"reason": reason}, prompt)
        about = {"changes": prompt.changes, "named": prompt.named, "unread": prompt.unread}
        result = Result(prompt.text, reason, prompt.usage, prompt.interaction_id, **about)
        if reason == "error":
            raise RunFailed(prompt.error.get("error") or outcome.get("reason", ""), prompt.error.get("code"), result)
        return result

    async def _read_interaction(self, reading: Reading, prompt: "_Prompt") -> Json:
        """Reads an interaction to its end, and what it has used. Returns the data of its last event."""
        outcome: Json = {}
        prompt.text, prompt.error = "", {}
        prompt.set_interaction(reading.run_id)
        if reading.run_id is not None and prompt.is_aborted:
            await self._send_or_report(prompt, Runs.cancel)
        async with aclosing(reading.events(prompt.runs, reconnect_seconds=self._reconnect_seconds)) as events:
            async for event in events:
                prompt.set_interaction(reading.run_id)
                match event.name:
                    case "interaction_started" if not prompt.has_started:
                        prompt.has_started = True
                        await self._emit(EventType.AGENT_START, {"chat_id": self.chat}, prompt)
                    case "answer" if "agent" not in event.data:
                        prompt.text = event.data["content"]
                    case "error":
                        prompt.error = event.data
                    case "interaction_complete":
                        outcome = event.data
                        prompt.add_changes(outcome)
                    case _:
                        pass
                for kind, data in render_agent_events(event.name, event.data):
                    await self._emit(kind, data, prompt, event.data.get("agent"))
        get_usage = partial(prompt.runs.get_interaction, self.chat, prompt.interaction_id, brief=True)
        counted = (await repeat(get_usage, self._reconnect_seconds))["usage"] or {}
        usage = Usage(**{name: counted.get(name, 0) for name in vars(Usage())})
        self.usage, prompt.usage = self.usage + usage, prompt.usage + usage
        return outcome

    async def _find_next(self, outcome: Json, prompt: "_Prompt") -> Reading | None:
        """Returns the interaction that comes next. Returns None if none does; no request reaches the prompt then."""
        while True:
            with self._guard:
                if not (open_requests := tuple(prompt.requests)):
                    if next_id := outcome.get("next_interaction_id"):
                        return Reading(self.chat, next_id)
                    if prompt.late_messages and outcome["status"] == "COMPLETED" and not prompt.is_aborted:
                        return self._start(prompt.late_messages.pop(0))
                    self._prompt = None
                    return None
            await asyncio.gather(*map(asyncio.wrap_future, open_requests), return_exceptions=True)

    async def _emit(self, kind: EventType | str, data: Json, prompt: "_Prompt", agent: str | None = None) -> None:
        event = AgentEvent(kind, data, prompt.interaction_id, agent)
        for listener in tuple(self._listeners):
            if inspect.isawaitable(done := listener(event)):
                await done


@dataclass
class _Prompt:
    """A prompt that is being answered, and the requests that are sent to it, one after the other."""

    runs: Runs
    interaction_id: str = ""
    has_started: bool = False
    is_aborted: bool = False
    requests: "set[Future[None]]" = field(default_factory=set)
    late_messages: list[Message] = field(default_factory=list)
    """Messages that came when the interaction had just ended."""
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    changes: list[Json] = field(default_factory=list[Json])
    named: int | None = None
    unread: bool = False
    error: Json = field(default_factory=dict)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_known: asyncio.Event = field(default_factory=asyncio.Event)

    def add_changes(self, outcome: Json) -> None:
        """Adds what an interaction has changed, by the data of its last event; older servers do not say it."""
        made, named = outcome.get("changes", []), outcome.get("named")
        if self.named or named:
            self.named = (self.named or len(self.changes)) + (named or len(made))
        self.changes += made
        self.unread = self.unread or outcome.get("unread", False)

    def set_interaction(self, interaction_id: str | None) -> None:
        """Sets which interaction requests are for; with None they wait until it is known."""
        if interaction_id is None:
            self.is_known.clear()
        else:
            self.interaction_id = interaction_id
            self.is_known.set()
