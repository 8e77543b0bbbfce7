"""What the server does for the page: which conversation it may show, and what it may load."""

import json
import re
from typing import Any

import httpx2
import pytest

from tests.support.users import User


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


async def test_address_of_a_conversation(http: httpx2.AsyncClient) -> None:
    address = "/c/thr_0123456789abcdef0123456789abcdef"
    assert await page_of(http, address) == await page_of(http, "/")
    for other in ("/c/thr_1", "/c/run_0123456789abcdef0123456789abcdef", f"{address}0", "/c/%00"):
        missing = await http.get(other)
        assert missing.status_code == 404
        assert missing.headers["content-type"].startswith("text/html"), "the page itself says that it is not there"
    for other in ("/c/", f"{address}/x"):
        assert (await http.get(other)).status_code == 404


async def test_files_are_compressed_and_have_an_etag(http: httpx2.AsyncClient) -> None:
    for name, kind in (("style.css", "text/css"), ("page.js", "text/javascript")):
        response = await http.get(f"/web/{name}")
        assert response.headers["content-encoding"] == "gzip"
        assert response.headers["cache-control"] == "no-cache"
        assert response.headers["content-type"].startswith(kind)
        again = await http.get(f"/web/{name}", headers={"If-None-Match": response.headers["etag"]})
        assert again.status_code == 304
    for path in ("/web/../settings.py", "/web/%2e%2e/settings.py", "/web/..%2f..%2fpyproject.toml"):
        assert (await http.get(path)).status_code == 404
