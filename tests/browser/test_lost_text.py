"""Nothing typed is lost or lands elsewhere: a browser, tab or server is killed at random points of a script of keys.

A point is a seed. It chooses what is typed in which order, whether the server can be reached, what an agent does to the
open task meanwhile, after which key the kill comes, and what is killed. Then the page is opened again, and everything
typed up to `LOST_SECONDS` before the kill has to be in its field or on the server, once.
"""

import asyncio
import contextlib
import os
import signal
import time
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Error, Locator, Page, Playwright, Route, async_playwright

from tests.browser import screen, task_list
from tests.browser.conftest import clock_from_now
from tests.browser.draw_icons import chromium
from tests.browser.task_list import TaskApi
from tests.scripted_model import ScriptedModel
from tests.support.fixtures import NewUser
from tests.support.script import start_coder
from tests.support.stack import Stack
from tests.support.users import User
from tests.waiting import until

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

LOST_SECONDS = 0.5
"""What was typed in the last moments before a kill may be lost, but nothing by a reload: a busy machine takes longer to
store it than the usual 0.1 s.
"""
ANSWER_LATE = """{
    const { setTimeout } = globalThis;
    globalThis.setTimeout = (work, pause, ...more) => setTimeout(work, pause === 250 ? 2000 : pause, ...more);
}"""
"""An open tab of a busy machine may take longer than 250 ms to say that it is open."""
POINT_SECONDS = 300
"""What takes longer hangs."""
LONGEST = 210
"""Keys of a script; some points come after its end."""
SECOND_TEXT = "of the second tab"
TOMORROW = " tomorrow"
OPEN, NEIGHBOUR, TICKED = "open task", "neighbour", "ticked task"
Kill = Callable[["Session"], Awaitable[None]]


class Typed:
    """What a field had at which time."""

    def __init__(self, text: str) -> None:
        self.history: list[tuple[float, str]] = [(0, text)]

    @property
    def text(self) -> str:
        return self.history[-1][1]

    def had(self, text: str) -> None:
        self.history.append((time.monotonic(), text))

    def since(self, when: float) -> list[str]:
        """The texts of which one has to be there if what was typed until then is stored, the oldest first."""
        stored = max(index for index, (at, _) in enumerate(self.history) if at <= when)
        return [text for _, text in self.history[stored:]]

    def is_touched(self, when: float) -> bool:
        """Whether something has to be there that was not there before."""
        return self.since(when)[0].strip() != self.history[0][1].strip()


@dataclass(frozen=True)
class Submitted:
    """A task that was added by the keyboard."""

    at: float
    text: str
    title: str


@dataclass
class Session:
    """A browser with a profile of its own, its tabs, and what was typed in them."""

    profile: Path
    context: BrowserContext
    page: Page
    second: Page
    tasks: TaskApi
    stack: Stack
    path: str
    """The address of the conversation."""
    fields: dict[str, Typed] = field(default_factory=dict)
    submitted: list[Submitted] = field(default_factory=list)
    ticked_at: float | None = None
    second_at: float = 0.0
    """When a text was typed in the second tab."""
    keys_left: int = 0
    stored_until: float = 0.0
    """What was typed until then has to be there."""


class Killed(Exception):
    """The point of the kill is reached."""


async def show_memory(page: Page) -> None:
    await screen.from_menu(page, "Memory")
    await until(memory(page).is_enabled)


async def hide_memory(page: Page) -> None:
    await page.keyboard.press("Escape")
    await page.get_by_role("dialog", name="Memory").wait_for(state="detached")


