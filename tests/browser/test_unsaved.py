"""The browser's store of what is not saved: by user and by tab, over reloads and closed tabs."""

from typing import Any

import pytest
from playwright.async_api import Dialog, Page, expect

from tests import waiting
from tests.browser import task_list
from tests.browser.conftest import OpenPage

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

OPEN = """async (user) => {
    await globalThis.unsaved?.close();
    globalThis.unsaved = await (await import("/assets/0/unsaved.js")).Unsaved.open(user);
}"""
SET = "([key, value]) => unsaved.set(key, value)"
GET = "(key) => unsaved.get(key) ?? null"
FLUSH = "() => unsaved.flush()"
ROWS = "(prefix) => unsaved.rows(prefix).map(({ key }) => key)"
OPEN_NEWER = """() => new Promise((resolve) => {
    indexedDB.open("todo", 99).onsuccess = ({ target: { result: database } }) => {
        database.close();
        resolve(null);
    };
})"""
"""As a page of a later release does."""
WITHOUT_DATABASE = {
    "blocked": "indexedDB.open = () => { throw new DOMException('not here', 'SecurityError'); };",
    "does not answer": "indexedDB.open = () => ({});",
    "cannot be opened": """indexedDB.open = () => {
        const request = { readyState: "done", error: new DOMException('broken', 'UnknownError') };
        queueMicrotask(() => request.onerror());
        return request;
    };""",
}
KEEP_DATABASE = """() => new Promise((resolve) => {
    const request = indexedDB.open("todo", 2);
    request.onupgradeneeded = () => {
        const { transaction } = request;
        const store = transaction.objectStore("unsaved");
        const goOn = () => (globalThis.giveBack ? transaction.abort() : (store.count().onsuccess = goOn));
        goOn();
        resolve(null);
    };
    request.onerror = (event) => event.preventDefault();
})"""
"""Begins an upgrade, as a page of a later release does, and ends it without a change once `giveBack` is set."""
CHANGE_ROWS = """([user, tab]) => new Promise((resolve) => {
    indexedDB.open("todo").onsuccess = ({ target: { result: database } }) => {
        const transaction = database.transaction("unsaved", "readwrite");
        const store = transaction.objectStore("unsaved");
        store.delete([user, tab, "message/1"]);
        store.put({ user, tab, key: "draft/1", value: "typed on the next page", at: Date.now() });
        transaction.oncomplete = () => { database.close(); resolve(null); };
    };
})"""
"""What the next page of a tab does while this one sleeps."""
BE_BUSY = "(ms) => void setTimeout(() => { for (const end = Date.now() + ms; Date.now() < end; ); })"


async def open_store(page: Page, user: str = "anna") -> Page:
    await page.evaluate(OPEN, user)
    return page


async def store(page: Page, key: str, value: Any) -> None:
    await page.evaluate(SET, [key, value])
    await page.evaluate(FLUSH)


async def read(page: Page, key: str) -> Any:
    return await page.evaluate(GET, key)


async def until_read(page: Page, key: str, value: Any) -> None:
    async def is_there() -> bool:
        return await read(page, key) == value

    await waiting.until(is_there)


async def test_row_survives_a_reload_and_is_nobody_elses(open_page: OpenPage) -> None:
    page = await open_store(await open_page())
    await store(page, "draft/1", {"text": "buy milk"})
    await page.reload()
    assert await read(await open_store(page), "draft/1") == {"text": "buy milk"}
    assert await read(await open_store(page, "berta"), "draft/1") is None
    await page.evaluate("() => unsaved.discard()")
    assert await read(await open_store(page), "draft/1") == {"text": "buy milk"}
    await page.evaluate("() => unsaved.discard()")
    assert await read(await open_store(page), "draft/1") is None


async def test_row_is_stored_when_the_page_is_left_at_once(open_page: OpenPage) -> None:
    page = await open_store(await open_page())
    await page.evaluate("() => { window.setTimeout = () => 0; unsaved.set('draft/1', 'the last key'); }")
    await page.reload()
    assert await read(await open_store(page), "draft/1") == "the last key"


async def test_row_belongs_to_its_installation(open_page: OpenPage) -> None:
    """Others may be below other paths of the host."""
    page = await open_store(await open_page())
    await store(page, "draft/1", "buy milk")
    await page.evaluate("() => void (document.querySelector('base').href = '/other/')")
    assert await read(await open_store(page), "draft/1") is None
    await page.evaluate("() => unsaved.discard()")
    await page.reload()
    assert await read(await open_store(page), "draft/1") == "buy milk"


async def test_row_belongs_to_its_tab_until_it_is_closed(open_page: OpenPage) -> None:
    first = await open_store(await open_page())
    second = await first.context.new_page()
    await second.goto(first.url)
    await store(first, "draft/1", "from the first tab")
    await open_store(second)
    await store(second, "draft/1", "from the second tab")
    await store(second, "draft/2", "another one")
    await second.wait_for_timeout(500)  # an open tab answers in time
    assert await read(first, "draft/2") is None
    await second.close()
    third = await first.context.new_page()
    await third.goto(first.url)
    await open_store(third)
    await until_read(third, "draft/2", "another one")
    assert await read(third, "draft/1") == "from the second tab"
    assert await read(first, "draft/1") == "from the first tab"


async def duplicate(first: Page) -> tuple[Page, str]:
    """Opens a tab with what is stored for another one, as a browser duplicates it; returns the id of both, too."""
    tab = await first.evaluate("() => sessionStorage['todo.tab']")
    second = await first.context.new_page()
    await second.goto(first.url)
    await second.evaluate("(tab) => sessionStorage.setItem('todo.tab', tab)", tab)
    return second, tab


