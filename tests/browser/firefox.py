"""Drives Firefox by WebDriver BiDi, with its pointer, finger and keyboard."""

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.waiting import until

TOUCH_SCREEN = {"dom.w3c_touch_events.enabled": 1, "ui.primaryPointerCapabilities": 1, "ui.allPointerCapabilities": 1}
"""Preferences of a browser whose only pointer is a finger."""
CONTROL = "\ue009"
ESCAPE = "\ue00c"

_LISTENING = "WebDriver BiDi listening on "
_SECONDS = 60
_ENTER = "\ue007"
_STEPS = 10  # of a drag


def program() -> str:
    found = os.environ.get("FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")
    assert found, "Firefox is needed: install it, or name it in FIREFOX."
    return found


@contextlib.asynccontextmanager
async def firefox(preferences: Mapping[str, int | str] | None = None) -> AsyncIterator["Firefox"]:
    """A window of a new user's browser."""
    with tempfile.TemporaryDirectory(prefix="firefox-") as profile:
        lines = [f'user_pref("{name}", {json.dumps(value)});' for name, value in (preferences or {}).items()]
        (Path(profile) / "user.js").write_text("\n".join(lines))
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


def _move_to(shared_id: str) -> dict[str, Any]:
    element = {"type": "element", "element": {"sharedId": shared_id}}
    return {"type": "pointerMove", "x": 0, "y": 0, "origin": element}


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
        presses = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        await self._perform({"type": "pointer", "id": "mouse", "actions": [_move_to(shared_id), *presses]})

    async def drag(self, role: str, name: str, x: int, *, pointer: str = "mouse") -> None:
        """From the middle of the element, in steps, as far to the right; `pointer` is "mouse" or "touch"."""
        begin = [_move_to(await self._find(role, name)), {"type": "pointerDown", "button": 0}]
        step = {"type": "pointerMove", "x": x // _STEPS, "y": 0, "origin": "pointer", "duration": 20}
        actions = [*begin, *[step] * _STEPS, {"type": "pointerUp", "button": 0}]
        parameters = {"pointerType": pointer}
        await self._perform({"type": "pointer", "id": pointer, "parameters": parameters, "actions": actions})

    async def write(self, text: str) -> None:
        """With the keyboard, and Enter after it."""
        await self.press(*text, _ENTER)

    async def press(self, *keys: str, holding: str | None = None) -> None:
        """Presses one key after the other, while another one is held down."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        if holding:
            actions = [{"type": "keyDown", "value": holding}, *actions, {"type": "keyUp", "value": holding}]
        await self._perform({"type": "key", "id": "keyboard", "actions": actions})

    async def resize(self, width: int, height: int) -> None:
        viewport = {"width": width, "height": height}
        await self._ask("browsingContext.setViewport", context=self._context, viewport=viewport)

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
