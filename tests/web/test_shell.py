"""What is around the list and the chat: panes and tabs, the badge, the menu with the theme, the icons."""

import struct
from collections.abc import Callable, Iterator

import pytest
from playwright.async_api import Locator, Page, expect

from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel
from tests.web import screen
from tests.web.conftest import OpenPage, Violations
from tests.web.stand_ins import READY, WIDGET, serving, with_list, with_list_and_widget

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

NAMED = "an-organisation/a-model-with-quite-a-long-name-2026-11-23"
PHONE = {"width": 390, "height": 800}
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(22, 24, 26)"


def tasks(page: Page) -> Locator:
    return page.get_by_role("region", name="Tasks")


async def ground(page: Page) -> str:
    return await page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("width", [900, 1280])
async def test_the_list_is_beside_the_chat(open_page: OpenPage, width: int) -> None:
    page = await open_page(prepare=with_list, pane="tasks", viewport={"width": width, "height": 700})
    await expect(tasks(page)).to_be_visible()
    await expect(screen.message_box(page)).to_be_visible()
    await expect(page.get_by_role("tab")).to_have_count(0)
    left, right = await tasks(page).bounding_box(), await screen.log(page).bounding_box()
    assert left
    assert right
    assert left["x"] + left["width"] <= right["x"] + 1
    assert left["y"] + left["height"] == pytest.approx(700, abs=1), "it fills the height"
    assert await page.evaluate("document.documentElement.scrollHeight") <= 700
    assert await page.evaluate("document.documentElement.scrollWidth") <= width


async def test_the_list_is_beside_openai_s_widget_and_hears_of_its_answers(open_page: OpenPage) -> None:
    page = await open_page("/", prepare=with_list_and_widget)
    await expect(tasks(page)).to_be_visible()
    await expect(page.get_by_text("The real widget")).to_be_visible()
    assert await page.evaluate("window.loaded") == 1
    before = await page.evaluate("window.refreshed")
    await page.locator("openai-chatkit").dispatch_event("chatkit.response.end")
    assert await page.evaluate("window.refreshed") == before + 1


async def test_a_page_without_a_list_is_all_chat(open_page: OpenPage) -> None:
    page = await open_page(prepare=_without_list, viewport=PHONE)
    await expect(screen.message_box(page)).to_be_visible()
    await expect(page.get_by_role("tab")).to_have_count(0)
    await expect(tasks(page)).to_have_count(0)


async def _without_list(page: Page) -> None:
    await page.add_init_script("""
        const define = customElements.define.bind(customElements);
        customElements.define = (name, ...rest) => name === 'todo-tasks' ? undefined : define(name, ...rest);
    """)


async def test_a_phone_has_a_tab_for_each_and_remembers_it(open_page: OpenPage) -> None:
    page = await open_page(prepare=with_list, pane="tasks", viewport=PHONE)
    await expect(tasks(page)).to_be_visible()
    await expect(screen.message_box(page)).to_be_hidden()
    await page.get_by_role("tab", name="Tasks").focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("tab", name="Chat", selected=True)).to_be_focused()
    await expect(page.get_by_role("tabpanel", name="Chat")).to_be_visible()
    await expect(tasks(page)).to_be_hidden()
    await expect(screen.message_box(page)).to_be_visible()
    await page.reload()
    await expect(screen.message_box(page)).to_be_visible()
    await page.get_by_role("tab", name="Chat").focus()
    await page.keyboard.press("Home")
    await expect(tasks(page)).to_be_visible()
    await page.keyboard.press("Tab")
    assert not await page.evaluate("document.activeElement.closest('#chat')"), "what is not seen takes no focus"
    await page.set_viewport_size({"width": 1280, "height": 800})
    await expect(tasks(page)).to_be_visible()
    await expect(screen.message_box(page)).to_be_visible()


async def test_what_was_scrolled_and_written_stays_behind_the_other_tab(open_page: OpenPage) -> None:
    page = await open_page(prepare=with_list, pane="tasks", viewport=PHONE)
    await page.evaluate("document.querySelector('todo-tasks > div').scrollTop = 400")
    await page.get_by_role("tab", name="Chat").click()
    await screen.message_box(page).fill("one\ntwo\nthree")
    tall = await screen.message_box(page).bounding_box()
    await page.get_by_role("tab", name="Tasks").click()
    assert await page.evaluate("document.querySelector('todo-tasks > div').scrollTop") == 400
    await page.get_by_role("tab", name="Chat").click()
    await expect(screen.message_box(page)).to_have_value("one\ntwo\nthree")
    assert await screen.message_box(page).bounding_box() == tall


