"""Records what every API shows of a user, to compare two versions of the program on one database."""

import json
import re
from typing import Any

from tests.support.users import User

Json = dict[str, Any]
USERS = ("anna", "ben")
_VIEWS = ("today", "upcoming", "all", "done", "deleted")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_DIFFERENT_EACH_TIME = {
    re.compile(r"ntc_\w+"): "ntc_",
    re.compile(r"http://localhost:\d+"): "http://localhost",
    re.compile(r"(\"now\": \"2026-11-25T)\d\d:\d\d"): r"\g<1>09:00",
}


async def record(user: User) -> Json:
    """Returns the responses by address."""
    chats = (await user.runs.get_chats(limit=100))["chats"]
    recorded: Json = {f"/tasks?view={view}": await user.runs.tasks(view) for view in _VIEWS}
    recorded["/memory"] = await user.runs.memory()
    recorded["/chats"] = chats
    recorded["threads.list"] = (await user.chatkit.list_threads(limit=100)).data
    for chat in chats:
        recorded |= await _record_conversation(user, chat["id"])
    return recorded


async def _record_conversation(user: User, chat: str) -> Json:
    shown = await user.runs.get_chat(chat, limit=100)
    recorded: Json = {
        f"/chats/{chat}": shown,
        f"/chats/{chat}/log": [json.loads(line) for line in await user.runs.get_log(chat)],
        f"threads.get_by_id {chat}": await user.chatkit.get_thread(chat),
        f"items.list {chat}": await user.chatkit.items(chat),
    }
    for run in shown["interactions"]:
        path = f"/chats/{chat}/interactions/{run['id']}"
        recorded[f"{path}/steps"] = await user.runs.get_steps(chat, run["id"], limit=100)
        if run["status"] not in ("RUNNING", "WAITING_APPROVAL"):
            events = await user.runs.read(chat, run["id"])
            recorded[f"{path}/events"] = [{"number": one.number, "event": one.name, "data": one.data} for one in events]
    return recorded


def normalise(recorded: Json, *, later_than: str) -> Json:
    """Replaces what differs each time: ids, addresses, and instants after the database was dumped."""
    text = json.dumps(recorded, ensure_ascii=False)
    text = _INSTANT.sub(lambda found: "later" if found[0][:19] > later_than else found[0], text)
    for pattern, same in _DIFFERENT_EACH_TIME.items():
        text = pattern.sub(same, text)
    return json.loads(text)
