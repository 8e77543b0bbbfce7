"""The requests of the terminal chat to the assistant."""

import os
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2

from cli import data_dir
from cli.chat.token_errors import explain_rejection
from cli.services import running
from todo_client.chatkit import ChatKit, user_input
from todo_client.connection import ApiError, ConnectionLost
from todo_client.reading import Reading
from todo_client.runs import RunEvent, Runs

T = TypeVar("T")
_INTERACTION = "todo.interaction"
_UNAUTHORIZED, _NOT_THERE = 401, 404
_MAX_TITLE_CHARACTERS = 1_000
_OWNER_HEADER = "X-Owner-Secret"
_LISTENS = "0A"  # the state of a socket, in /proc/net/tcp


def is_own(chat_id: str | None) -> bool:
    """Whether it is the id of a conversation, and not a name that its user chose."""
    return chat_id is not None and chat_id.startswith("thr_")


class OwnerSecret(httpx2.Auth):
    """Adds the secret of a data directory to requests, as long as its `./todo up` runs and serves their port."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        state = running.read_state(self._directory) or {}
        port = urlsplit(state.get("page", "")).port
        secret = data_dir.read_secret(self._directory, data_dir.OWNER_SECRET)
        if secret and port is not None and port == request.url.port and _is_served_by_user(port):
            request.headers[_OWNER_HEADER] = secret
        yield request


@dataclass
class Connection:
    """The connection of one user. `lost` is called with True when that of an answer breaks, with False when it is back.

    An answer is not waited for beyond `patience` seconds without its server. `model` and `temperature` are sent with
    each message, but no temperature if `check_temperature` finds that the model takes none. New conversations work in
    the `directory`, if there is one.
    """

    url: str
    token: str | None = None
    zone: str | None = None
    model: str | None = None
    temperature: float | None = None
    patience: float = 60
    lost: Callable[[bool], None] = lambda lost: None
    directory: str | None = None
    auth: OwnerSecret | None = None
    runs: Runs = field(init=False)
    chatkit: ChatKit = field(init=False)
    _takes_temperature: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        headers = {"X-Time-Zone": self.zone} if self.zone else {}
        self.runs = Runs(self.url, token=self.token, headers=headers, auth=self.auth)
        self.chatkit = ChatKit(self.url, token=self.token, headers=headers, auth=self.auth)

    async def close(self) -> None:
        await self.runs.http.aclose()
        await self.chatkit.http.aclose()

    async def alive(self) -> None:
        """Raises `ConnectionLost` if no assistant answers."""
        try:
            await self.runs.request("GET", "/health")
        except ApiError as error:
            raise ConnectionLost from error

    def describe_error(self, error: ApiError | ConnectionLost) -> str:
        is_rejected = isinstance(error, ApiError) and error.status == _UNAUTHORIZED
        return explain_rejection(self.token) if is_rejected else str(error)

    async def check_temperature(self) -> str | None:
        """Looks whether the model takes the temperature; returns what the user should know if it does not."""
        if self.temperature is None:
            return None
        offered = (await self.runs.ready())["model"]
        name = self.model or offered["name"]
        self._takes_temperature = name not in offered.get("without_temperature", ())
        return None if self._takes_temperature else f"The model {name} takes no temperature, so --temp is left out."

    async def say(self, chat_id: str | None, text: str, *, left: str | None = None) -> Reading:
        """Sends a message to a conversation; None: to a new one, which takes the place of `left`."""
        if chat_id is None and self.directory is not None:
            chat_id = await self.begin(text[:_MAX_TITLE_CHARACTERS], left=left)
        if chat_id is None:
            create = partial(self._start_answer, "threads.create", input=user_input(text))
            return await _send_about(left, lambda left: create({"left": left}))
        key = str(uuid.uuid4())
        return Reading(chat_id, start=lambda runs: runs.interact(chat_id, text, key=key, more=self._get_options()))

    def edit(self, chat_id: str, run_id: str, text: str) -> Reading:
        key = str(uuid.uuid4())
        return Reading(chat_id, start=lambda runs: runs.edit(chat_id, run_id, text, key=key, more=self._get_options()))

    async def retry(self, chat_id: str) -> Reading:
        """Requests another answer to the last message; raises `ApiError` if there is none."""
        thread = await self.thread(chat_id)
        message = next((item for item in await self.items(thread) if item["type"] == "user_message"), None)
        if message is None:
            raise ApiError(_NOT_THERE, "There is no message to answer again.")
        return await self._start_answer(
            "threads.retry_after_item", {}, chat_id=chat_id, thread_id=thread, item_id=message["id"]
        )

    async def begin(self, title: str, *, left: str | None) -> str:
        begin = partial(self.runs.begin, title, directory=self.directory)
        return (await _send_about(left, lambda left: begin(left=left)))["id"]

    async def add_to_memory(self, chat_id: str | None, text: str) -> dict[str, Any]:
        """Adds lines, also if no log can show it because the conversation has only a name yet or was deleted."""
        return await _send_about(chat_id, lambda chat_id: self.runs.add_to_memory(text, chat_id=chat_id))

    def events(self, reading: Reading) -> AsyncGenerator[RunEvent]:
        """Yields the rest of an answer's events; raises the error when the server is away for too long."""
        return reading.events(self.runs, reconnect_seconds=self.patience, on_lost=self.lost)

    async def cancel(self, reading: Reading) -> None:
        """Stops an answer. If its run is not known, the message is sent again, with its key: the run may have begun."""
        if reading.run_id is None:
            async with reading.open(self.runs) as events:
                async for event in events:
                    if event.name == "interaction_started":
                        reading.run_id = event.data["interaction_id"]
                        break
        if reading.run_id is not None:
            await self.runs.cancel(reading.chat_id, reading.run_id)

    async def last(self, chat_id: str) -> dict[str, Any] | None:
        """Returns the interaction that a conversation shows last; None for a new name, or without messages."""
        try:
            leaf = await self.leaf(chat_id)
        except ApiError as error:
            if error.status == _NOT_THERE and not is_own(chat_id):
                return None
            raise
        return await self.runs.get_interaction(chat_id, leaf) if leaf else None

    async def is_new(self, chat_id: str) -> bool:
        """Whether it is a name that no conversation has yet."""
        try:
            await self.leaf(chat_id)
        except ApiError as error:
            return error.status == _NOT_THERE and not is_own(chat_id)
        return False

    async def leaf(self, chat_id: str) -> str | None:
        return (await self.runs.get_chat(chat_id, limit=0))["leaf"]

    async def thread(self, chat_id: str) -> str:
        """Returns the id of a conversation: ChatKit does not know the name that it may have."""
        after = None
        while not is_own(chat_id):
            page = await self.runs.get_chats(limit=100, after=after)
            if found := [chat["chat_id"] for chat in page["chats"] if chat["name"] == chat_id]:
                return found[0]
            if (after := page["after"]) is None:
                raise ApiError(_NOT_THERE, f"There is no conversation {chat_id}.")
        return chat_id

    async def items(self, thread: str) -> list[dict[str, Any]]:
        """Returns what ChatKit shows of a conversation, the newest first."""
        return (await self.chatkit.ask("items.list", thread_id=thread, limit=100, order="desc", after=None))["data"]

    async def steps(self, chat_id: str, run_id: str) -> list[dict[str, Any]]:
        steps, after = list[dict[str, Any]](), 0
        while after is not None:
            page = await self.runs.get_steps(chat_id, run_id, limit=100, after=after)
            steps, after = steps + page["steps"], page["after"]
        return steps

    async def _start_answer(
        self, kind: str, metadata: dict[str, Any], *, chat_id: str | None = None, **params: Any
    ) -> Reading:
        """Starts an answer by a request of ChatKit, and leaves its stream; the answer continues."""
        run_id: str | None = None
        temperature = self.temperature if self._takes_temperature else None
        sent = {"detached": True, "model": self.model, "temperature": temperature, **metadata}
        metadata = {name: value for name, value in sent.items() if value is not None}
        async with self.chatkit.open(kind, metadata=metadata, **params) as events:
            async for event in events:
                match event:
                    case {"type": "client_effect", "name": name, "data": data} if name == _INTERACTION:
                        run_id = data["interaction_id"]
                    case {"type": "thread.created", "thread": thread}:
                        chat_id = thread["id"]
                    case {"type": "error", "message": message}:
                        raise ApiError(409, message)
                    case _:
                        pass
                if run_id is not None and chat_id is not None:
                    return Reading(chat_id, run_id)
        raise ConnectionLost

    def _get_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"model": self.model} if self.model else {}
        if self.temperature is not None and self._takes_temperature:
            options["metadata"] = {"temperature": self.temperature}
        return options


async def _send_about(chat_id: str | None, send: Callable[[str | None], Awaitable[T]]) -> T:
    """Sends a request that names a conversation; without the name if there is no such conversation."""
    try:
        return await send(chat_id)
    except ApiError as error:
        if chat_id is None or error.status != _NOT_THERE:
            raise
        return await send(None)


def _is_served_by_user(port: int) -> bool:
    """Whether nobody but this user, or root, listens at a port: another user could while the backend starts again.

    True where the system does not say whose a socket is (macOS).
    """
    owners = set[int]()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = [line.split() for line in Path(table).read_text().splitlines()[1:]]
        except OSError:
            continue
        owners |= {int(row[7]) for row in rows if row[3] == _LISTENS and int(row[1].rpartition(":")[2], 16) == port}
    return owners <= {os.getuid(), 0}