async def test_the_list_looks_for_changes_after_an_answer_and_a_click_in_a_card(open_page: OpenPage) -> None:
    page = await open_page(prepare=with_list, pane="tasks")
    await screen.say(page, "add milk")
    after_answer = await page.evaluate("window.refreshed")
    assert after_answer >= 1
    await screen.log(page).get_by_role("checkbox", name="milk").check()
    await screen.until(page, f"window.refreshed > {after_answer}")


async def test_a_list_that_is_not_let_in_leads_to_signing_in(open_page: OpenPage) -> None:
    page = await open_page(prepare=with_list, pane="tasks")
    await expect(screen.message_box(page)).to_be_visible()
    await page.locator("todo-tasks").dispatch_event("todo-unauthorized")
    await expect(page.get_by_label("Token")).to_be_visible()
    await expect(tasks(page)).to_have_count(0)
    await screen.button(page, "Menu").click()
    await expect(screen.button(page, "Calendar")).to_have_count(0)


async def test_a_theme_is_chosen_and_kept(open_page: OpenPage) -> None:
    page = await open_page(color_scheme="light")
    assert await ground(page) == LIGHT
    await screen.button(page, "Menu").click()
    await expect(page.get_by_role("radio", name="System")).to_be_checked()
    await page.get_by_role("radio", name="Dark").check()
    assert await ground(page) == DARK
    assert await page.locator("meta[name=theme-color]").get_attribute("content") == "#16181a"
    await page.reload(wait_until="commit")
    await page.wait_for_selector("main", state="attached")
    assert await page.evaluate("document.documentElement.dataset.theme") == "dark"
    await screen.button(page, "Menu").click()
    await expect(page.get_by_role("radio", name="Dark")).to_be_checked()
    await page.get_by_role("radio", name="System").check()
    assert await ground(page) == LIGHT
    await page.emulate_media(color_scheme="dark")
    assert await ground(page) == DARK
    await screen.until(page, "document.querySelector('meta[name=theme-color]').content === '#16181a'")


async def test_openai_s_widget_has_the_same_theme_and_accent(open_page: OpenPage) -> None:
    page = await open_page("/", prepare=serving(WIDGET % READY), color_scheme="light")
    await expect(page.get_by_text("The real widget", exact=True)).to_be_visible()
    accent = "window.given.theme.color.accent.primary"
    assert await page.evaluate(accent) == "#0a6b5e"
    await screen.button(page, "Menu").click()
    await page.get_by_role("radio", name="Dark").check()
    assert await page.evaluate("window.given.theme.colorScheme") == "dark"
    assert await page.evaluate(accent) == "#5fcdb9"


async def test_badge_and_menu_are_opened_used_and_left_by_keyboard(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.button(page, "Offline model, no AI").focus()
    await page.keyboard.press("Enter")
    about = page.get_by_role("dialog", name="About this assistant")
    await expect(about).to_be_visible()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(about.get_by_text("LLM_PROVIDER=cerebras")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(about).to_be_hidden()
    await expect(screen.button(page, "Offline model, no AI")).to_be_focused()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("radio", name="System")).to_be_focused()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("radio", name="Light")).to_be_checked()
    await page.keyboard.press("Tab")
    await expect(page.get_by_text("Notify me of due tasks")).to_be_visible()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog", name="Calendar")).to_be_visible()


@pytest.fixture(scope="module")
def with_a_model(new_backend: Callable[..., ServiceProcess]) -> Iterator[ServiceProcess]:
    """A backend whose model is none of rules, by its settings."""
    service = new_backend()
    service.environment |= {"LLM_PROVIDER": "custom", "LLM_MODEL": NAMED}
    service.start()
    try:
        service.wait_until_ready()
        yield service
    finally:
        service.end()


@pytest.mark.parametrize("width", [320, 1280])
async def test_with_a_model_the_badge_names_it(
    open_page: OpenPage, violations: Violations, with_a_model: ServiceProcess, width: int
) -> None:
    page = await open_page(
        base=with_a_model.url,
        prepare=with_list,
        pane="tasks",
        viewport={"width": width, "height": 800},
        is_mobile=width < 900,
    )
    badge = screen.button(page, NAMED)
    await expect(badge).to_be_in_viewport(ratio=1)
    await _apart(page, "header button")
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    await badge.click()
    about = page.get_by_role("dialog", name="About this assistant")
    await expect(about).to_contain_text(f"Answers come from the model {NAMED}.")
    await expect(about.get_by_text("Set up a model")).to_have_count(0)
    assert await violations(page) == []


async def test_the_model_gives_a_conversation_its_title_after_the_first_answer(
    open_page: OpenPage, with_a_model: ServiceProcess, model: ScriptedModel
) -> None:
    await model.script({"when": "Write a title", "text": "Saying hello"})
    page = await open_page(base=with_a_model.url)
    await screen.say(page, "hello there")
    await expect(page).to_have_title("Saying hello · To-do assistant")
    await screen.open_history(page)
    await expect(screen.history(page)).to_contain_text("Saying hello")
    search = page.get_by_role("searchbox", name="Search conversations")
    beside = "field => parseFloat(getComputedStyle(field).paddingLeft) - field.previousElementSibling.clientWidth"
    assert await search.evaluate(beside) > 8, "what is written stands beside the icon"


