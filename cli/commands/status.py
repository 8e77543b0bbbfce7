import argparse
import datetime
import json
from typing import Any

from cli import data_dir, terminal
from cli.arguments import Commands, add_command
from cli.services import running

NOT_READY, NOTHING_RUNS = 2, 1


def add(commands: Commands) -> None:
    add_command(
        commands,
        "status",
        run,
        "show what is running",
        "Shows what is running, where, since when, and whether it is ready. Exit status 1: nothing is running, 2: "
        "something is not ready.",
    )


def run(arguments: argparse.Namespace) -> int:
    directory = arguments.data_dir
    state = running.read_state(directory)
    if state is None:
        terminal.say(f"Nothing is running with the data in {directory}. Start it with ./todo up.")
        return NOTHING_RUNS
    found = state["parts"]
    conditions = [_describe_part(part) for part in found]
    for part, (_, condition) in zip(found, conditions, strict=True):
        where = f"127.0.0.1:{part['port']}" if part["port"] else "a local socket"
        since = f"since {_format_time(part['since'])}"
        terminal.say(f"  {part['name']:<14} {where:<16} {since:<25} {condition}")
    terminal.say(f"  page  {state.get('page', 'not yet')}")
    terminal.say(f"  data  {directory}")
    terminal.say(f"  logs  {data_dir.logs(directory)}")
    terminal.say(f"./todo up is process {state['pid']}.")
    return 0 if found and all(well for well, _ in conditions) else NOT_READY


def _describe_part(part: dict[str, Any]) -> tuple[bool, str]:
    if part["pid"] is None:
        return False, "keeps dying, and is tried again slowly" if part.get("keeps_dying") else "died, and restarts soon"
    if not part["port"]:
        return True, "runs"
    status, text = running.probe(part["port"], part["path"])
    if not status:
        return False, "does not answer"
    if status != 200:
        return False, f"not ready: {_find_reason(text)}"
    return True, f"ready{_describe_limits(json.loads(text))}"


def _describe_limits(answer: dict[str, Any]) -> str:
    notes = [f", but {name} {reason}" for name, reason in answer.get("unusable", {}).items()]
    if "confinement" in answer:
        confined = answer["confinement"]
        notes.append(f", commands in {confined}" if confined else ", no commands, because there is no sandbox")
    return "".join(notes)


def _find_reason(text: str) -> str:
    try:
        return json.loads(text)["reason"]
    except (ValueError, KeyError, TypeError):
        return text[:200]


def _format_time(stamp: float) -> str:
    return datetime.datetime.fromtimestamp(stamp).astimezone().strftime("%Y-%m-%d %H:%M:%S")
