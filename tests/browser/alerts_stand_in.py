"""Stands in for the API of notifications, with states that are hard to bring about; it remembers what it was asked."""

import json
import re
from typing import Any

from playwright.async_api import Page, Request, Route

API = re.compile(r"^\w+://[^/]+/alerts(/|\?|$)")
Json = dict[str, Any]
OUTDATED = "Nothing was done: the task is due at another time by now."


def channel(id: int, kind: str, name: str, **fields: Any) -> Json:
    state: Json = {"state": "on", "problem": None, "confirms": kind == "push", "this_device": False}
    return {
        "id": id,
        "kind": kind,
        "name": name,
        "target": f"target of {name}",
        **state,
        "last_sent_at": None,
        "last_shown_at": None,
        **fields,
    }


def alert(key: str, title: str, **fields: Any) -> Json:
    """As an open page fetches it."""
    due: Json = {"kind": "task", "body": "3:00 PM", "url": "t/1", "task": 1, "proof": None, "late": False}
    return {"key": key, "title": title, **due, "actions": True, **fields}


class AlertsApi:
    def __init__(self, *channels: Json, on: bool = True, **settings: Any) -> None:
        kinds = [
            {"kind": kind, "name": kind, "possible": True, "why_not": None}
            for kind in ("push", "ntfy", "webhook", "email")
        ]
        times = {"remind": 0, "digest_time": "08:00", "quiet_from": None, "quiet_until": None, "push_key": "BA"}
        self.settings: Json = {"on": on, **times, "channels": list(channels), "kinds": kinds, **settings}
        self.recent: list[Json] = []
        self.unshown: list[Json] = []
        self.is_current = True
        """Whether tasks are still as they were when they alerted."""
        self.rejections: dict[str, tuple[int, str]] = {}
        """By path: the status and the sentence."""
        self.asked: list[tuple[str, str, Any]] = []
        """Each request that changes something: its method, path and body."""

    async def prepare(self, page: Page) -> None:
        await page.route(API, self.answer)

    async def answer(self, route: Route) -> None:
        request = route.request
        path = request.url.partition("/alerts")[2].partition("?")[0].lstrip("/")
        if request.method != "GET":
            self.asked.append((request.method, path, request.post_data_json))
        status, body = self._respond(request, path)
        await route.fulfill(status=status, body=json.dumps(body), content_type="application/json")

    def _respond(self, request: Request, path: str) -> tuple[int, Json]:
        if request.method != "GET" and path in self.rejections:
            status, sentence = self.rejections[path]
            return status, {"error": sentence, "code": "rejected"}
        if request.method == "PATCH" and path == "settings":
            self.settings |= request.post_data_json or {}
        if path.endswith("/test"):
            return 200, {"accepted": True, "message": "The notification was accepted."}
        if path.endswith(("/done", "/snooze")):
            return 200, {"done": self.is_current, "message": "It was done." if self.is_current else OUTDATED}
        if path.endswith("/shown"):
            self.unshown = [one for one in self.unshown if not path.startswith(one["key"])]
            return 200, {}
        return 200, {"": {"alerts": self.recent}, "unshown": {"alerts": self.unshown}}.get(path, self.settings)
