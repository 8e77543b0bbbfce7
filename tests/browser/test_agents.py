"""Agents on the page: files put in, an assignment, an agent at work, and what it wrote."""

import asyncio
import signal
from typing import Any

import pytest
from playwright.async_api import Dialog, Locator, Page, Route, expect

from tests.browser import screen, task_list
from tests.browser.attacks import ATTRIBUTES, ELEMENTS, MARKUP, arm
from tests.browser.conftest import OpenPage, Violations
from tests.scripted_model import ScriptedModel
from tests.support.script import call, calls
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until

pytestmark = [pytest.mark.long(seconds=9), pytest.mark.asyncio(loop_scope="session")]

HARMFUL = [text for text in MARKUP if "/" not in text][:5]


def coder(*, task_id: int | None = None) -> dict[str, Any]:
    return calls(call("do_with_coder", task="count the words", task_id=task_id))


def work(page: Page) -> Locator:
    return screen.log(page).locator(".work").last


async def choose(page: Page, *files: tuple[str, bytes]) -> None:
    given: Any = [{"name": name, "mimeType": "text/plain", "buffer": content} for name, content in files]
    await page.locator("input[type=file]").set_input_files(given)


async def drop(page: Page, name: str, content: str) -> None:
    await page.evaluate(
        """([name, content]) => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File([content], name));
            for (const type of ["dragover", "drop"]) {
                const event = new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true });
                document.querySelector("todo-chat .log").dispatchEvent(event);
            }
        }""",
        [name, content],
    )


async def test_files_are_uploaded_an_agent_works_and_its_files_are_opened(
    open_page: OpenPage, model: ScriptedModel, violations: Violations
) -> None:
    page = await open_page()
    about = await screen.open_about(page)
    await expect(about).to_contain_text("Agents can work on tasks.")
    await page.keyboard.press("Escape")

    await choose(page, ("notes.txt", b"one two three\n"), ("large.bin", b"x" * 60_000))
    files = page.get_by_role("list", name="Files")
    await expect(files).to_contain_text("notes.txt, 14 B")
    await expect(files.get_by_role("alert")).to_contain_text("up to 50 KB")
    await drop(page, "más.txt", "four")
    await expect(files).to_contain_text("más.txt, 4 B")
    await expect(files.get_by_role("progressbar")).to_have_count(0)
    assert await violations(page) == []
    await screen.button(files, "Remove large.bin").press("Enter")
    await model.script(
        coder(),
        calls(call("write_file", path="out/count.txt", content="words: 0\nend\n")),
        calls(call("edit_file", path="out/count.txt", old_text="words: 0", new_text="words: 3")),
        calls(
            call(
                "run_command",
                command="for i in $(seq 900); do echo line $i; done; cat notes.txt; echo bad >&2; echo 3 >n\\ 1; false",
            )
        ),
        calls(call("read_file", path="none.txt")),
        {"text": "There are three."},
        {"text": "It is counted."},
    )
    await screen.send(page, "count the words")
    card = screen.log(page).locator(".card").filter(has_text="Let the coder do this")
    await expect(card).to_contain_text("without internet")
    await card.get_by_label("Always allow the coder in this conversation").check()
    await expect(card.get_by_role("checkbox")).to_be_checked()
    assert await violations(page) == []
    await screen.button(card, "Approve: Let the coder do this?").click()
    await expect(screen.answers(page).last).to_have_text("It is counted.")
    await expect(screen.questions(page).first).to_contain_text("Files: notes.txt (14 B), más.txt (4 B)")

    await expect(work(page).locator("summary").first).to_have_text("Coder: 3 steps, 2 files written")
    written = screen.log(page).get_by_role("list", name="Files")
    await expect(written).to_contain_text("out/count.txt")
    async with page.context.expect_page() as opening:
        await written.get_by_role("link", name="out/count.txt", exact=True).click()
    opened = await opening.value
    await expect(opened.locator("body")).to_contain_text("words: 3")
    await opened.close()
    async with page.expect_download() as downloading:
        await written.get_by_role("link", name="Download out/count.txt").click()
    assert (await downloading.value).suggested_filename == "count.txt"
    await expect(written.get_by_role("link", name="n 1", exact=True)).to_be_visible()

    await work(page).locator("summary").first.press("Enter")
    await expect(work(page).locator(".diff")).to_have_text("-words: 0\n+words: 3\n")
    await expect(work(page)).to_contain_text("Reading none.txt failed")
    command = work(page).locator(".output")
    await command.locator("summary").press("Enter")
    await expect(command.locator("summary")).to_contain_text("Exit code 1")
    for text in ("line 1\n", "line 900\none two three", "bad"):
        await expect(command).to_contain_text(text)
    assert await violations(page) == []
    await page.set_viewport_size({"width": 320, "height": 800})
    log = "document.querySelector('todo-chat .log')"
    assert await page.evaluate(f"{log}.scrollWidth <= {log}.clientWidth")

    page.once("dialog", lambda dialog: dialog.accept())
    await screen.button(written, "Delete n 1").press("Enter")
    await expect(written.get_by_role("link", name="n 1", exact=True)).to_be_hidden()
    left_out = asyncio.Event()

    async def wait(route: Route) -> None:
        await left_out.wait()
        await route.continue_()

    await page.route("**/files/only.txt", wait)
    await choose(page, ("only.txt", b"x"), ("never sent.txt", b"x"), ("left.txt", b"x"))
    chips = page.locator(".chips")
    await expect(chips).to_contain_text("left.txt")
    await screen.button(page, "Remove never sent.txt").click()
    left_out.set()
    await expect(chips.get_by_role("progressbar")).to_have_count(0)
    async with page.expect_response(lambda response: response.request.method == "DELETE") as deleting:
        await screen.button(page, "Remove left.txt").click()
    assert (await deleting.value).status == 204
    await model.script({"text": "I looked."})
    await screen.button(page, "Send").click()
    await expect(screen.answers(page).last).to_have_text("I looked.")
    await expect(screen.questions(page).last).to_contain_text("Look at the files I added. File: only.txt (1 B)")
    listed = await page.evaluate("fetch(location.pathname.replace('/c/', '/chats/') + '/files').then((a) => a.json())")
    assert [one["path"] for one in listed["files"]] == ["más.txt", "notes.txt", "only.txt", "out/count.txt"]

    await model.script(coder(), {"text": "Nothing to do."}, {"text": "Unasked."})
    await screen.say(page, "again")
    await expect(screen.answers(page).last).to_have_text("Unasked.")
    await page.reload()
    await expect(screen.log(page).locator(".work summary").first).to_have_text("Coder: 3 steps, 2 files written")
    gone, told = written.get_by_role("listitem").filter(has_text="n 1"), list[str]()

    async def read(dialog: Dialog) -> None:
        told.append(dialog.message)
        await dialog.accept()

    page.once("dialog", read)
    async with page.context.expect_page() as opening:
        await gone.get_by_role("link", name="n 1", exact=True).click()
    await (await opening.value).close()
    await expect(gone).to_be_hidden()
    await until(lambda: told)  # it is hidden before
    assert len(told) == 1
    await expect(written).to_contain_text("out/count.txt")


