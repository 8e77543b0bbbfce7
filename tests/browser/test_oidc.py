"""Sign-in at a published provider, npm's oidc-provider, which is another site for the browser."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from backend import app
from tests.browser import screen
from tests.browser.conftest import Violations
from tests.conftest import ROOT, find_free_port
from tests.identity_provider import CLIENT_SECRET
from tests.logins import as_admin
from tests.node_packages import MCP_CLIENTS, install_packages
from tests.serving import http_client
from tests.support.backends import local_backend
from tests.support.stack import Services
from tests.waiting import until

pytestmark = [pytest.mark.long(seconds=30), pytest.mark.asyncio(loop_scope="session")]
PROVIDER = ROOT / "tests" / "oidc_provider"


@dataclass
class PublishedProvider:
    issuer: str
    claims: Path

    def set_groups(self, *groups: str) -> None:
        claims = {"name": "Ann Example", "preferred_username": "ann", "groups": groups}
        self.claims.write_text(json.dumps({"ann-1": claims}))


@pytest_asyncio.fixture(loop_scope="session")
async def page(
    browser: Browser, services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Page, PublishedProvider]]:
    """A page whose backend signs users in at the provider, and looks all the time what it has to renew."""
    monkeypatch.setattr(app, "LOOK_SECONDS", 0.1)
    port = find_free_port()
    provider = PublishedProvider(f"http://localhost:{port}", tmp_path / "claims.json")
    provider.set_groups("household")
    settings = {
        "AUTH_MODE": "oidc",
        "OIDC_ISSUER": provider.issuer,
        "OIDC_CLIENT_ID": "todo",
        "OIDC_CLIENT_SECRET": CLIENT_SECRET,
        "OIDC_SCOPES": "openid profile email groups",
        "OIDC_ALLOWED": "groups=household",
        "OIDC_NAME": "Example House",
        **dict.fromkeys(("AUTH_JWT_SECRET", "AUTH_ISSUER", "AUTH_AUDIENCE"), ""),
    }
    async with local_backend(services, **settings) as backend:
        process = await start_provider(port, backend.url, provider.claims)
        context = await browser.new_context(base_url=backend.url)
        context.set_default_timeout(60_000)
        try:
            yield await context.new_page(), provider
        finally:
            await context.close()
            process.terminate()
            await process.wait()


async def start_provider(port: int, page: str, claims: Path) -> asyncio.subprocess.Process:
    packages, node = install_packages(PROVIDER), install_packages(MCP_CLIENTS) / ".bin" / "node"
    options: dict[str, Any] = {
        "packages": str(packages),
        "port": port,
        "secret": CLIENT_SECRET,
        "page": page,
        "claims": str(claims),
    }
    process = await asyncio.create_subprocess_exec(
        *(node, PROVIDER / "provider.mjs", json.dumps(options)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with http_client(f"http://127.0.0.1:{port}") as http:

        async def is_ready() -> bool:
            try:
                return (await http.get("/.well-known/openid-configuration")).status_code == 200
            except httpx2.TransportError:
                return False

        await until(is_ready, seconds=60)
    return process


async def sign_in(page: Page) -> None:
    await screen.button(page, "Sign in with Example House").click()
    await page.locator("input[name=login]").fill("ann-1")
    await page.locator("input[name=password]").fill("any")
    await page.locator("button[type=submit]").click()
    await page.get_by_text("Continue").click()


async def test_sign_in_and_out(page: tuple[Page, PublishedProvider], violations: Violations) -> None:
    tab, _ = page
    await tab.goto("/all?q=milk")
    await expect(tab.get_by_text("Sign in to see your tasks.")).to_be_visible()
    await expect(screen.button(tab, "Sign in with Example House")).to_be_focused()
    assert await violations(tab) == []
    await sign_in(tab)
    await expect(tab).to_have_url(re.compile(r"/all\?q=milk$"))
    await expect(tab.get_by_text("ann", exact=True)).to_be_attached()
    [cookie] = [one for one in await tab.context.cookies() if one.get("name") == "todo_session"]
    assert (cookie.get("sameSite"), cookie.get("httpOnly")) == ("Strict", True)
    await tab.reload()
    await expect(tab.get_by_text("ann", exact=True)).to_be_attached()
    await screen.from_menu(tab, "Sign out")
    await tab.get_by_text("Yes, sign me out").click()
    await expect(screen.button(tab, "Sign in with Example House")).to_be_visible()
    assert not [one for one in await tab.context.cookies() if one.get("name") == "todo_session"]


async def test_user_who_leaves_the_group(page: tuple[Page, PublishedProvider], services: Services) -> None:
    tab, provider = page
    await tab.goto("/")
    await sign_in(tab)
    await expect(tab.get_by_text("ann", exact=True)).to_be_attached()
    with psycopg.connect(as_admin(services.database_url), autocommit=True) as connection:

        def read_renewal() -> Any:
            return connection.execute("SELECT sealed, renew_at > now() + interval '50 minutes' FROM provider_sessions")

        [(sealed, _)] = read_renewal()
        connection.execute("UPDATE provider_sessions SET renew_at = now()")
        await until(lambda: [(row[0] != sealed, row[1]) for row in read_renewal()] == [(True, True)], seconds=30)
        await tab.reload()
        await expect(tab.get_by_text("ann", exact=True)).to_be_attached()
        provider.set_groups("others")
        connection.execute("UPDATE provider_sessions SET renew_at = now()")
        await until(lambda: not read_renewal().fetchall(), seconds=30)
    await tab.reload()
    await expect(screen.button(tab, "Sign in with Example House")).to_be_visible()
    await screen.button(tab, "Sign in with Example House").click()
    await tab.get_by_text("Continue").click()  # it is still signed in there
    await expect(tab.get_by_text("you may not use this server")).to_be_visible()
    await tab.get_by_text("Back to sign-in").click()
    await expect(screen.button(tab, "Sign in with Example House")).to_be_visible()