def memory(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Memory")


@dataclass(frozen=True)
class Field:
    """How a field is found in a page, the keys that are typed, and how what contains it is opened and closed."""

    find: Callable[[Page], Locator]
    keys: str = "abcdefghijklm"
    show: Callable[[Page], Awaitable[None]] | None = None
    hide: Callable[[Page], Awaitable[None]] | None = None
    needs_server: bool = False
    """Whether it can only be opened with a connection."""


def in_editor(label: str, keys: str = Field.keys) -> Field:
    """Describes an input of the open task, the first of its user."""
    return Field(lambda page: page.locator("[data-row='1'] .task-form").get_by_label(label, exact=True), keys)


FIELDS = {
    "title": in_editor("Title"),
    "description": in_editor("Description"),
    "date": in_editor("Date", "12262026"),
    "repeat": in_editor("Repeat"),
    "labels": in_editor("Labels"),
    "quick add": Field(task_list.adding, f"abcdefg{TOMORROW}"),
    "message": Field(screen.message_box),
    "edited message": Field(
        lambda page: page.get_by_role("textbox", name="Your message"),
        show=lambda page: screen.button(page, "Edit").click(),
    ),
    "reason": Field(lambda page: page.get_by_label("Reason (optional)")),
    "memory": Field(memory, show=show_memory, hide=hide_memory, needs_server=True),
}
"""Every field of the script, by its name."""
BY_AGENT = {"title": "changed by an agent", "date": "2026-12-24"}
"""What is in a field of the open task in which nothing was typed, once an agent has changed it."""


def processes_of(profile: Path) -> list[int]:
    """The processes of a browser, which name its profile."""
    marked = f"--user-data-dir={profile}".encode()
    found: list[int] = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            if process.name.isdigit() and marked in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


async def kill_browser(session: Session) -> None:
    for process in processes_of(session.profile):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


async def crash_tab(session: Session) -> None:
    """Ends the process of the tab as a crash does, without any event in the page."""
    debugger = await session.context.new_cdp_session(session.page)
    crash = asyncio.create_task(debugger.send("Page.crash"))
    await asyncio.wait([crash], timeout=2)
    crash.cancel()


async def reload(session: Session) -> None:
    with contextlib.suppress(Exception):  # it may be offline
        await session.page.reload(timeout=2000)


async def kill_server(session: Session) -> None:
    session.stack.backends[0].end(signal.SIGKILL)
    await crash_tab(session)


KILLS: tuple[Kill, ...] = (kill_browser, crash_tab, reload)


@asynccontextmanager
async def open_browser(
    playwright: Playwright, stack: Stack, profile: Path, cookies: Sequence[Any]
) -> AsyncIterator[BrowserContext]:
    """Opens a browser in a session: a killed one may not have stored its cookies yet."""
    context = await playwright.chromium.launch_persistent_context(
        profile,
        executable_path=chromium(),
        args=["--no-sandbox"],
        base_url=stack.url,
        timezone_id=task_list.ZONE,
        locale="en-US",  # of the date's keys
    )
    try:
        await context.add_init_script(clock_from_now())
        await context.add_init_script(ANSWER_LATE)
        await context.add_cookies(cookies)
        yield context
    finally:
        with contextlib.suppress(Exception):  # it may be killed
            await context.close()


async def sign_in_once(playwright: Playwright, stack: Stack, user: User) -> list[Any]:
    """Returns the cookie of a session, in which the user stays after a kill."""
    requests = await playwright.request.new_context(base_url=stack.url)
    response = await requests.post("/session", headers={"Authorization": f"Bearer {user.token}"})
    assert response.ok, await response.text()
    name, _, value = response.headers["set-cookie"].partition(";")[0].partition("=")
    await requests.dispose()
    return [{"name": name, "value": value, "url": stack.url, "httpOnly": True, "sameSite": "Strict"}]


async def open_page(context: BrowserContext, path: str = "/") -> Page:
    page = await context.new_page()
    await page.goto(path)
    await task_list.loaded(page)
    await screen.message_box(page).wait_for()
    return page


async def type_keys(session: Session, name: str, text: str) -> None:
    """Types after what is in the field, key by key, and notes when."""
    page, described = session.page, FIELDS[name]
    if described.show:
        await described.show(page)
    box = described.find(page)
    await box.focus()
    is_date = await box.get_attribute("type") == "date"
    if not is_date:
        await page.keyboard.press("ControlOrMeta+End")
    typed = session.fields[name] = Typed(await box.input_value())
    for key in text:
        await page.keyboard.type(key)
        typed.had(await box.input_value() if is_date else typed.text + key)
        count_down(session)
    if described.hide:
        await described.hide(page)


def count_down(session: Session) -> None:
    session.keys_left -= 1
    if session.keys_left <= 0:
        raise Killed


async def lose_responses(session: Session) -> None:
    """The server does what it is asked, and dies before it answers."""

    async def lose(route: Route) -> None:
        with contextlib.suppress(Exception):  # the page may be gone
            if route.request.method != "GET":
                await route.fetch()
            await route.abort()

    await session.page.route(task_list.API, lose)


async def disturb(session: Session, random: Random) -> None:
    """Changes the open task as an agent does."""
    changes: list[Callable[[], Awaitable[None]]] = [
        lambda: session.tasks.change(1, title=BY_AGENT["title"]),
        lambda: session.tasks.change(1, status="completed"),
        lambda: session.tasks.change(1, due=BY_AGENT["date"], priority="high"),
        lambda: session.tasks.delete(1),
    ]
    await random.choice(changes)()


async def play(session: Session, random: Random, seed: int, network: str) -> None:
    """Visits the fields in a random order; ends with `Killed`."""
    page = session.page
    await task_list.title_of(page, OPEN).click()
    await page.get_by_role("textbox", name="Title").wait_for()
    cut, disturbed = random.randrange(len(FIELDS) // 2), random.randrange(1, len(FIELDS) // 2)
    for turn, name in enumerate(random.sample(list(FIELDS), len(FIELDS))):
        if turn == cut and network == "offline":
            await session.context.set_offline(True)
        elif turn == cut and network == "loses responses":
            await lose_responses(session)
        if FIELDS[name].needs_server and turn >= cut and network == "offline":
            continue
        keys = FIELDS[name].keys
        await type_keys(session, name, keys if keys.isdigit() else f" {name.split()[0]}{seed}{keys}")
        if turn == disturbed:
            await disturb(session, random)
        if name == "quick add" and random.random() < 0.8:
            await page.keyboard.press("Enter")
            text = session.fields.pop(name).text.strip()
            session.submitted.append(Submitted(time.monotonic(), text, text.removesuffix(TOMORROW)))
            count_down(session)
    await task_list.tick(page, TICKED).click()
    session.ticked_at = time.monotonic()
    await asyncio.sleep(random.random() / 2)


async def values_of(name: str, page: Page) -> list[str]:
    """What a field has in a page, if it is there."""
    described = FIELDS[name]
    if described.hide and described.show:  # it is closed again
        await described.show(page)
    box = described.find(page)
    values = [await box.input_value()] if await box.count() else []
    if described.hide:
        await described.hide(page)
    return values


async def check_fields(session: Session, pages: list[Page], when: float) -> None:
    """Everything that was typed is in its field, but for the last moments, and nothing else."""
    for name, typed in session.fields.items():
        values: list[str] = []

        async def is_there(name: str = name, typed: Typed = typed, values: list[str] = values) -> bool:
            values[:] = [value for page in pages for value in await values_of(name, page)]
            expected = typed.since(when)
            if typed.is_touched(when):
                return any(value in expected for value in values)
            return not values or any(value in (*expected, BY_AGENT.get(name)) for value in values)

        try:
            await until(is_there, seconds=60)
        except Exception as error:
            message = f"{name}: typed {typed.text!r}, stored by then {typed.since(when)[0]!r}, there is {values}"
            raise AssertionError(message) from error


async def check_tasks(session: Session, unsent: list[str], when: float) -> None:
    """What was submitted is there once, and no other task has changed."""

    async def tasks() -> list[task_list.Json]:
        return [*await session.tasks.view("all"), *await session.tasks.view("done")]

    for submitted in session.submitted:

        async def is_there(submitted: Submitted = submitted) -> bool:
            late = submitted.at > when
            may_be_a_draft = late and any(value and submitted.text.startswith(value.strip()) for value in unsent)
            return may_be_a_draft or submitted.title in [task["title"] for task in await tasks()]

        await until(is_there, seconds=60)
    ticked = session.ticked_at is not None and session.ticked_at <= when
    if ticked:

        async def is_done() -> bool:
            return TICKED in await session.tasks.titles("done")

        await until(is_done, seconds=60)
    await asyncio.sleep(0.5)  # a second one would come late
    there = await tasks()
    titles = [task["title"] for task in there]
    added = {submitted.title for submitted in session.submitted}
    assert all(titles.count(title) <= 1 for title in added), titles
    assert {task["due"] for task in there if task["title"] in added} <= {str(task_list.today(1))}
    neighbour = await session.tasks.task(NEIGHBOUR)
    assert (neighbour["description"], neighbour["labels"], neighbour["priority"]) == ("", [], None)
    assert (neighbour["due"], neighbour["repeat"], neighbour["status"]) == (str(task_list.today()), None, "pending")
    assert set(titles) <= {OPEN, NEIGHBOUR, TICKED, "changed by an agent", *added}, titles


async def begin_conversation(page: Page, model: ScriptedModel) -> str:
    """Begins a conversation with a message and a card that waits for a decision; returns its address."""
    await model.script(start_coder("a file"))
    await screen.send(page, "write a file")
    await FIELDS["reason"].find(page).wait_for()
    path = urllib.parse.urlparse(page.url).path
    assert path.startswith("/c/"), path
    return path


async def run_point(
    playwright: Playwright, stack: Stack, model: ScriptedModel, profile: Path, user: User, seed: int
) -> None:
    random = Random(seed)
    tasks = TaskApi(user)
    for name in (OPEN, NEIGHBOUR, TICKED):
        await tasks.add(name, due="today")
    kill = kill_server if seed % 10 == 9 else random.choice(KILLS)
    network = "loses responses" if kill is kill_server else random.choice(["offline", "loses responses", "works"])
    cookies = await sign_in_once(playwright, stack, user)
    async with open_browser(playwright, stack, profile, cookies) as context:
        page = await open_page(context)
        path = await begin_conversation(page, model)
        session = Session(profile, context, page, await open_page(context, path), tasks, stack, path)
        await task_list.adding(session.second).fill(SECOND_TEXT)
        session.second_at = time.monotonic()
        session.keys_left = random.randrange(5, LONGEST)
        with contextlib.suppress(Killed):
            await play(session, random, seed, network)
        session.stored_until = time.monotonic() - (0 if kill is reload else LOST_SECONDS)
        await kill(session)
        stack.ensure_running()
        if kill is reload:
            await session.page.unroute_all()
            await context.set_offline(False)
            await session.page.goto(path)
            await check_after(session, [session.page, session.second])
        elif kill is not kill_browser:
            with contextlib.suppress(TimeoutError):  # a tab that has crashed may never say that it is closed
                await asyncio.wait_for(session.page.close(), 5)
            await context.set_offline(False)
            await check_after(session, [await open_page(context, path), session.second])
    if kill is kill_browser:
        async with open_browser(playwright, stack, profile, cookies) as context:
            first = await open_page(context, path)
            await first.wait_for_timeout(3000)  # it takes over what the killed tabs had
            await check_after(session, [first, await open_page(context, path)])


async def check_after(session: Session, pages: list[Page]) -> None:
    when = session.stored_until
    await check_fields(session, pages, when)
    values: list[str] = []

    async def second_is_there() -> bool:
        values[:] = [await task_list.adding(page).input_value() for page in pages]
        may_be_lost = session.second_at > when
        return values.count(SECOND_TEXT) == 1 or (may_be_lost and SECOND_TEXT not in values)

    try:
        await until(second_is_there, seconds=60)  # a page takes over what closed tabs had shortly after it is opened
    except AssertionError as error:
        raise AssertionError(f"quick add of both tabs: {values}") from error
    await check_tasks(session, values, when)


async def run_points(stack: Stack, new_user: NewUser, model: ScriptedModel, folder: Path, seeds: range) -> None:
    failed: list[str] = []
    async with async_playwright() as playwright:
        for seed in seeds:
            try:
                async with asyncio.timeout(POINT_SECONDS):
                    await run_point(playwright, stack, model, folder / str(seed), new_user(), seed)
            except (AssertionError, Error, TimeoutError) as error:
                failed.append(f"point {seed}: {error}")
    assert failed == []


@pytest.mark.long(seconds=30)
async def test_nothing_typed_is_lost_at_some_points(
    stack: Stack, new_user: NewUser, model: ScriptedModel, tmp_path: Path
) -> None:
    await run_points(stack, new_user, model, tmp_path, range(3))


@pytest.mark.extended
@pytest.mark.parametrize("first", range(0, 60, 10))
async def test_nothing_typed_is_lost_at_60_points(
    stack: Stack, new_user: NewUser, model: ScriptedModel, tmp_path: Path, first: int
) -> None:
    await run_points(stack, new_user, model, tmp_path, range(first, first + 10))