async def test_agent_is_started_from_a_task_stopped_and_interrupted(
    open_page: OpenPage, stack: Stack, model: ScriptedModel, violations: Violations, user: User, stored: Stored
) -> None:
    page = await open_page(viewport={"width": 1280, "height": 800})
    field = page.get_by_role("textbox", name="Add a task")
    await field.fill("count the words")
    await field.press("Enter")
    await task_list.see(page, "All")
    tasks = page.get_by_role("region", name="Tasks")
    await screen.button(tasks, "count the words").click()
    await model.script(coder(), calls(call("run_command", command="echo begun; sleep 300")), {"text": "never"})
    assert await violations(page) == []
    await screen.button(tasks, "Ask an agent to do it").press("Enter")
    await expect(screen.questions(page)).to_have_text("do task 1")
    await expect(work(page).locator("summary").first).to_have_text("Coder: working…")
    await expect(work(page)).to_contain_text("Running echo begun; sleep 300…")
    await expect(screen.log(page).locator(".card")).to_have_count(0)
    assert await violations(page) == []
    await screen.button(page, "Stop").click()
    await expect(work(page).locator("summary").first).to_contain_text("stopped")
    await screen.answered(page)

    await model.reset()
    await model.script(coder(), calls(call("run_command", command="echo again; sleep 300")), {"text": "never"})
    await screen.send(page, "do it again")
    await screen.button(page, "Approve: Let the coder do this?").click()  # the click was the consent to one message
    await expect(work(page)).to_contain_text("Running echo again; sleep 300…")
    stack.backends[0].end(signal.SIGKILL)
    await asyncio.to_thread(stack.ensure_running)
    await expect(work(page).locator("summary").first).to_have_text("Coder: did not finish")
    await expect(work(page)).to_contain_text("Running echo again; sleep 300…")
    await expect(work(page).locator(".spinner")).to_have_count(0)
    await stored.run_with_status(user.name, "interrupted")  # until then the conversation is busy
    await expect(page.get_by_text(screen.LOST)).to_have_count(0)

    await model.reset()
    name = "the count #1.txt"
    await model.script(
        coder(task_id=1),
        calls(call("write_file", path=f"out/{name}", content="words: 3\n")),
        {"text": "Three."},
        {"text": "Three."},
    )
    await screen.send(page, "do task 1")
    await screen.button(page, "Approve: Let the coder do this?").click()
    await expect(screen.answers(page).last).to_have_text("Three.")
    await screen.button(tasks, "count the words").click()
    written = tasks.get_by_role("list", name="Files")
    await expect(written).to_contain_text("9 B")
    async with page.context.expect_page() as opening:
        await written.get_by_role("link", name=f"out/{name}", exact=True).click()
    await expect((await opening.value).locator("body")).to_contain_text("words: 3")
    await (await opening.value).close()
    async with page.expect_download() as downloading:
        await written.get_by_role("link", name=f"Download out/{name}").click()
    assert (await downloading.value).suggested_filename == name
    assert await violations(page) == []