@pytest.mark.parametrize("width", [320, 390, 1280])
async def test_no_state_of_the_shell_violates_wcag_or_is_cut_off(
    open_page: OpenPage, violations: Violations, width: int
) -> None:
    viewport = {"width": width, "height": 800}
    phone = {"has_touch": True, "is_mobile": True} if width < 900 else {}
    page = await open_page(prepare=with_list, pane="tasks", viewport=viewport, **phone)
    await expect(page.locator("todo-tasks")).to_be_visible()
    assert await violations(page) == []
    if width < 900:
        await page.get_by_role("tab", name="Chat").click()
        assert await violations(page) == []
    for name in ("Conversations", "New conversation", "Offline model, no AI", "Menu"):
        await expect(screen.button(page, name)).to_be_in_viewport(ratio=1)
    await _apart(page, "header button, .bar button")
    about = await screen.open_about(page)
    await about.get_by_text("Set up a model").click()
    assert await violations(page) == []
    await page.keyboard.press("Escape")
    await screen.button(page, "Menu").click()
    assert await violations(page) == []
    await page.keyboard.press("Escape")
    await screen.say(page, "add milk")
    await screen.open_history(page)
    assert await violations(page) == []
    await page.get_by_role("searchbox", name="Search conversations").fill("no such title")
    await expect(page.get_by_text("No conversation has this in its title.")).to_be_visible()
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= width


async def _apart(page: Page, selector: str) -> None:
    """No two of what is seen lie on each other."""
    overlapping = await page.evaluate(
        """selector => {
            const boxes = [...document.querySelectorAll(selector)]
                .filter((one) => one.checkVisibility({visibilityProperty: true}))
                .map((one) => [one.getAttribute('aria-label') ?? one.textContent.trim(), one.getBoundingClientRect()]);
            return boxes.flatMap(([a, one], n) => boxes.slice(n + 1)
                .filter(([, other]) => one.left < other.right - 1 && other.left < one.right - 1
                    && one.top < other.bottom - 1 && other.top < one.bottom - 1)
                .map(([b]) => `${a} and ${b}`));
        }""",
        selector,
    )
    assert overlapping == []


async def test_what_is_touched_is_large_enough(open_page: OpenPage) -> None:
    page = await open_page(prepare=with_list, pane="tasks", viewport=PHONE, has_touch=True, is_mobile=True)
    await page.get_by_role("tab", name="Chat").click()
    for name in ("Conversations", "New conversation", "Menu", "Offline model, no AI"):
        box = await screen.button(page, name).bounding_box()
        assert box
        assert min(box["width"], box["height"]) >= 43.9, name
    await screen.button(page, "Menu").click()
    box = await screen.button(page, "Calendar").bounding_box()
    assert box
    assert box["height"] >= 43.9


async def test_it_can_be_installed(open_page: OpenPage) -> None:
    page = await open_page()
    session = await page.context.new_cdp_session(page)
    found = await session.send("Page.getAppManifest")
    assert found["errors"] == []
    assert found["url"].endswith("/web/manifest.json")
    manifest = await (await page.request.get("/web/manifest.json")).json()
    assert (manifest["start_url"], manifest["display"]) == ("/", "standalone")
    sizes = []
    for icon in manifest["icons"]:
        response = await page.request.get(icon["src"])
        assert response.headers["content-type"] == icon["type"]
        if icon["type"] == "image/png":
            width, height = struct.unpack(">II", (await response.body())[16:24])
            assert icon["sizes"] == f"{width}x{height}"
            sizes.append(width)
    assert sorted(sizes) == [192, 512, 512]


async def test_the_list_hears_of_a_tool_s_result_before_the_answer_ends(
    open_page: OpenPage, model: ScriptedModel
) -> None:
    page = await open_page(prepare=with_list, pane="tasks")
    await model.script(
        {"tool_calls": [{"name": "add_task", "arguments": {"title": "milk"}}]},
        {"text": "word " * 500, "token_delay": 0.05},
    )
    await screen.send(page, "add milk")
    await screen.until(page, "window.refreshed")
    await expect(screen.button(page, "Stop")).to_be_visible()


async def test_the_list_is_there_while_openai_s_widget_is_awaited(open_page: OpenPage) -> None:
    async def prepare(page: Page) -> None:
        await with_list(page)
        await serving(WIDGET % "")(page)  # it is never ready

    page = await open_page("/?ui=openai", prepare=prepare)
    await expect(page.get_by_text("Loading OpenAI's widget…")).to_be_visible()
    await expect(tasks(page)).to_be_visible()
