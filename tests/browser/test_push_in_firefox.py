"""The whole way of a push in Firefox: permission, subscription, encryption, notification and proof."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

from backend.alerts.channels.channel import Notification
from backend.alerts.channels.push import encrypt, render_payload
from backend.alerts.channels.targets import decode_base64url
from tests.alerts.rows import AlertRows
from tests.browser.firefox import Firefox, firefox
from tests.browser.mozilla_push import MozillaPush
from tests.browser.test_firefox import open_page
from tests.support.stack import Stack
from tests.support.users import User
from tests.waiting import until

pytestmark = [pytest.mark.long(seconds=15), pytest.mark.asyncio(loop_scope="session")]

DIALOG = "document.querySelector('dialog.alerts')?.textContent"
KEY, PROOF = "k" * 24, "a-proof-of-firefox-0000"
SHOWN = """void navigator.serviceWorker.ready.then((registration) => registration.getNotifications()).then((all) => {
    window.shown = all.map(({ title, body, tag }) => [title, body, tag]);
})"""


@pytest.fixture
def rows(stack: Stack) -> Iterator[AlertRows]:
    with AlertRows(stack.database_url) as rows:
        yield rows


def add_delivery(rows: AlertRows, user: User, channel: int) -> None:
    """Stores a morning overview that was sent to the channel."""
    rows.execute(
        "INSERT INTO alerts (user_id, key, kind, alert_at, created_at, state)"
        " VALUES (%(user)s, %(key)s, 'digest', now(), now(), 'sent')",
        **{"user": user.name, "key": KEY},
    )
    rows.execute(
        "INSERT INTO alert_deliveries (user_id, alert_id, channel_id, state, proof, first_at, at)"
        " SELECT %(user)s, id, %(channel)s, 'accepted', %(proof)s, now(), now() FROM alerts WHERE user_id = %(user)s",
        **{"user": user.name, "channel": channel, "proof": PROOF},
    )


def encrypted(target: dict[str, Any], title: str, body: str) -> bytes:
    """What the server would send to Mozilla's push service."""
    message = Notification(KEY, "digest", title, body, "today", None, PROOF, late=False, actions=False)
    public, auth = (decode_base64url(target["keys"][name]) for name in ("p256dh", "auth"))
    sender, salt = generate_private_key(SECP256R1()), secrets.token_bytes(16)
    return encrypt(render_payload(message), receiver=public, auth=auth, sender=sender, salt=salt)


async def shown(browser: Firefox) -> list[list[str]]:
    await browser.evaluate(SHOWN)
    await browser.until("window.shown")
    return await browser.evaluate("window.shown")


async def test_push_in_firefox(user: User, rows: AlertRows) -> None:
    async with MozillaPush.run() as service, firefox(service.preferences) as browser:
        await open_page(browser, user)
        await browser.until("navigator.serviceWorker.controller")
        await browser.click("button", "Menu")
        await browser.click("button", "Notifications")
        await browser.click("checkbox", "Notify me of what is due")
        await browser.click("button", "Notify me on this device")
        await browser.until(f"{DIALOG}.includes('This device gets notifications now, also while this page is closed.')")
        [channel] = rows.channels(user.name)
        assert channel["name"] == "Firefox on Linux"

        add_delivery(rows, user, channel["id"])
        target = channel["target"]
        await service.push(target["endpoint"], encrypted(target, "2 tasks for today", "Buy milk\nCall mum"))
        await until(lambda: [row["state"] for row in rows.deliveries(user.name)] == ["shown"])
        assert await shown(browser) == [["2 tasks for today", "Buy milk\nCall mum", KEY]]
        await browser.click("button", "Close")
        await browser.click("button", "Menu")
        await browser.click("button", "Notifications")
        await browser.until(f"{DIALOG}?.includes('shown on Firefox on Linux')")
        await browser.click("button", "Remove: Firefox on Linux")
        await browser.until(f"{DIALOG}.includes('Removed.')")
        assert rows.channels(user.name) == []
        assert browser.problems == []
