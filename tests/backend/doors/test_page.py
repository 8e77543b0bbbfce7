"""What the server does for the page: which chat it may show, what it may load."""

import json
import re
from typing import Any

import pytest

from backend.doors import page
from tests.backend.conftest import Backend
from tests.chatkit_client import ChatKit

CDN = "https://cdn.platform.openai.com"


async def page_of(chat: ChatKit, path: str = "/", **headers: str) -> tuple[dict[str, Any], str]:
    """The configuration in the page, and its policy."""
    response = await chat.http.get(path, headers=headers)
    assert response.status_code == 200
    (config,) = re.findall(r'<script type="application/json" id="config">(.*?)</script>', response.text)
    return json.loads(config), response.headers["content-security-policy"]


async def test_on_localhost_openai_s_widget_may_be_tried(chat: ChatKit) -> None:
    config, policy = await page_of(chat)
    assert config == {
        "auth": "none",
        "model": {"offline": True, "name": "offline-rules"},
        "messageChars": 8000,
        "widget": {"domainKey": "local-dev"},
        "agents": None,
        "ui": "auto",
    }
    assert f"script-src 'self' {CDN};" in policy
    assert f"frame-src {CDN};" in policy


async def test_the_built_in_chat_loads_nothing_from_elsewhere(chat: ChatKit) -> None:
    config, policy = await page_of(chat, "/?ui=built-in")
    assert config["ui"] == "built-in"
    assert "http" not in policy
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy


async def test_a_conversation_s_address_is_the_same_page_and_only_one_of_our_form_is(chat: ChatKit) -> None:
    address = "/c/thr_0123456789abcdef0123456789abcdef"
    assert await page_of(chat, f"{address}?ui=built-in") == await page_of(chat, "/?ui=built-in")
    for other in (
        "/c/",
        "/c/thr_1",
        "/c/run_0123456789abcdef0123456789abcdef",
        f"{address}0",
        f"{address}/x",
        "/c/%00",
    ):
        assert (await chat.http.get(other)).status_code == 404


@pytest.mark.parametrize(
    ("setting", "key", "host", "expected"),
    [
        ("auto", None, "todo.example", None),
        ("auto", "domain_pk_1", "todo.example", "domain_pk_1"),
        ("auto", "domain_pk_1", "localhost:8000", "domain_pk_1"),
        ("on", None, "todo.example", "local-dev"),
        ("off", "domain_pk_1", "localhost:8000", None),
    ],
)
async def test_the_widget_is_tried_where_it_can_work_and_never_when_it_is_off(
    backend: Backend, setting: str, key: str | None, host: str, expected: str | None
) -> None:
    async with backend(chatkit_widget=setting, chatkit_domain_key=key, allowed_hosts=("todo.example",)) as chat:
        config, policy = await page_of(chat, Host=host)
        assert (config["widget"] or {}).get("domainKey") == expected
        assert (CDN in policy) == (expected is not None)


async def test_no_setting_can_end_the_block_of_configuration(backend: Backend) -> None:
    name = "</script><script>alert(1)</script>"
    async with backend(llm_model=name) as chat:
        text = (await chat.http.get("/?ui=</script><script>alert(2)</script>")).text
        assert "alert(2)" not in text
        assert text.count("alert(1)") == 1
        assert (await page_of(chat))[0]["model"]["name"] == name


async def test_the_page_s_files_are_small_on_the_wire_and_asked_for_again_by_etag(chat: ChatKit) -> None:
    response = await chat.http.get("/web/style.css")
    assert response.headers["content-encoding"] == "gzip"
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["content-type"].startswith("text/css")
    again = await chat.http.get("/web/style.css", headers={"If-None-Match": response.headers["etag"]})
    assert again.status_code == 304
    assert (await chat.http.get("/web/../settings.py")).status_code == 404
    assert (await chat.http.get("/web/%2e%2e/settings.py")).status_code == 404


async def test_a_module_is_sent_without_its_comments(chat: ChatKit) -> None:
    response = await chat.http.get("/web/page.js")
    assert response.headers["content-type"].startswith("text/javascript")
    assert "@param" in (page.WEB / "page.js").read_text()
    assert "@param" not in response.text
    again = await chat.http.get("/web/page.js", headers={"If-None-Match": response.headers["etag"]})
    assert again.status_code == 304
    assert "SPDX" in (await chat.http.get("/web/vendor/lit-html/lit-html.js")).text


async def test_other_answers_allow_no_content_at_all(chat: ChatKit) -> None:
    policy = (await chat.http.get("/health")).headers["content-security-policy"]
    assert policy == "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


async def test_the_whole_page_weighs_little(chat: ChatKit) -> None:
    """All that a browser may ever load of it, each file by itself: also what is loaded when it is used first."""
    files = [path for kind in ("js", "css") for path in page.WEB.rglob(f"*.{kind}")]
    answers = [await chat.http.get(path) for path in ("/", *(f"/web/{file.relative_to(page.WEB)}" for file in files))]
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.headers["content-encoding"] for answer in answers if len(answer.content) > 500} == {"gzip"}
    assert 50_000 < sum(answer.num_bytes_downloaded for answer in answers) < 120_000
