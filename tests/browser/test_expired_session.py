"""What is typed when a token expires: it waits for its user, and another one sees and sends nothing of it."""

import re
import time
from collections.abc import Callable

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage
from tests.browser.task_list import TaskApi
from tests.browser.test_sign_in import sign_in
from tests.scripted_model import ScriptedModel
from tests.support.fixtures import NewUser
from tests.support.script import add_tasks, delete_tasks, says
from tests.support.users import User

pytestmark = [pytest.mark.long(seconds=40), pytest.mark.asyncio(loop_scope="session")]

Fields = dict[str, tuple[Callable[[Page], Locator], str]]
"""How each field is found, and what is typed in it."""
LIST: Fields = {
    "new task": (task_list.adding, "secret plan tomorrow at 9"),
    "title": (lambda page: page.get_by_role("textbox", name="Title"), "secret milk, two"),
    "description": (lambda page: page.get_by_role("textbox", name="Description"), "secret litres"),
    "date": (lambda page: page.get_by_label("Date", exact=True), "2026-12-24"),
    "labels": (lambda page: page.get_by_role("textbox", name="Labels"), "secret-label"),
}
CONVERSATIONS: dict[str, Fields] = {
    "add them": {"reason": (lambda page: page.get_by_label("Reason (optional)"), "secret reason")},
    "good morning": {
        "message": (lambda page: page.get_by_role("textbox", name="Message", exact=True), "secret message"),
        "edited message": (lambda page: page.get_by_role("textbox", name="Your message"), "secret edit"),
    },
}
"""What is typed in each conversation, by its title."""
MEMORY = "secret habits"
SHOWN = """() => [document.title, location.href, document.body.innerText]
    .concat([...document.querySelectorAll("input, textarea")].map(({ value }) => value)).join(" ")"""
ACCEPTED_SECONDS = 1  # and then some, as clocks differ


def search(page: Page) -> Locator:
    return page.get_by_role("searchbox", name="Search tasks")


async def let_session_expire(page: Page, user: User) -> None:
    """Gives the open page a session that ends soon, and waits until it has noticed the end."""
    token = user.mint_token(exp=int(time.time()) + ACCEPTED_SECONDS)
    response = await page.context.request.post("/session", headers={"Authorization": f"Bearer {token}"})
    assert response.ok, await response.text()
    await expect(page.get_by_label("Token")).to_be_visible()


async def open_memory(page: Page) -> Locator:
    await screen.from_menu(page, "Memory")
    field = page.get_by_role("textbox", name="Memory")
    await expect(field).to_be_enabled()
    return field


async def write(page: Page, fields: Fields) -> None:
    for find, text in fields.values():
        await find(page).fill(text)


async def expect_typed(page: Page) -> None:
    for title, fields in CONVERSATIONS.items():
        await screen.open_history(page)
        await screen.button(screen.history(page), title).click()
        for find, text in [*LIST.values(), *fields.values()]:
            await expect(find(page)).to_have_value(text)
    await expect(await open_memory(page)).to_have_value(MEMORY)
    await page.keyboard.press("Escape")


async def test_what_was_typed_when_a_token_expired_waits_for_its_user(
    open_page: OpenPage, user: User, new_user: NewUser, tasks: TaskApi, model: ScriptedModel
) -> None:
    other = new_user()
    await tasks.add("secret milk", due="today")
    await model.script(add_tasks(12), says("Fine."), delete_tasks(*range(2, 14)), says("Hello."))
    page = await open_page(viewport={"width": 1440, "height": 900})
    await screen.say(page, "add them")
    await screen.send(page, "delete all")
    await expect(page.get_by_label("Reason (optional)")).to_be_visible()
    before = await tasks.view()
    await write(page, CONVERSATIONS["add them"])
    await screen.button(page, "New conversation").click()
    await screen.say(page, "good morning")
    await screen.button(page, "Edit").click()
    await write(page, CONVERSATIONS["good morning"])
    await search(page).fill("secret")
    await task_list.title_of(page, "secret milk").click()
    await write(page, LIST)
    await (await open_memory(page)).fill(MEMORY)
    await page.keyboard.press("Escape")

    await let_session_expire(page, user)
    assert "secret" not in await page.locator("body").inner_text()
    await page.reload()
    await sign_in(page, user.token)
    await expect_typed(page)
    await expect(search(page)).to_have_value("secret")
    assert await tasks.view() == before

    await let_session_expire(page, user)
    await page.reload()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(f"{request.url} {request.post_data}"))
    await sign_in(page, other.token)
    await task_list.loaded(page)
    await expect(screen.message_box(page)).to_be_editable()
    await expect(await open_memory(page)).to_have_value("")
    assert "secret" not in await page.evaluate(SHOWN)
    await page.keyboard.press("Escape")
    await screen.say(page, "hello")
    await let_session_expire(page, other)
    await page.reload()
    assert [one for one in sent if "secret" in one] == []
    assert await TaskApi(other).titles("all") == []
    assert (await other.runs.memory())["text"] == ""

    await sign_in(page, user.token)
    await expect_typed(page)
    assert await tasks.view() == before
    assert (await user.runs.memory())["text"] == ""


