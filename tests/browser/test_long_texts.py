"""Long texts that are hard to read as Markdown: the page stays usable, and shows all of them."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from random import Random
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage
from tests.scripted_model import ScriptedModel
from tests.support.script import says
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

LENGTH = 400_000  # of an answer, by default
MOST_MS = 500
"""Of processor time; on a quiet machine it is less than 100 ms."""
PATTERNS = [
    *("!", "_a", "*a ", "*a* ", "**a", "*_", "[", "[a](", "[a](http://b.example) ", "![", "`a", "<a x=", "<!--", "a@"),
    *(
        "http://a.example/",
        "> ",
        "- ",
        "- a\n",
        "a\n",
        "a\n\n",
        "|",
        "# a\n\n",
        "```\n",
        "\\*",
        "&amp;",
        "שלום ",
        "\u0301",
    ),
]
TABLE = "|a" * 40 + "|\n" + "|-" * 40 + "|\n"
HOSTILE = [
    *(pattern * (LENGTH // len(pattern)) for pattern in PATTERNS),
    *((f"{(pattern * 2900)[:2900]}\n\n" * (LENGTH // 2900)) for pattern in PATTERNS[:12]),
    TABLE + ("|b" * 40 + "|\n") * (LENGTH // 82),
    "```\n" + "x = 1\n" * (LENGTH // 6),
    "".join(f"{'  ' * (depth % 500)}- a\n" for depth in range(800)),
]
PAGE = 20  # items that are loaded at once


@asynccontextmanager
async def longest_task(browser: Browser, page: Page) -> AsyncIterator[list[float]]:
    """Gives the processor time in ms of the longest task of the page's thread, in the end."""
    longest: list[float] = []
    await browser.start_tracing(page=page, categories=["toplevel"])
    yield longest
    events = json.loads(await browser.stop_tracing())["traceEvents"]
    threads = {(event["pid"], event["tid"]) for event in events if event.get("args") == {"name": "CrRendererMain"}}
    tasks = [
        event["tdur"]
        for event in events
        if event.get("ph") == "X" and (event["pid"], event["tid"]) in threads and "tdur" in event
    ]
    longest.append(max(tasks) / 1000)


async def load_items(page: Page, items: list[dict[str, Any]]) -> None:
    """Lets the conversation have these items when it is loaded again."""

    async def answer(route: Route) -> None:
        page_of_items = await (await route.fetch()).json()
        common = {name: page_of_items["data"][0][name] for name in ("thread_id", "created_at")}
        data = [{**common, "id": f"item_{number}", **item} for number, item in enumerate(items)]
        await route.fulfill(json={**page_of_items, "data": data[::-1]})

    await screen.on(page, "items.list", answer)


def _answer(text: str) -> dict[str, Any]:
    return {"type": "assistant_message", "content": [{"type": "output_text", "text": text, "annotations": []}]}


def _question(text: str) -> dict[str, Any]:
    return {"type": "user_message", "content": [{"type": "input_text", "text": text}], "attachments": []}


def _card(text: str) -> dict[str, Any]:
    return {"type": "widget", "widget": {"type": "Card", "children": [{"type": "Text", "value": text}]}}


def _work(text: str) -> dict[str, Any]:
    tasks = [{"type": "custom", "title": title} for title in ("agent: look", text)]
    return {"type": "workflow", "workflow": {"type": "custom", "expanded": True, "tasks": tasks}}


async def settled(page: Page, answers: int) -> None:
    """Waits until the page shows so many answers and has read all texts; Playwright's locators would lay out all."""
    counts = list[tuple[int, int, bool]]()

    async def is_settled() -> bool:
        counts.append(
            await page.evaluate(
                """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))).then(() =>
                    [document.getElementsByClassName("answer").length, document.getElementsByTagName("*").length,
                    document.querySelector(".answer[aria-busy=true]") === null])"""
            )
        )
        return len(counts) > 3 and counts[-4:] == counts[-1:] * 4 and counts[-1][0] == answers and counts[-1][2]

    await until(is_settled)


