"""A browser to which pushes are delivered, with the notifications that its service worker shows.

Headless Chromium receives pushes by its debugger's protocol, and subscribes to no push service. Its shell without
windows grants no permission for notifications: there, and only there, a list in the worker stands in for what is shown.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

from playwright.async_api import CDPSession, Page, Worker

from tests.browser import screen
from tests.waiting import until

Json = dict[str, Any]
_STAND_IN = """() => {
    self.opened = [];
    clients.openWindow = async (url) => void opened.push(url); // this needs a real click, as the next does
    WindowClient.prototype.focus = async function () { return this; };
    if (Notification.permission === "granted") return;
    let shown = [];
    registration.getNotifications = async () => shown;
    registration.showNotification = async (title, options) => {
        const close = () => (shown = shown.filter((one) => one !== notification));
        const notification = { title, ...options, close };
        shown = [...shown.filter(({ tag }) => tag !== options.tag), notification];
    };
}"""
_SHOWN = """async () => {
    const actionsOf = ({ actions = [] }) => actions.map(({ action }) => action);
    const shown = await registration.getNotifications();
    return shown.map((one) => ({ title: one.title, body: one.body, tag: one.tag, actions: actionsOf(one) }));
}"""
_EVENT = """async ([type, tag, action]) => {
    const notification = (await registration.getNotifications()).find((one) => one.tag === tag);
    if (!notification) throw new Error(`no notification ${tag}`);
    const work = [];
    const waitUntil = (one) => work.push(one);
    const event = Object.assign(new ExtendableEvent(type), { notification, action, waitUntil });
    self.dispatchEvent(event);
    await Promise.all(work);
}"""
_RENEWED = """async (subscription) => {
    const work = [];
    const newSubscription = { toJSON: () => subscription };
    const waitUntil = (one) => work.push(one);
    self.dispatchEvent(Object.assign(new ExtendableEvent("pushsubscriptionchange"), { newSubscription, waitUntil }));
    await Promise.all(work);
}"""
_FAIL = """() => {
    self.failed = 0;
    self.send = fetch;
    self.fetch = async () => {
        failed += 1;
        throw new TypeError("Failed to fetch");
    };
}"""
_CALL = """async ([method, path, body]) => {
    const headers = { "Content-Type": "application/json" };
    const response = await fetch(path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.status === 204 ? null : response.json();
}"""
PERMISSION = """try {
    if (Notification.permission !== "granted") {
        Object.defineProperty(Notification, "permission", { get: () => "granted" });
        Notification.requestPermission = async () => "granted";
    }
} catch {}"""
"""A script for pages: lets them ask the worker for notifications."""


SUBSCRIPTION = {
    "endpoint": "https://updates.push.services.mozilla.com/wpush/v2/a-device",
    "keys": {
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    },
}


async def call(page: Page, method: str, path: str, body: Json | None = None) -> Any:
    """Asks the server as the page does, in its session."""
    return await page.evaluate(_CALL, [method, path, body])


class Device:
    def __init__(self, page: Page, worker: Worker, cdp: CDPSession, registration: str) -> None:
        self.page, self.worker = page, worker
        self._cdp, self._registration = cdp, registration
        self._origin = "/".join(page.url.split("/")[:3])

    @classmethod
    async def of(cls, page: Page) -> Self:
        """Takes the worker of an open page, once it controls the page."""
        registrations: list[Json] = []
        cdp = await page.context.new_cdp_session(await page.context.new_page())  # which stays when the page is closed
        cdp.on("ServiceWorker.workerRegistrationUpdated", lambda event: registrations.extend(event["registrations"]))
        await cdp.send("ServiceWorker.enable")
        await page.evaluate("navigator.serviceWorker.ready.then(() => null)")
        await screen.until(page, "navigator.serviceWorker.controller")
        await until(lambda: registrations and page.context.service_workers)
        worker = page.context.service_workers[0]
        await worker.evaluate(_STAND_IN)
        return cls(page, worker, cdp, registrations[-1]["registrationId"])

    async def push(self, message: Json | str) -> None:
        data = message if isinstance(message, str) else json.dumps(message)
        target = {"origin": self._origin, "registrationId": self._registration}
        await self._cdp.send("ServiceWorker.deliverPushMessage", {**target, "data": data})

    async def shown(self) -> list[Json]:
        return await self.worker.evaluate(_SHOWN)

    async def until_shown(self, *titles: str) -> list[Json]:
        """Waits until these notifications are shown, in any order, and returns them."""

        async def find() -> list[Json] | None:
            shown = await self.shown()
            return shown if sorted(one["title"] for one in shown) == sorted(titles) else None

        return await until(find) if titles else await self._until_none()

    async def _until_none(self) -> list[Json]:
        async def is_empty() -> bool:
            return await self.shown() == []

        await until(is_empty)
        return []

    async def click(self, tag: str, action: str = "") -> None:
        """Clicks on a notification or one of its buttons, and waits until the worker has done what follows."""
        await self.worker.evaluate(_EVENT, ["notificationclick", tag, action])

    async def dismiss(self, tag: str) -> None:
        await self.worker.evaluate(_EVENT, ["notificationclose", tag, ""])

    async def opened(self) -> list[str]:
        """The addresses of the windows that the worker has opened."""
        return await self.worker.evaluate("opened")

    async def renew_subscription(self, subscription: Json) -> None:
        """Says that the push service has replaced the subscription, and waits for what the worker does."""
        await self.worker.evaluate(_RENEWED, subscription)

    @asynccontextmanager
    async def unreachable_server(self) -> AsyncIterator[None]:
        """Lets each request of the worker fail, as without a connection, and counts them."""
        await self.worker.evaluate(_FAIL)
        yield
        await self.worker.evaluate("() => { fetch = send; }")

    async def failed_requests(self) -> int:
        return await self.worker.evaluate("failed")
