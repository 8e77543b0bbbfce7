"""The page in Firefox: the list by hand, an answer that streams and changes it, and one that nests too deeply."""

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from itertools import count
from random import Random
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.browser.conftest import PAGE
from tests.scripted_model import ScriptedModel
from tests.support.script import add_task, pausing_answer
from tests.support.stack import Stack
from tests.support.users import User
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

BOX = "document.querySelector('.rows [aria-label=\"Done: %s\"]')"
ANSWER = "document.querySelector('todo-chat article.answer')"
DEEP = "".join(Random(1).choices((">", "> "), k=3_000)) + "> deep"  # which does not repeat itself
NOTICE = "document.querySelector('.notice-bar')"


async def test_list_and_chat_in_firefox(stack: Stack, model: ScriptedModel, user: User) -> None:
    await model.script(
        add_task("bread", due="today"),
        pausing_answer("I have **added** it. ", "I have **added** it. " * 19),
        {"text": DEEP},
    )
    async with firefox() as browser:
        await browser.open(f"{stack.url}{PAGE}")
        session = "fetch('/session', {method: 'POST', headers: {Authorization: 'Bearer %s'}})"
        await browser.evaluate(f"void {session % user.token}.then(({{ ok }}) => {{ window.signedIn = ok; }})")
        await browser.until("window.signedIn")
        await browser.open(f"{stack.url}{PAGE}")
        await browser.click("textbox", "Add a task")
        await browser.write("buy milk today #shop")
        await browser.click("checkbox", "Done: buy milk")
        await browser.until(f"{BOX % 'buy milk'}?.checked")
        await browser.until(f"{NOTICE}?.textContent.includes('Completed')")  # before that, Undo takes back the addition
        await browser.click("button", "Undo")
        await browser.until(f"{BOX % 'buy milk'}?.checked === false")
        await browser.click("textbox", "Message")
        await browser.write("bread, please")
        await browser.until(f"{ANSWER}?.ariaBusy === 'true' && {ANSWER}.textContent.includes('added')")
        await browser.until(BOX % "bread")  # the list is told at once, while the answer goes on
        assert await browser.evaluate(f"{ANSWER}.ariaBusy") == "true"
        await model.release()
        await browser.until(f"{ANSWER}?.ariaBusy === 'false' && {ANSWER}.querySelectorAll('strong').length === 20")
        assert await browser.evaluate("document.querySelector('.widget [type=checkbox]').ariaLabel") == "bread"
        await browser.click("textbox", "Message")
        await browser.write("again")
        await browser.until("document.querySelector('todo-chat .log').textContent.includes('> deep')")
        await browser.click("button", "Answer again")
        assert browser.problems == []


_LISTENING = "WebDriver BiDi listening on "
_SECONDS = 60
_ENTER = "\ue007"


def program() -> str:
    found = os.environ.get("FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")
    assert found, "Firefox is needed: install it, or name it in FIREFOX."
    return found


@contextlib.asynccontextmanager
async def firefox() -> AsyncIterator["Firefox"]:
    """A window of a new user's browser."""
    with tempfile.TemporaryDirectory(prefix="firefox-") as profile:
        options = ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"]
        process = await asyncio.create_subprocess_exec(program(), *options, stderr=asyncio.subprocess.PIPE)
        try:
            async with asyncio.timeout(4 * _SECONDS), _connect(await _address(process)) as socket:
                browser = Firefox(socket)
                await browser.begin()
                yield browser
        finally:
            process.terminate()
            await process.communicate()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async for line in process.stderr:
        if _LISTENING in (text := line.decode()):
            return text.partition(_LISTENING)[2].strip()
    raise AssertionError("Firefox ended before it listened")


def _connect(address: str) -> connect:
    return connect(f"{address}/session", open_timeout=None, ping_interval=None)  # Firefox may be slow


class Failed(Exception):
    """A command that Firefox could not carry out."""


class Firefox:
    def __init__(self, socket: ClientConnection) -> None:
        self.problems: list[str] = []
        """Script errors, which no page may have."""
        self._socket = socket
        self._numbers = count(1)
        self._context = ""

    async def begin(self) -> None:
        await self._ask("session.new", capabilities={})
        await self._ask("session.subscribe", events=["log.entryAdded"])
        self._context = (await self._ask("browsingContext.getTree"))["contexts"][0]["context"]

    async def open(self, url: str) -> None:
        await self._ask("browsingContext.navigate", context=self._context, url=url, wait="complete")

    async def evaluate(self, expression: str) -> Any:
        answer = await self._ask(
            "script.evaluate",
            expression=f"JSON.stringify({expression})",
            target={"context": self._context},
            awaitPromise=True,
        )
        assert answer["type"] == "success", answer
        return json.loads(answer["result"].get("value", "null"))

    async def until(self, expression: str) -> None:
        await until(lambda: self.evaluate(f"Boolean({expression})"), seconds=_SECONDS)

    async def click(self, role: str, name: str) -> None:
        """With the pointer, as soon as it is there; again where the page draws the element anew meanwhile."""
        async with asyncio.timeout(_SECONDS):
            while True:
                with contextlib.suppress(Failed):
                    return await self._click(await self._find(role, name))

    async def _click(self, shared_id: str) -> None:
        element = {"type": "element", "element": {"sharedId": shared_id}}
        moves: list[Any] = [{"type": "pointerMove", "x": 0, "y": 0, "origin": element}]
        presses = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        await self._perform({"type": "pointer", "id": "mouse", "actions": [*moves, *presses]})

    async def write(self, text: str) -> None:
        """With the keyboard, and Enter after it."""
        keys = [{"type": kind, "value": key} for key in [*text, _ENTER] for kind in ("keyDown", "keyUp")]
        await self._perform({"type": "key", "id": "keyboard", "actions": keys})

    async def _perform(self, source: dict[str, Any]) -> None:
        await self._ask("input.performActions", context=self._context, actions=[source])

    async def _find(self, role: str, name: str) -> str:
        locator = {"type": "accessibility", "value": {"role": role, "name": name}}

        async def nodes() -> list[dict[str, Any]]:
            return (await self._ask("browsingContext.locateNodes", context=self._context, locator=locator))["nodes"]

        return (await until(nodes, seconds=_SECONDS))[0]["sharedId"]

    async def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            told = json.loads(await self._socket.recv())
            if told.get("method") == "log.entryAdded":
                entry = told["params"]
                # Firefox tells of its own, such as settings that it cannot fetch, without a page's context.
                if entry["level"] == "error" and entry["source"].get("context"):
                    self.problems.append(entry["text"])
            elif told.get("id") == number:
                if told["type"] != "success":
                    raise Failed(told)
                return told["result"]