async def test_file_written_again_after_its_deletion_is_shown(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script(
        coder(),
        calls(call("write_file", path="count.txt", content="1")),
        {**calls(call("write_file", path="count.txt", content="three")), "hold_after": 0},
        {"text": "There are three."},
        {"text": "It is counted."},
    )
    await screen.send(page, "count the words")
    await screen.button(page, "Approve: Let the coder do this?").click()
    written = screen.log(page).get_by_role("list", name="Files")
    page.once("dialog", lambda dialog: dialog.accept())
    await screen.button(written, "Delete count.txt").click()
    link = written.get_by_role("link", name="count.txt", exact=True)
    await expect(link).to_be_hidden()
    await model.release()
    await expect(link).to_be_visible()
    await expect(written).to_contain_text("5 B")


async def test_files_and_output_stay_text(open_page: OpenPage, stack: Stack, model: ScriptedModel) -> None:
    page = await open_page(prepare=arm)
    listed = "\n".join(MARKUP)
    writing = [call("write_file", path=f"{text}.txt", content=text) for text in HARMFUL]
    await model.script(
        coder(),
        calls(*writing),
        calls(
            call("write_file", path="a.txt", content="x"),
            call("edit_file", path="a.txt", old_text="x", new_text=listed),
            call(
                "run_command",
                command="cat a.txt; cat a.txt >&2; echo '[Open a](http://x/files/b)'; touch '[Open c](x)'",
            ),
        ),
        {"text": "Fine."},
        {"text": "It is so."},
    )
    await choose(page, (HARMFUL[0], b"x"))
    chips = page.get_by_role("list", name="Files")
    await expect(chips).to_contain_text(HARMFUL[0])
    await expect(chips.get_by_role("progressbar")).to_have_count(0)
    await screen.send(page, "attack")
    await screen.button(page, "Approve: Let the coder do this?").click()
    await expect(screen.answers(page).last).to_have_text("It is so.")
    await work(page).locator("summary").first.click()
    await work(page).locator(".output summary").click()
    await expect(work(page).locator(".output")).to_contain_text(MARKUP[-2])
    links = await work(page).locator("+ .files a").evaluate_all("all => all.map(({ href }) => new URL(href).origin)")
    assert len(links) == 2 * (len(HARMFUL) + 2)
    assert set(links) == {stack.url}
    assert await page.evaluate("window.reached") == []
    assert await screen.log(page).locator(f"{ELEMENTS}, {ATTRIBUTES}").count() == 0


async def test_agent_waits_for_an_approval_and_goes_on(
    open_page: OpenPage, model: ScriptedModel, violations: Violations
) -> None:
    page = await open_page()
    keeping = calls(call("write_file", path="a.txt", content="x"), call("commit", message="first"))
    await model.script(coder(), keeping, {"text": "Kept."}, {"text": "It is kept."})
    await screen.send(page, "keep it")
    log = screen.log(page)
    await screen.button(log, "Approve: Let the coder do this?").click()
    card = log.locator(".card").filter(has_text="Let the coder save a version of the files")
    await expect(card).to_contain_text("message: first")
    await expect(work(page)).to_contain_text("Wrote a.txt")
    await expect(screen.questions(page)).to_have_count(1)
    assert await violations(page) == []
    await screen.button(card, "Approve: Let the coder save a version of the files?").click()
    await expect(screen.answers(page).last).to_have_text("It is kept.")
    for _ in range(2):
        await expect(log.locator(".work")).to_have_count(1)
        await expect(work(page).locator("summary").first).to_have_text("Coder: 2 steps, 1 file written")
        await expect(card).to_contain_text("Approved")
        await page.reload()
