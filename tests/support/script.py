"""Short forms of steps of the scripted model; tests/scripted_endpoint/script.py has all fields."""

from typing import Any

Json = dict[str, Any]

SLOW_TEXT = "one two three four five six seven eight nine ten"
SLOW: Json = {"text": SLOW_TEXT, "chunk_chars": 4, "token_delay": 0.1}
"""An answer that takes more than a second, so that a test can follow, steer, stop or leave it."""


def pausing_answer(beginning: str, rest: str) -> Json:
    """Returns an answer that pauses after its beginning until `model.release()`."""
    return {"text": beginning + rest, "chunk_chars": len(beginning), "hold_after": 2}


PAUSING = pausing_answer("one two three ", "four five six seven eight nine ten")
"""`SLOW_TEXT`, which goes on after its beginning when the test releases it."""


def endless_answer(text: str) -> Json:
    """Returns an answer that has to be stopped."""
    return pausing_answer(text, " never")


def call(tool: str, **arguments: Any) -> Json:
    return {"name": tool, "arguments": arguments}


def calls(*tool_calls: Json, text: str = "", reasoning: str = "") -> Json:
    return {"text": text, "reasoning": reasoning, "tool_calls": [*tool_calls]}


def says(text: str, *, reasoning: str = "") -> Json:
    return {"text": text, "reasoning": reasoning}


def summarises(text: str) -> Json:
    return {"when": "Summarise", "text": text}


def add_task(title: str, **more: Any) -> Json:
    return calls(call("add_task", title=title, **more))


def add_tasks(count: int) -> Json:
    """Returns a call that adds "task 1" and so on; to delete more than ten needs an approval."""
    first, *others = (f"task {number}" for number in range(1, count + 1))
    return add_task(first, also=others)


def delete_tasks(*numbers: int) -> Json:
    first, *rest = numbers
    return calls(call("delete_task", task_id=first, **({"also": rest} if rest else {})))


def start_coder(task: str) -> Json:
    return calls(call("do_with_coder", task=task, task_id=None))


def start_researcher(task: str) -> Json:
    return calls(call("do_with_researcher", task=task, task_id=None))
