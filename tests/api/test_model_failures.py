"""What a user is shown when the model's provider fails, and what is kept of the answer."""

from typing import Any

import pytest

from tests.chatkit_client import text_of
from tests.scripted_model import ScriptedModel
from tests.support.completions import chunk
from tests.support.script import call, calls, says
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User

SECRET = "sk-very-secret"
FLAT = {"message": f"no {SECRET}", "type": "invalid_request_error", "code": "wrong_api_format"}
HTML = {"content-type": "text/html; charset=utf-8"}
SOON = {"retry-after": "0.01"}


def status(code: int, body: Any = FLAT, **headers: str) -> dict[str, Any]:
    return {"status": code, "body": body, "headers": headers}


# What the provider does, whether the user is offered to try again, and how many requests are made.
FAILURES: dict[str, tuple[list[dict[str, Any]], bool, int]] = {
    "400 flat": ([status(400)], False, 1),
    "401": ([status(401)], False, 1),
    "429 for long": ([status(429, **{"retry-after": "3600"})], True, 1),
    "503 that does not pass": ([status(503, **SOON)] * 9, True, 3),
    "a page": ([{"status": 200, "body": "<html></html>", "headers": HTML}], False, 1),
    "length without text": ([{"finish_reason": "length"}], True, 1),
    "nothing said": ([{"finish_reason": "stop"}] * 2, True, 2),
    "ended by the server before a word": ([{"finish_reason": "abort"}] * 9, True, 3),
    "429 whose words ask to wait for long": ([status(429, {"error": {"message": "Try again in 10m0s."}})], True, 1),
    "a filter": ([status(400, {"error": {"code": "data_inspection_failed", "message": "No."}})], False, 1),
}


@pytest.mark.parametrize("case", FAILURES)
async def test_failure_is_explained(case: str, user: User, model: ScriptedModel, stored: Stored, stack: Stack) -> None:
    steps, allow_retry, requests = FAILURES[case]
    await model.script(*steps)
    answer = await user.chatkit.say("add milk")
    assert answer.error is not None
    assert answer.error["message"]
    assert answer.error["allow_retry"] is allow_retry
    assert SECRET not in str(answer.events) + (await user.runs.http.get("/ready")).text
    assert SECRET not in "".join(backend.log_text for backend in stack.backends)
    assert len(await model.finished_requests()) == requests
    assert stored.run_statuses(user.name) == ["failed"]
    assert [item["type"] for item in await user.chatkit.items(answer.thread_id)] == ["user_message", "task"]
    await model.reset()
    await model.script(says("Hello."))
    assert (await user.chatkit.say("hello", answer.thread_id)).text == "Hello."


PASSING: dict[str, dict[str, Any]] = {
    "429": status(429, **SOON),
    "500": status(500, **SOON),
    "503": status(503, {"error": FLAT}, **SOON),
    "529": status(529, **SOON),
    "429 of a minute that speaks of billing": status(
        429,
        [
            {
                "error": {
                    "code": 429,
                    "message": "You exceeded your current quota, please check your plan and billing details.",
                    "status": "RESOURCE_EXHAUSTED",
                    "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.01s"}],
                }
            }
        ],
    ),
    "400 that is the server's fault": status(400, {"error": {"message": "Oh.", "type": "server_error"}}),
    "400 for a call that the model wrote": status(400, {"message": "Failed to generate tool_calls."}),
    "the server ends the answer before anything is said": {"finish_reason": "abort"},
    "the connection breaks before anything is said": {"text": "never", "cut_after": 0},
    "the body ends before anything is said": {"text": "never", "eof_after": 0},
    "an error chunk": {"raw": ['data: {"error": {"message": "overloaded"}}\n\n']},
    "a flat error chunk": {"raw": ['data: {"message": "overloaded", "code": "x"}\n\n']},
}


@pytest.mark.parametrize("case", PASSING)
async def test_passing_fault_is_retried(case: str, user: User, model: ScriptedModel) -> None:
    await model.script(PASSING[case], says("Hello."))
    answer = await user.chatkit.say("hello")
    assert answer.error is None
    assert answer.text == "Hello."
    assert len(answer.of("progress_update")) == 1, "the user is told"
    assert len(await model.finished_requests()) == 2


@pytest.mark.parametrize("silent", [{"reasoning": "Hm.", "finish_reason": "stop"}, {"finish_reason": "stop"}])
async def test_an_answer_without_text_is_asked_for_again_once(
    silent: dict[str, Any], user: User, model: ScriptedModel
) -> None:
    await model.script(silent, says("Hello."))
    answer = await user.chatkit.say("hello")
    assert (answer.error, answer.text) == (None, "Hello.")
    assert len(await model.finished_requests()) == 2


BROKEN: dict[str, dict[str, Any]] = {
    "cut": {"text": "Let me see what there is", "chunk_chars": 4, "cut_after": 4},
    "clean end": {"text": "Let me see what there is", "chunk_chars": 4, "eof_after": 4},
    "error chunk": {"raw": [chunk({"content": "Let me"}), 'data: {"error": {"message": "gone"}}\n\n']},
}


@pytest.mark.parametrize("case", BROKEN)
async def test_shown_text_is_kept_and_nothing_is_repeated(
    case: str, user: User, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(BROKEN[case])
    answer = await user.chatkit.say("hello")
    assert answer.error is not None
    assert answer.error["allow_retry"] is True
    assert len(await model.finished_requests()) == 1
    assert answer.text.startswith("Let me")
    items = await user.chatkit.items(answer.thread_id)
    assert [text_of(item) for item in items if item["type"] == "assistant_message"] == [answer.text]
    assert stored.run_statuses(user.name) == ["failed"]


async def test_long_thoughts_with_text_between(user: User, model: ScriptedModel) -> None:
    """Two items, and no event that repeats what was said before."""
    thought = [chunk({"reasoning": f"{number:029} "}) for number in range(400)]
    raw = [*thought, chunk({"content": "One."}), *thought, chunk({"content": " Two."}), chunk({}, "stop")]
    await model.script({"raw": raw})
    answer = await user.chatkit.say("think")
    workflows = [item for item in answer.items if item["type"] == "workflow"]
    assert len({item["id"] for item in workflows}) == len(workflows) == 2
    assert sum(len(item["workflow"]["tasks"][0]["content"]) for item in workflows) == 400 * 30 * 2
    assert sum(len(str(event)) for event in answer.events) < 400_000
    kept = [item for item in await user.chatkit.items(answer.thread_id) if item["type"] == "workflow"]
    assert [item["id"] for item in kept] == [item["id"] for item in workflows]


async def test_items_of_a_model_turn_keep_their_order(user: User, model: ScriptedModel) -> None:
    """Thought, text, calls: as they are streamed, and after a reload."""
    await model.script({**calls(call("add_task", title="milk"), text="Let me see."), "reasoning": "Hm."}, says("Fine."))
    answer = await user.chatkit.say("add milk")
    kinds = ["user_message", "workflow", "assistant_message", "widget", "assistant_message", "widget"]
    assert [item["type"] for item in answer.items] == kinds
    assert [item["type"] for item in await user.chatkit.items(answer.thread_id)] == kinds