async def test_dialogs_of_an_open_tab_change_nothing_of_another_user(
    open_page: OpenPage, user: User, new_user: NewUser
) -> None:
    """The other one signs in in a second tab, with the same cookie."""
    other = new_user()
    for save in ("Save", "Create a link"):
        page = await open_page(viewport={"width": 1440, "height": 900})
        await expect(screen.message_box(page)).to_be_editable()
        if save == "Save":
            await (await open_memory(page)).fill(MEMORY)
        else:
            await screen.from_menu(page, "Calendar")
            await expect(page.get_by_text("You have no calendar link yet.")).to_be_visible()
        # Any other request could notice it first.
        await page.route(re.compile(r"^\w+://[^/]+/(?!assets/|memory$|calendar$)"), lambda route: None)
        response = await page.context.request.post("/session", headers={"Authorization": f"Bearer {other.token}"})
        assert response.ok
        await screen.button(page, save).click()
        await expect(page.get_by_label("Token")).to_be_visible()
        await page.unroute_all(behavior="ignoreErrors")
    assert (await other.runs.memory())["text"] == ""
    assert (await user.runs.memory())["text"] == ""
    assert (await other.runs.http.get("/calendar")).json()["active"] is False


@pytest.mark.parametrize(("path", "field"), [("tasks", task_list.adding), ("chatkit", screen.message_box)])
async def test_open_tab_sends_nothing_of_its_user_for_another_one(
    open_page: OpenPage, new_user: NewUser, model: ScriptedModel, path: str, field: Callable[[Page], Locator]
) -> None:
    other = new_user()
    page = await open_page(viewport={"width": 1440, "height": 900})
    await expect(screen.message_box(page)).to_be_editable()
    # Any other request could notice it first.
    await page.route(re.compile(rf"^\w+://[^/]+/(?!assets/|{path}$)"), lambda route: None)
    response = await page.context.request.post("/session", headers={"Authorization": f"Bearer {other.token}"})
    assert response.ok
    async with page.expect_response(re.compile(rf"/{path}$")) as sent:
        await field(page).fill("secret")
        await field(page).press("Enter")
    assert (await sent.value).status == 401
    assert await TaskApi(other).titles("all") == []
    assert await model.requests() == []


async def test_file_of_an_open_tab_reaches_no_other_user(open_page: OpenPage, new_user: NewUser) -> None:
    other = new_user()
    page = await open_page(viewport={"width": 1440, "height": 900})
    await screen.say(page, "add milk")
    await page.route(re.compile(r"^\w+://[^/]+/(?!assets/|chats/[^/]+/files/)"), lambda route: None)
    response = await page.context.request.post("/session", headers={"Authorization": f"Bearer {other.token}"})
    assert response.ok
    async with page.expect_response(re.compile("/files/secret.txt$")) as sent:
        await page.locator("input[type=file]").set_input_files(
            {"name": "secret.txt", "mimeType": "text/plain", "buffer": b"secret"}
        )
    assert (await sent.value).status == 401


async def test_sign_out_in_an_open_tab_does_not_sign_out_another_user(open_page: OpenPage, new_user: NewUser) -> None:
    """Nor does it remove what the browser stores for the other one."""
    other = new_user()
    page = await open_page(viewport={"width": 1440, "height": 900})
    await expect(screen.message_box(page)).to_be_editable()
    await screen.open_menu(page)
    # Any other request could notice it first.
    await page.route(re.compile(r"^\w+://[^/]+/(?!assets/|session$)"), lambda route: None)
    await page.context.clear_cookies()
    tab = await page.context.new_page()
    await tab.goto("/")
    await sign_in(tab, other.token)
    await expect(screen.message_box(tab)).to_be_editable()
    async with page.expect_response(re.compile("/session$")) as sent:
        await screen.button(page.get_by_role("dialog", name="Menu"), "Sign out").click()
    assert (await sent.value).status == 401
    await expect(page.get_by_label("Token")).to_be_visible()
    await screen.say(tab, "add milk")
    assert await TaskApi(other).titles("all") == ["milk"]
