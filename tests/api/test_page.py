"""What the server does for the page: which conversation it may show, and what it may load."""

import json
import re
from typing import Any

import httpx2
import pytest

from tests.support.users import User

CONVERSATION = "/c/thr_0123456789abcdef0123456789abcdef"
JSON = "application/json"


@pytest.fixture
def http(user: User) -> httpx2.AsyncClient:
    return user.chatkit.http


async def page_of(http: httpx2.AsyncClient, path: str) -> tuple[dict[str, Any], str]:
    """The configuration in the page, and its policy."""
    response = await http.get(path)
    assert response.status_code == 200
    (config,) = re.findall(r'<script type="application/json" id="config">(.*?)</script>', response.text)
    return json.loads(config), response.headers["content-security-policy"]


async def test_configuration(http: httpx2.AsyncClient) -> None:
    config, _ = await page_of(http, "/")
    assert config["auth"] == "jwt"
    assert config["model"] == {"offline": True, "name": "offline-rules", "writesCalls": False}
    assert config["messageChars"] == 8000
    assert config["agents"]["fileBytes"] > 0


async def test_page_loads_nothing_from_elsewhere(http: httpx2.AsyncClient) -> None:
    config, policy = await page_of(http, "/")
    assert config["domainKey"] is None
    assert config["hasWidget"] is True
    assert "http" not in policy
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy


async def test_widget_page_loads_openais_script_and_no_other(http: httpx2.AsyncClient) -> None:
    config, policy = await page_of(http, "/widget")
    assert config["domainKey"] == "local-dev"
    assert set(re.findall(r"https?://[^ ;]+", policy)) == {"https://cdn.platform.openai.com"}


@pytest.mark.parametrize("stack_name", ["limits"])
async def test_widget_page_needs_a_domain_key_or_this_machine(http: httpx2.AsyncClient) -> None:
    foreign = {"Host": "todo.example"}
    missing = await http.get("/widget", headers=foreign)
    assert missing.status_code == 404
    assert missing.json() == {"error": "OpenAI's chat is off here. Open / for the built-in chat."}
    assert '"hasWidget": false' in (await http.get("/", headers=foreign)).text


@pytest.mark.parametrize("path", ["/today", "/upcoming", "/all?label=home", "/done", "/deleted", "/t/12", CONVERSATION])
async def test_addresses_of_the_page(path: str, http: httpx2.AsyncClient) -> None:
    assert await page_of(http, path) == await page_of(http, "/")


@pytest.mark.parametrize(
    "path", ["/nothing", "/c/thr_1", f"{CONVERSATION}0", "/c/%00", "/t/x", "/t/0", "/c/", "/today/x"]
)
async def test_unknown_address_is_answered_with_the_page_if_a_browser_opens_it(
    path: str, http: httpx2.AsyncClient
) -> None:
    for headers in ({"Sec-Fetch-Mode": "navigate"}, {"Accept": "text/html,*/*;q=0.8"}):
        response = await http.get(path, headers=headers)
        assert (response.status_code, response.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert '"missing": true' in response.text
    for headers in ({}, {"Sec-Fetch-Mode": "cors", "Accept": "text/html"}):
        response = await http.get(path, headers=headers)
        assert response.status_code == 404
        assert response.json()["error"].startswith(f"There is nothing at {path}.")
    assert (await http.post(path, headers={"Sec-Fetch-Mode": "navigate"}, json={})).headers["content-type"] == JSON


async def test_assets_are_compressed_and_never_change(http: httpx2.AsyncClient) -> None:
    html = (await http.get("/today")).text
    assert "/assets/" not in html.replace('"assets/', ""), "addresses are relative to the base"
    for name, kind in (("style.css", "text/css"), ("page.js", "text/javascript")):
        (path,) = set(re.findall(rf'"(assets/[0-9a-f]+/{name})"', html))
        response = await http.get(path)
        assert response.headers["content-encoding"] == "gzip"
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert response.headers["content-type"].startswith(kind)
        plain = await http.get(path, headers={"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert plain.content == response.content

        other = await http.get(f"/assets/0123456789abcdef/{name}")
        assert other.content == response.content, "another version may ask for it, while servers are replaced"
        assert other.headers["cache-control"] == "no-cache"
        again = await http.get(f"/assets/0/{name}", headers={"If-None-Match": other.headers["etag"]})
        assert (again.status_code, again.headers["cache-control"]) == (304, "no-cache")
    for path in ("%2e%2e/settings.py", "..%2f..%2fpyproject.toml", "index.html", "tasks/types.d.ts"):
        assert (await http.get(f"/assets/0/{path}")).status_code == 404


async def test_manifest_and_worker_are_asked_for_again(http: httpx2.AsyncClient) -> None:
    for path, kind in (("/manifest.json", "application/manifest+json"), ("/service-worker.js", "text/javascript")):
        response = await http.get(path)
        assert response.headers["cache-control"] == "no-cache"
        assert response.headers["content-type"].startswith(kind)
    manifest = (await http.get("/manifest.json")).json()
    assert (manifest["start_url"], manifest["scope"]) == ("./", "./")
    for icon in manifest["icons"]:
        assert (await http.get(icon["src"])).headers["content-type"] == icon["type"]
