"""The command `/schedules`, which lists and changes schedules."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from cli.chat.connection import Connection
from cli.chat.rendering import cut_line
from cli.chat.session import ChatSession
from common.clock import find_zone

_ACTIONS = ("pause", "resume", "run", "delete")
_DONE = {"pause": "Paused.", "resume": "Resumed.", "run": "Started.", "delete": "Deleted."}
_LAST = {
    "running": "running now",
    "waiting": "waits for your approval",
    "completed": "done",
    "failed": "failed",
    "cancelled": "stopped",
    "interrupted": "interrupted",
}


async def manage(chat: ChatSession, argument: str) -> None:
    """Lists the schedules, or changes one by its number in the list."""
    action, _, number = argument.partition(" ")
    listed = (await chat.connection.runs.request_json("GET", "/schedules"))["schedules"]
    if not action:
        await _show(chat, listed)
        return
    if action not in _ACTIONS:
        await chat.screen.fail(f"Write one of these after /schedules, and a number: {', '.join(_ACTIONS)}.")
        return
    if not number.strip().isdecimal() or not 1 <= int(number) <= len(listed):
        await chat.screen.fail(f"Write the number of a schedule, such as /schedules {action} 1. /schedules lists them.")
        return
    await _change(chat, action, f"/schedules/{listed[int(number) - 1]['id']}")
    await chat.screen.note(_DONE[action])


async def list_actions(_: Connection) -> Sequence[str]:
    return _ACTIONS


async def _change(chat: ChatSession, action: str, path: str) -> None:
    runs = chat.connection.runs
    match action:
        case "delete":
            await runs.request("DELETE", path)
        case "run":
            await runs.request("POST", f"{path}/run")
        case _:
            await runs.request_json("PATCH", path, {"paused": action == "pause"})


async def _show(chat: ChatSession, listed: Sequence[dict[str, Any]]) -> None:
    if not listed:
        await chat.screen.note("Nothing is scheduled. Say, for example: every Friday at 16:00 summarise what I did.")
        return
    for number, one in enumerate(listed, start=1):
        await chat.screen.show(cut_line(f"{number}. {one['text']}"), cut_line("   ", (_describe(one), "dim")))


def _describe(one: dict[str, Any]) -> str:
    zone = find_zone(one["time_zone"])  # in which `when` is
    state = f"next {_render(one['next_at'], zone)}" if one["state"] == "on" else one["state"]
    parts = [one["when"], state]
    if last := one["last"]:
        changes = last["problem"] or last["changes"]
        parts.append(f"last {_render(last['at'], zone)}: {_LAST[last['state']]}{f', {changes}' if changes else ''}")
    if skipped := one["skipped"]:
        parts.append(f"skipped {_render(skipped['at'], zone)}: {skipped['reason']}")
    return " · ".join(parts)


def _render(instant: str, zone: ZoneInfo | None) -> str:
    return f"{datetime.fromisoformat(instant).astimezone(zone):%a %d %b %H:%M}"
