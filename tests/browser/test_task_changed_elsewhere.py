"""A task in the editor that another program changes: it stays where it is, and no key acts on another task."""

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage, Violations
from tests.browser.task_list import TaskApi, today
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

IS_COVERED = """(one) => {
    const { x, y, width, height } = one.getBoundingClientRect();
    return !one.contains(document.elementFromPoint(x + width / 2, y + height / 2));
}"""


def form(page: Page) -> Locator:
    return task_list.region(page).locator(".task-form")


def title(page: Page) -> Locator:
    return form(page).get_by_role("textbox", name="Title")


async def remember(field: Locator) -> None:
    await field.evaluate("field => { field.isTheSame = true; }")


async def test_edited_task_stays_whatever_happens_to_it(open_list: OpenPage, tasks: TaskApi) -> None:
    for name in ("call mum", "milk", "bread", "tea"):
        await tasks.add(name, due="today")
    page = await open_list()
    await task_list.title_of(page, "milk").click()
    await title(page).press("End")
    await remember(title(page))
    place = await title(page).bounding_box()
    typed = "milk"

    async def type_on(text: str) -> None:
        nonlocal typed
        typed += text
        await page.keyboard.type(text)
        await expect(title(page)).to_have_value(typed)
        await expect(title(page)).to_be_focused()
        assert await title(page).evaluate("field => field.isTheSame"), "the field was drawn anew"
        assert await title(page).bounding_box() == place

    await tasks.change(2, status="completed")
    await expect(task_list.rows(page).get_by_role("checkbox", checked=True)).to_have_count(1)
    await type_on("xd1")
    await tasks.change(2, status="pending")
    await tasks.change(2, due=str(today(4)))
    await expect(form(page).get_by_label("Date")).to_have_value(str(today(4)))
    await type_on("dx")
    await tasks.delete(3)
    await expect(task_list.row(page, "bread")).to_have_count(0)
    await type_on("d2")
    await tasks.delete(2)
    await expect(form(page).get_by_text("This task was deleted elsewhere.")).to_be_visible()
    await page.keyboard.type("!")
    await expect(title(page)).to_have_value(typed + "!")
    await screen.button(form(page), "Restore and save").click()
    await tasks.until("upcoming", [typed + "!"])
    assert (await tasks.task(typed + "!"))["due"] == str(today(4)), "what was not typed is theirs"
    assert await tasks.titles("today") == ["call mum", "tea"]


async def test_field_that_changed_elsewhere_is_kept_or_taken(
    open_list: OpenPage, tasks: TaskApi, violations: Violations
) -> None:
    await tasks.add("milk", due="today", description="two litres")
    page = await open_list()
    await task_list.title_of(page, "milk").click()
    await title(page).fill("oat milk")
    await form(page).get_by_role("textbox", name="Description").fill("three litres")
    await tasks.change(1, title="soy milk", description="one litre", priority="high", labels=["shop"])
    await expect(form(page).get_by_text("Title: Changed elsewhere: “soy milk”")).to_be_visible()
    await expect(form(page).get_by_role("combobox", name="Priority")).to_have_value("high")
    await expect(title(page)).to_have_value("oat milk")
    assert await violations(page) == []
    await page.wait_for_timeout(250)  # it is stored
    await page.reload()
    await expect(form(page).get_by_text("Title: Changed elsewhere: “soy milk”")).to_be_visible()
    await screen.button(form(page), "Keep mine: Title").click()
    await screen.button(form(page), "Take theirs: Description").click()
    await expect(form(page).get_by_role("textbox", name="Description")).to_have_value("one litre")
    sent: list[object] = []
    page.on("request", lambda request: sent.append(request.post_data_json) if request.method == "PATCH" else None)
    await screen.button(form(page), "Save").click()
    await tasks.until("all", ["oat milk"])
    assert sent == [{"title": "oat milk"}]
    task = await tasks.task("oat milk")
    assert (task["description"], task["priority"], task["labels"]) == ("one litre", "high", ["shop"])


async def test_focus_goes_to_no_neighbour_of_a_task_that_vanishes(open_list: OpenPage, tasks: TaskApi) -> None:
    for name in ("milk", "bread", "tea"):
        await tasks.add(name, due="today")
    page = await open_list()
    await task_list.title_of(page, "milk").focus()
    await tasks.delete(1)
    await expect(task_list.titles(page)).to_have_text(["bread", "tea"])
    for key in ("Delete", "x", "Space"):
        await page.keyboard.press(key)
    await page.wait_for_timeout(300)
    assert await tasks.titles("today") == ["bread", "tea"]
    await page.keyboard.press("ArrowDown")
    await expect(task_list.title_of(page, "bread")).to_be_focused()


async def test_focus_stays_in_the_list_after_saving_a_task_that_left_it(open_list: OpenPage, tasks: TaskApi) -> None:
    for name in ("milk", "bread"):
        await tasks.add(name, due="today")
    page = await open_list()
    await task_list.title_of(page, "milk").click()
    await title(page).fill("oat milk")
    await tasks.change(1, due="tomorrow")
    await expect(form(page).get_by_label("Date", exact=True)).to_have_value(str(today(1)))
    await title(page).press("Enter")
    await expect(task_list.titles(page)).to_have_text(["bread"])
    await page.keyboard.press("Delete")
    await page.keyboard.press("ArrowDown")
    await expect(task_list.title_of(page, "bread")).to_be_focused()
    await tasks.until("upcoming", ["oat milk"])
    assert await tasks.titles("today") == ["bread"]


@pytest.mark.parametrize("width", [390, 1280])
async def test_problem_is_beside_its_field_and_save_is_reachable(
    open_list: OpenPage, tasks: TaskApi, width: int
) -> None:
    await tasks.add("milk", due="today", description="\n".join(f"line {number}" for number in range(30)))
    await tasks.add("bread", due="today")
    page = await open_list(viewport={"width": width, "height": 520})
    await task_list.tick(page, "bread").click()
    await expect(task_list.notice(page)).to_be_visible()
    await task_list.title_of(page, "milk").click()
    await title(page).fill("")
    save = screen.button(form(page), "Save")
    await expect(save).to_be_in_viewport(ratio=1)
    await form(page).get_by_role("textbox", name="Labels").focus()
    await save.click()
    problem = form(page).get_by_role("alert")
    await expect(problem).to_have_text("A task needs a title.")
    await expect(problem).to_be_in_viewport(ratio=1)
    await expect(title(page)).to_have_attribute("aria-invalid", "true")
    await expect(save).to_be_in_viewport(ratio=1)
    assert not await save.evaluate(IS_COVERED), "not by the notice either"


async def test_task_that_is_deleted_in_the_chat_can_be_discarded(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    await task_list.title_of(page, "milk").click()
    await title(page).fill("oat milk")
    await tasks.delete(1)
    await screen.button(form(page), "Discard").click()
    await expect(form(page)).to_have_count(0)
    await expect(task_list.titles(page)).to_have_count(0)
    await until(lambda: page.evaluate("document.querySelector('todo-tasks .task-form') === null"))
    assert await tasks.titles("deleted") == ["milk"]
