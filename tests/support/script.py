"""Steps of the scripted model, shorter to write; all fields are in tests/scripted_endpoint/script.py."""

from typing import Any

Json = dict[str, Any]

SLOW_TEXT = "one two three four five six seven eight nine ten"
SLOW: Json = {"text": SLOW_TEXT, "chunk_chars": 4, "token_delay": 0.1}
"""An answer that takes over a second: it can be followed, steered, stopped or left in the middle."""


def held(beginning: str, rest: str) -> Json:
    """An answer that pauses after its beginning until the test calls `model.release()`."""
    return {"text": beginning + rest, "chunk_chars": len(beginning), "hold_after": 2}


def endless(text: str) -> Json:
    """An answer that never ends by itself: it has to be stopped."""
    return held(text, " never")


def call(tool: str, **arguments: Any) -> Json:
    return {"name": tool, "arguments": arguments}


def calls(*tool_calls: Json, text: str = "", reasoning: str = "") -> Json:
    """A response that makes these calls."""
    return {"text": text, "reasoning": reasoning, "tool_calls": [*tool_calls]}


def says(text: str, *, reasoning: str = "") -> Json:
    return {"text": text, "reasoning": reasoning}


def add_task(title: str, **more: Any) -> Json:
    return calls(call("add_task", title=title, **more))


def delete_tasks(*numbers: int) -> Json:
    first, *others = numbers
    return calls(call("delete_task", task_id=first, **({"also": others} if others else {})))


def start_coder(task: str) -> Json:
    return calls(call("do_with_coder", task=task, task_id=None))


def start_researcher(task: str) -> Json:
    return calls(call("do_with_researcher", task=task, task_id=None))
