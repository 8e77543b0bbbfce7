"""A conversation in this terminal, from its prompt on: behind that come slow imports, and the server."""

import asyncio
import importlib
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cli import data_dir
from cli.chat import server
from cli.chat.options import DONE, NO_SERVER, Exit, Options, is_dumb, wants_colour
from cli.chat.screens.screen import MARK, Screen
from cli.chat.screens.text import Style

if TYPE_CHECKING:
    from cli.chat.connection import Connection
    from cli.chat.talk import Talk

PATIENCE = 3_600  # seconds without the server in the middle of an answer; who has none stops it
START_SECONDS = 180
_LOOK_SECONDS = 0.2
_SLOW = ("todo_client.chatkit", "cli.chat.screens.markdown", "cli.chat.talk")


def run(options: Options, url: str) -> int:
    return asyncio.run(_run(options, url))


async def _run(options: Options, url: str) -> Exit:
    style = Style(colour=wants_colour(terminal=True))
    if is_dumb():
        from cli.chat.screens.plain import Plain

        return await Conversation(options, url, Plain(style)).run()
    from cli.chat.screens.completion import Known
    from cli.chat.screens.live import Live

    completer = Known()
    screen = Live(completer, data_dir.chat_history(options.directory), style=style)
    return await Conversation(options, url, screen, completer.known).run()


class Conversation:
    """`known` holds what can be completed: names by their kind."""

    def __init__(self, options: Options, url: str, screen: Screen, known: dict[str, list[str]] | None = None) -> None:
        self._options = options
        self._url = url
        self._screen = screen
        self._known = {} if known is None else known
        self._typed: list[str] = []  # before there is anybody to say it to
        self._question: Callable[[str], Coroutine[Any, Any, None]] | None = None
        self._status: Exit = DONE
        self._connection: Connection | None = None
        self._talk: Talk | None = None
        self._beginning: asyncio.Future[None] | None = None
        self._broken: BaseException | None = None

    async def run(self) -> Exit:
        try:
            await self._screen.run(self, self._begin_soon)
        finally:
            if self._beginning is not None:
                self._beginning.cancel()
                await asyncio.gather(self._beginning, return_exceptions=True)
            if self._talk is not None:
                self._status = await self._talk.close() or self._status
            if self._connection is not None:
                await self._connection.close()
        if self._broken is not None:
            raise self._broken
        return self._status

    def entered(self, text: str) -> None:
        if self._question is not None:
            question, self._question = self._question, None
            self._soon(question(text))
        elif self._talk is not None:
            self._talk.entered(text)
        else:
            self._typed.append(text)

    def interrupted(self) -> bool:
        return self._talk is not None and self._talk.interrupted()

    def _begin_soon(self) -> None:
        self._soon(self._begin())

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        """What nobody expects of it ends the conversation."""
        self._beginning = asyncio.ensure_future(work)
        self._beginning.add_done_callback(self._done)

    def _done(self, task: "asyncio.Future[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._broken = error
            self._screen.leave()

    async def _begin(self) -> None:
        for name in _SLOW:  # typing goes on meanwhile
            await asyncio.to_thread(importlib.import_module, name)
        from cli.chat.connection import opened
        from todo_client.connection import ConnectionLost

        self._connection = opened(self._options, self._url, patience=PATIENCE)
        try:
            await self._connection.alive()
        except ConnectionLost:
            await self._offer_to_start()
            return
        await self._go_on(self._connection)

    async def _go_on(self, connection: "Connection") -> None:
        from cli.chat.talk import Talk

        self._talk = Talk(self._options, self._screen, connection, self._known)
        await self._talk.begin()
        for text in self._typed:
            self._talk.entered(text)

    async def _offer_to_start(self) -> None:
        await self._screen.show(f"No server is running at {self._url}.")
        if self._options.url is not None:
            self._leave(NO_SERVER)
            return
        self._question = self._start
        self._mark("Start one here in the background? [Y/n] ")

    async def _start(self, answer: str) -> None:
        if answer.strip().lower() not in ("", "y", "yes"):
            self._leave(NO_SERVER)
            return
        from todo_client.connection import ConnectionLost

        assert self._connection is not None, "nothing was asked before it was tried"
        process = server.start(self._options.directory)
        self._mark(status="Starting the server; ./todo down stops it …")
        now = asyncio.get_running_loop().time
        until = now() + START_SECONDS
        while process.poll() is None and now() < until:
            with suppress(ConnectionLost):
                await self._connection.alive()
                self._mark()
                await self._screen.show(self._screen.style.dim("The server is running. ./todo down stops it."))
                await self._go_on(self._connection)
                return
            await asyncio.sleep(_LOOK_SECONDS)
        await self._screen.show(f"The server did not start. See {server.log_of(self._options.directory)}.")
        self._leave(NO_SERVER)

    def _mark(self, mark: str = MARK, status: str = "") -> None:
        self._screen.mark, self._screen.status = mark, status
        self._screen.redraw()
        self._screen.waits()

    def _leave(self, status: Exit) -> None:
        self._status = status
        self._screen.leave()
