"""With AUTH_MODE=jwt: one is told to sign in, sees only what is one's own, and leaves nothing behind."""

from collections.abc import Callable, Iterator

import pytest
from playwright.async_api import Page, expect

from tests.processes import ServiceProcess, running
from tests.tokens import IDP_SECRET, ISSUER, minted
from tests.web import screen
from tests.web.conftest import OpenPage

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

AUDIENCE = "https://todo.example"


@pytest.fixture(scope="module")
def guarded(new_backend: Callable[..., ServiceProcess]) -> Iterator[ServiceProcess]:
    identity = {"AUTH_JWT_SECRET": IDP_SECRET, "AUTH_ISSUER": ISSUER, "AUTH_AUDIENCE": AUDIENCE}
    yield from running(new_backend(AUTH_MODE="jwt", **identity))


def token_of(person: str) -> str:
    return minted(IDP_SECRET, sub=person, iss=ISSUER, aud=AUDIENCE)


async def sign_in(page: Page, token: str) -> None:
    await page.get_by_label("Token").fill(token)
    await screen.button(page, "Sign in").click()


async def test_one_is_told_to_sign_in_and_how(open_page: OpenPage, guarded: ServiceProcess) -> None:
    page = await open_page(base=guarded.url)
    await expect(page.get_by_text("Sign in to see your tasks.")).to_be_visible()
    await expect(page.get_by_text("POST /session")).to_be_visible()
    await expect(page.get_by_text("Nobody is checked here")).to_have_count(0)
    await expect(screen.message_box(page)).to_have_count(0)
    await sign_in(page, "no token at all")
    await expect(page.get_by_role("alert")).to_have_text("This token is not valid here, or not any more.")
    await sign_in(page, token_of("alice"))
    await screen.say(page, "add milk")
    await page.reload()
    await expect(screen.questions(page)).to_have_text(["add milk"], use_inner_text=True)


async def test_the_next_person_finds_nothing_of_the_last(open_page: OpenPage, guarded: ServiceProcess) -> None:
    page = await open_page(base=guarded.url)
    await sign_in(page, token_of("alice"))
    await screen.say(page, "add secret plans")
    await screen.message_box(page).fill("half a secret")
    await screen.from_menu(page, "Sign out")
    await expect(page.get_by_label("Token")).to_be_visible()
    assert "secret" not in await page.locator("body").inner_text()
    assert "secret" not in await page.title()
    assert await page.evaluate("location.pathname") == "/"
    assert "secret" not in await page.evaluate("JSON.stringify(localStorage)")
    await sign_in(page, token_of("bob"))
    await expect(screen.message_box(page)).to_have_value("")
    await screen.say(page, "show my list")
    assert "secret" not in await page.locator("body").inner_text()


async def test_a_copied_cookie_opens_nothing_after_signing_out(open_page: OpenPage, guarded: ServiceProcess) -> None:
    page = await open_page(base=guarded.url)
    await sign_in(page, token_of("alice"))
    await screen.say(page, "add milk")
    copied = [cookie for cookie in await page.context.cookies() if "todo_session" in cookie.get("name", "")]
    assert len(copied) == 1
    await screen.from_menu(page, "Sign out")
    await expect(page.get_by_label("Token")).to_be_visible()
    await page.context.add_cookies([{**copied[0]}])  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
    await page.reload()
    await expect(page.get_by_label("Token")).to_be_visible()
    await expect(screen.questions(page)).to_have_count(0)


async def test_a_session_that_ends_asks_again_and_keeps_the_draft(open_page: OpenPage, guarded: ServiceProcess) -> None:
    page = await open_page(base=guarded.url)
    await sign_in(page, token_of("alice"))
    await screen.say(page, "add milk")
    await page.context.clear_cookies()
    await screen.message_box(page).fill("add bread")
    await screen.message_box(page).press("Enter")
    await expect(page.get_by_label("Token")).to_be_visible()
    await expect(screen.log(page)).to_have_count(0)
    await sign_in(page, token_of("alice"))
    await expect(screen.questions(page)).to_have_count(1)
    await expect(screen.message_box(page)).to_have_value("add bread")
    await screen.message_box(page).press("Enter")
    await expect(screen.questions(page)).to_have_count(2)
    await screen.answered(page)


async def test_signing_out_while_the_server_is_away_is_told(open_page: OpenPage, guarded: ServiceProcess) -> None:
    page = await open_page(base=guarded.url)
    await sign_in(page, token_of("alice"))
    await screen.say(page, "add milk")
    await page.route("**/session", lambda route: route.abort())
    await screen.from_menu(page, "Sign out")
    await expect(page.get_by_text("You are still signed in")).to_be_visible()
    await expect(screen.questions(page)).to_have_count(1)


async def test_a_message_on_its_way_is_forgotten_with_its_person(open_page: OpenPage, guarded: ServiceProcess) -> None:
    page = await open_page(base=guarded.url)
    await sign_in(page, token_of("alice"))
    await screen.say(page, "add milk")
    await page.route("**/chatkit", lambda route: None)
    await screen.message_box(page).fill("a secret")
    await screen.message_box(page).press("Enter")
    await screen.from_menu(page, "Sign out")
    await expect(page.get_by_label("Token")).to_be_visible()
    await page.wait_for_timeout(700)  # longer than a stopped message is looked for
    assert "secret" not in await page.evaluate("JSON.stringify(localStorage)")