async def test_duplicated_tab_has_rows_of_its_own(open_page: OpenPage) -> None:
    first = await open_store(await open_page())
    await store(first, "draft/1", "typed once")
    second, tab = await duplicate(first)
    await open_store(second)
    await until_read(second, "draft/1", None)
    assert await second.evaluate("() => sessionStorage['todo.tab']") != tab
    assert await read(first, "draft/1") == "typed once"


async def test_text_in_a_duplicated_tab_is_kept_if_the_other_one_answers_late(open_page: OpenPage) -> None:
    first = await open_store(await open_page())
    await store(first, "draft/1", "typed once")
    second, tab = await duplicate(first)
    await first.evaluate(BE_BUSY, 1500)
    await open_store(second)
    await store(second, "draft/1", "typed here")
    await store(second, "draft/2", "only here")
    await waiting.until(lambda: second.evaluate("(tab) => sessionStorage['todo.tab'] !== tab", tab))
    assert await read(second, "draft/1") == "typed here"
    assert await read(second, "draft/2") == "only here"
    await waiting.until(lambda: first.evaluate("async () => (await unsaved.all()).length === 3"))
    await first.reload()
    await open_store(first)
    assert await read(first, "draft/1") == "typed once"
    assert await read(first, "draft/2") is None


async def test_rows_are_stored_in_the_database_of_a_later_release(open_page: OpenPage) -> None:
    page = await open_store(await open_page())
    await store(page, "draft/1", "before")
    await page.evaluate(OPEN_NEWER)  # which closes the connection
    await store(page, "draft/2", "after")
    await page.reload()
    await open_store(page)
    assert await read(page, "draft/1") == "before"
    assert await read(page, "draft/2") == "after"
    assert len(await page.evaluate("() => unsaved.all()")) == 2
    await page.evaluate(OPEN_NEWER)
    await page.evaluate("() => unsaved.discard()")
    assert await read(await open_store(page), "draft/1") is None


async def test_full_disk_is_tried_again_and_asks_before_the_page_is_left(open_page: OpenPage) -> None:
    page = await open_store(await open_page(signed_in=False))  # Chromium notices the quota only some time after a write
    debugger = await page.context.new_cdp_session(page)
    quota = {"origin": await page.evaluate("origin")}
    await debugger.send("Storage.overrideQuotaForOrigin", {**quota, "quotaSize": 1})
    await store(page, "draft/1", "a" * 100_000)
    assert await read(page, "draft/1") == "a" * 100_000
    asked: list[str] = []

    async def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        await dialog.dismiss()

    page.on("dialog", stay)
    await page.mouse.click(1, 1)  # browsers ask only in a page that was used
    await page.evaluate("() => void location.reload()")
    await waiting.until(lambda: asked)
    assert asked == ["beforeunload"]
    assert await read(page, "draft/1") == "a" * 100_000
    await debugger.send("Storage.overrideQuotaForOrigin", quota)
    await store(page, "draft/2", "there is space again")
    await page.reload()
    assert asked == ["beforeunload"]
    await open_store(page)
    assert await read(page, "draft/1") == "a" * 100_000
    assert await read(page, "draft/2") == "there is space again"


async def test_text_is_read_once_a_late_database_answers(open_page: OpenPage) -> None:
    page = await open_page(pane="tasks")
    await task_list.loaded(page)
    await task_list.adding(page).fill("call mum")
    await page.reload()
    await expect(task_list.adding(page)).to_have_value("call mum")
    other = await page.context.new_page()
    await other.goto("/health")
    await other.evaluate(KEEP_DATABASE)
    await page.reload()
    await expect(task_list.adding(page)).to_have_value("")
    await page.wait_for_timeout(3500)  # longer than the page waits for it
    await other.evaluate("() => void (globalThis.giveBack = true)")
    await expect(task_list.adding(page)).to_have_value("call mum")
    await task_list.adding(page).fill("call dad")
    await page.reload()
    await expect(task_list.adding(page)).to_have_value("call dad")


@pytest.mark.parametrize("way", WITHOUT_DATABASE)
async def test_page_works_without_a_database(open_page: OpenPage, way: str) -> None:
    page = await open_page(pane="tasks", prepare=lambda page: page.add_init_script(WITHOUT_DATABASE[way]))
    await task_list.loaded(page)
    await task_list.adding(page).fill("buy milk")
    await task_list.adding(page).press("Enter")
    await task_list.adding(page).fill("not added yet")
    await task_list.see(page, "All")
    await expect(task_list.titles(page)).to_have_text(["buy milk"])
    await expect(task_list.rows(page).get_by_role("img", name="Not saved yet")).to_have_count(0)
    await expect(task_list.adding(page)).to_have_value("not added yet")


async def test_rows_stay_in_order_if_the_clock_is_set_back(open_page: OpenPage) -> None:
    page = await open_store(await open_page())
    await store(page, "message/b", "first")
    await page.evaluate("() => { const { now } = Date; Date.now = () => now() - 3_600_000; }")
    await store(page, "message/a", "second")
    await page.reload()
    await open_store(page)
    assert await page.evaluate(ROWS, "message/") == ["message/b", "message/a"]


async def test_page_that_comes_back_reads_what_another_one_has_done(open_page: OpenPage) -> None:
    page = await open_store(await open_page())
    await store(page, "message/1", "sent by the next page")
    await store(page, "draft/1", "typed on")
    tab = await page.evaluate("() => sessionStorage['todo.tab']")
    await page.evaluate(CHANGE_ROWS, ["anna", tab])
    await page.evaluate("() => void dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    await until_read(page, "message/1", None)
    assert await read(page, "draft/1") == "typed on the next page"