async def test_no_text_of_a_conversation_holds_the_page(
    open_page: OpenPage, model: ScriptedModel, browser: Browser
) -> None:
    page = await open_page()
    await model.script(says("Fine."))
    await screen.say(page, "hello")
    for start in range(0, len(HOSTILE), PAGE):
        texts = HOSTILE[start : start + PAGE]
        await load_items(page, [_answer(text) for text in texts])
        async with longest_task(browser, page) as longest:
            await page.reload()
            await settled(page, len(texts))
        assert longest[0] < MOST_MS
        shown = await screen.answers(page).evaluate_all("all => all.map((one) => one.textContent.trim().length)")
        for text, length in zip(texts, shown, strict=True):
            assert length > 0, text[:20]
        await page.unroute_all()


@pytest.mark.parametrize("item", [_question, _card, _work])
async def test_no_text_that_is_shown_as_written_holds_the_page(
    open_page: OpenPage, model: ScriptedModel, browser: Browser, item: Callable[[str], dict[str, Any]]
) -> None:
    page = await open_page()
    await model.script(says("Fine."))
    await screen.say(page, "hello")
    await load_items(page, [*[item("x" * LENGTH)] * (PAGE - 1), _answer("Fine.")])
    async with longest_task(browser, page) as longest:
        await page.reload()
        await settled(page, 1)
    assert longest[0] < MOST_MS
    assert await screen.log(page).evaluate("(log) => log.textContent.match(/x/g).length") >= LENGTH * (PAGE - 1)


def _words(random: Random, *, length: int, signs: str) -> str:
    text = ""
    while len(text) < length:
        text += "".join(random.choices(signs, k=random.randint(1, 30))) + random.choice(["\n", " ", "", "\n\n"])
    return text


async def test_growing_text_holds_nothing_and_looks_like_the_whole(
    open_page: OpenPage, model: ScriptedModel, browser: Browser
) -> None:
    numbers = count(1)
    text = "\n\n".join(
        [
            "".join(f"{next(numbers)}. entry {number * 7919 % 1000} of a *long* list\n" for number in range(200)),
            "|n|m|\n|-|-|\n" + "".join(f"|{number}|{number * 7919 % 1000}|\n" for number in range(400)),
            "```python\n" + "".join(f"x{number} = {number * 7919 % 1000}\n" for number in range(400)) + "```",
            _words(Random(1), length=20_000, signs="*_[]()!`<>|-~\\&# aבé😀"),
            "The **end**.",
        ]
    )
    page = await open_page()
    await model.script({"text": text, "chunk_chars": 7})
    async with longest_task(browser, page) as longest:
        await screen.send(page, "hello")
        await settled(page, 1)
    assert longest[0] < MOST_MS
    answer = screen.answers(page)
    assert await answer.locator("ol > li").count() >= 200
    assert await answer.locator("ol").last.get_attribute("start") not in (None, "1")
    assert await answer.locator("td").count() == 800
    assert await answer.locator("pre").first.text_content() == text.split("```python\n")[1].split("\n```")[0]
    html = "(answer) => answer.innerHTML.replace(/<!--.*?-->/g, '').replace(/ (aria-busy|translate)=\"[^\"]*\"/g, '')"
    grown = await answer.evaluate(html)
    await page.reload()
    await settled(page, 1)
    assert await answer.evaluate(html) == grown


async def test_long_lines_of_code_in_a_list_scroll(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(viewport={"width": 390, "height": 800})
    await model.script(says(f"A paragraph.\n\n1. Step:\n\n   ```\n   {'x = 1; ' * 40}\n   ```\n\n   - inner"))
    await screen.say(page, "hello")
    pre = screen.answers(page).locator("pre")
    assert await pre.evaluate("(pre) => pre.scrollWidth > pre.clientWidth")
    edges = "(all) => all.map((one) => one.getBoundingClientRect().right)"
    assert max(await screen.answers(page).locator("p, li, pre").evaluate_all(edges)) <= 390


async def test_everything_can_be_copied(open_page: OpenPage, model: ScriptedModel) -> None:
    line = "".join(Random(2).choices("abcdefghijklmnopqrstuvwxyz", k=30_000))
    page = await open_page(permissions=["clipboard-read", "clipboard-write"])
    await model.script(says(line))
    await screen.say(page, "hello")
    await screen.button(page, "Copy").last.click()
    await until(lambda: _clipboard_is(page, line))
    await screen.answers(page).evaluate("(answer) => getSelection().selectAllChildren(answer)")
    await page.keyboard.press("Control+c")
    await until(lambda: _clipboard_is(page, line))


async def _clipboard_is(page: Page, text: str) -> bool:
    """Whether that is in the clipboard, where a selection has line breaks between the pieces of a line."""
    copied: Any = await page.evaluate("navigator.clipboard.readText()")
    return copied.replace("\n", "") == text


def _long(number: int) -> str:
    return " ".join(str(number * factor) for factor in range(1, 9))


async def test_divided_text_looks_like_the_whole(open_page: OpenPage, model: ScriptedModel) -> None:
    numbers = Random(3).sample(range(1000), 100)  # as a model that repeats itself is stopped
    text = "\n\n".join(
        [
            *(f"Some *words* about {number}, with [a source][1] and [another][The Other]." for number in numbers),
            "- top\n"
            + "".join(f"  - nested {number}\n    - leaf {number} of {_long(number)}\n" for number in numbers)
            + "- next",
            "# Steps",
            "7. step\n\n   ```python\n"
            + "".join(f"   x{number} = {number * 10**30}\n" for number in numbers)
            + "   ```\n\n8. last",
            "".join(f"> > line {number} of a {_long(number)} quote\n" for number in numbers),
            '[1]: https://one.example/a "Title"\n[the  other]: <https://two.example/b>',
        ]
    )
    page = await open_page()
    await model.script({"text": text, "chunk_chars": 200})
    await screen.say(page, "hello")
    for _ in range(2):
        await settled(page, 1)
        answer = screen.answers(page)
        assert await answer.locator("a[href='https://one.example/a']").count() == 100
        assert await answer.locator("a[href='https://two.example/b']").count() == 100
        entry = "ul > li:not(.goes-on)"
        assert await answer.locator(entry).count() == 202
        assert await answer.locator(f"ul ul ul > {entry.split(' > ')[1]}").count() == 100
        assert await answer.locator("ol").last.locator("> li").last.text_content() == "last"
        assert await answer.locator("ol").last.get_attribute("start") == "7"
        shown = [await code.text_content() or "" for code in await answer.locator("ol pre").all()]
        assert len(shown) > 1
        assert sum(len(code.splitlines()) for code in shown) == 100
        assert await answer.locator("blockquote").count() == 2 * await answer.locator("blockquote > blockquote").count()
        assert ">" not in (await answer.locator("blockquote").last.text_content() or ">")
        await page.reload()


async def test_long_text_that_is_pasted_holds_nothing_and_keeps_the_draft(
    open_page: OpenPage, browser: Browser
) -> None:
    page = await open_page(permissions=["clipboard-read", "clipboard-write"])
    box = screen.message_box(page)
    await box.fill("add milk")
    for text in ("x" * LENGTH, "words " * (LENGTH // 6), "line\n" * (LENGTH // 5)):
        async with longest_task(browser, page) as longest:
            await page.evaluate("(text) => navigator.clipboard.writeText(text)", text)
            await page.keyboard.press("Control+v")
            await screen.until(page, "document.querySelector('#message-length').textContent.includes('at most 8,000')")
        assert longest[0] < MOST_MS
        await expect(box).to_have_value("add milk")
    async with longest_task(browser, page) as longest:
        await page.evaluate("navigator.clipboard.writeText('x'.repeat(15_000))")
        await page.keyboard.press("Control+v")
        await expect(page.get_by_text("15,008 of 8,000 characters")).to_be_visible()
    assert longest[0] < MOST_MS
