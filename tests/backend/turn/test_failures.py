"""What a person is told when something fails, and what is kept."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import psycopg
import pytest
from pydantic import TypeAdapter, ValidationError
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from backend.turn.lifecycle.endings import explain
from tests.backend.completions import check_pairs, chunk
from tests.backend.conftest import Backend, Rows
from tests.chatkit_client import ChatKit, text_of
from tests.scripted_model import ScriptedModel
from tests.serving import serve

SECRET = "sk-very-secret"
FLAT = {"message": f"no {SECRET}", "type": "invalid_request_error", "code": "wrong_api_format"}
ENVELOPED = {"error": FLAT}


def status(code: int, body: Any = FLAT, **headers: str) -> dict[str, Any]:
    return {"status": code, "body": body, "headers": headers}


# what the provider does → what is said, whether to offer a retry, how many requests are made
FAILURES: dict[str, tuple[list[dict[str, Any]], str, bool, int]] = {
    "400 flat": ([status(400)], "not set up correctly", False, 1),
    "400 enveloped": ([status(400, ENVELOPED)], "not set up correctly", False, 1),
    "401": ([status(401)], "its key was refused", False, 1),
    "402": ([status(402)], "no credit", False, 1),
    "403": ([status(403)], "its key was refused", False, 1),
    "404": ([status(404)], "name or address is unknown", False, 1),
    "422": ([status(422)], "refused the request", False, 1),
    "429 for long": ([status(429, **{"retry-after": "3600"})], "busy right now", True, 1),
    "a page instead of an answer": (
        [{"status": 200, "body": "<html></html>", "headers": {"content-type": "text/html; charset=utf-8"}}],
        "name or address is unknown",
        False,
        1,
    ),
    "an error in HTML": ([status(400, "<html>oops</html>")], "not set up correctly", False, 1),
    "broken JSON, again and again": ([{"raw": ["data: {oops\n\n"]}] * 4, "service failed", True, 4),
    "length without text": ([{"finish_reason": "length"}], "output limit", True, 1),
    "nothing said": ([{"finish_reason": "stop"}], "empty answer", True, 1),
}


@pytest.mark.parametrize("case", FAILURES)
async def test_a_failing_model_is_explained(
    chat: ChatKit, model: ScriptedModel, rows: Rows, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    steps, sentence, allow_retry, requests = FAILURES[case]
    await model.script(*steps)
    answer = await chat.say("add milk")
    assert answer.error is not None
    assert sentence in answer.error["message"]
    assert answer.error["allow_retry"] is allow_retry
    assert SECRET not in str(answer.events)
    reference = re.search(r"\(Reference ([0-9a-f]{8})\)$", answer.error["message"])
    assert reference is not None
    assert reference.group(1) in caplog.text
    assert SECRET not in caplog.text
    assert len(await model.finished_requests()) == requests
    assert rows("SELECT status, outcome FROM runs") == [{"status": "ended", "outcome": "failed"}]
    assert [item["type"] for item in await chat.items(answer.thread_id)] == ["user_message", "task"]
    assert (await chat.say("hello", answer.thread_id)).error is None


PASSING: dict[str, dict[str, Any]] = {
    "429": status(429, **{"retry-after": "0.05"}),
    "500": status(500),
    "503": status(503, ENVELOPED),
    "529": status(529),
    "the connection breaks before anything is said": {"text": "never", "cut_after": 0},
    "the body ends before anything is said": {"text": "never", "eof_after": 0},
    "an error chunk": {"raw": ['data: {"error": {"message": "overloaded"}}\n\n']},
    "a flat error chunk": {"raw": ['data: {"message": "overloaded", "code": "x"}\n\n']},
}


@pytest.mark.parametrize("case", PASSING)
async def test_a_passing_fault_is_retried_and_shown(chat: ChatKit, model: ScriptedModel, rows: Rows, case: str) -> None:
    await model.script(PASSING[case], PASSING[case])
    answer = await chat.say("add milk")
    assert answer.error is None
    assert [event["text"] for event in answer.of("progress_update")].count(
        "The model is not answering, trying again…"
    ) + [event["text"] for event in answer.of("progress_update")].count("The model is busy, trying again…") == 2
    assert [row["title"] for row in rows("SELECT title FROM tasks")] == ["milk"]
    assert len(await model.finished_requests()) == 4


async def test_a_fault_that_does_not_pass_is_given_up(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script(*[status(503, **{"retry-after": "0.01"})] * 9)
    answer = await chat.say("add milk")
    assert answer.error is not None
    assert answer.error["allow_retry"] is True
    assert len(await model.finished_requests()) == 4


async def test_a_model_that_is_not_there_is_explained(backend: Backend, free_port: Callable[[], int]) -> None:
    async with backend(llm_base_url=f"http://127.0.0.1:{free_port()}/v1") as chat:
        answer = await chat.say("hello")
        assert answer.error is not None
        assert "cannot be reached" in answer.error["message"]
        assert answer.error["allow_retry"] is True
        ready = await chat.http.get("/ready")
        assert ready.status_code == 200, "the model is reported, not required"
        assert "cannot be reached" in ready.json()["model"]["last"]


PAGE = ("text/html", b"<html>")
BROKEN_JSON = ("application/json", b"{oops")


@pytest.mark.parametrize(("answer", "last"), [(PAGE, "address is unknown"), (BROKEN_JSON, "ok")])
async def test_a_model_that_answers_nonsense_does_not_make_the_backend_unready(
    backend: Backend, answer: tuple[str, bytes], last: str
) -> None:
    kind, body = answer

    async def nonsense(scope: Scope, receive: Receive, send: Send) -> None:
        await Response(body, media_type=kind)(scope, receive, send)

    async with serve(nonsense, lifespan="off") as url, backend(llm_base_url=f"{url}/v1") as chat:
        ready = await chat.http.get("/ready")
        assert ready.status_code == 200
        assert last in ready.json()["model"]["last"]


def raised(error: BaseException, *causes: BaseException) -> BaseException:
    """The error, as it is caught, with its causes and their tracebacks."""
    try:
        if causes:
            raise error from raised(*causes)
        raise error
    except type(error) as caught:
        return caught


def database_error(kind: type[DBAPIError]) -> DBAPIError:
    return kind("INSERT INTO tasks", {"title": SECRET}, psycopg.errors.UniqueViolation(f"Key (title)=({SECRET})"))


def shape_error() -> ValidationError:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(int).validate_python(SECRET)
    return refused.value


REQUEST = httpx2.Request("POST", "http://model")
REFUSAL = httpx2.Response(400, request=REQUEST, headers={"x-request-id": "req-7"})
QUOTING = {
    "status": openai.BadRequestError(f"your prompt: {SECRET}", response=REFUSAL, body={"code": "too_long"}),
    "chunk": openai.APIError(f"your prompt: {SECRET}", REQUEST, body={"message": SECRET}),
    "database": database_error(IntegrityError),
    "wrapped": raised(RuntimeError(f"the provider said {SECRET}"), openai.APIError(SECRET, REQUEST, body=None)),
    "shape": shape_error(),
    "with a cause": raised(openai.APIConnectionError(request=REQUEST), ValueError(SECRET)),
}


@pytest.mark.parametrize("case", QUOTING)
def test_the_log_does_not_quote_what_a_provider_or_the_database_quotes(
    caplog: pytest.LogCaptureFixture, case: str
) -> None:
    with caplog.at_level("DEBUG"):
        explanation = explain(raised(QUOTING[case]))
    assert SECRET not in explanation.message
    assert SECRET not in caplog.text
    assert type(QUOTING[case]).__name__ in caplog.text
    assert "in raised" in caplog.text, "the frames are there"
    if case == "status":
        assert "status 400, code 'too_long', request 'req-7'" in caplog.text
    if case == "database":
        assert "SQLSTATE 23505" in caplog.text


def test_an_error_of_our_own_is_logged_in_full(caplog: pytest.LogCaptureFixture) -> None:
    explain(raised(KeyError("title")))
    assert "KeyError: 'title'" in caplog.text


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (database_error(OperationalError), "The database cannot be reached"),
        (database_error(InterfaceError), "The database cannot be reached"),
        (PoolTimeout(), "The database cannot be reached"),
        (database_error(IntegrityError), "Something went wrong"),
        (database_error(DataError), "Something went wrong"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_only_a_database_that_is_away_cannot_be_reached(error: Exception, sentence: str) -> None:
    assert explain(error).message.startswith(sentence)


BROKEN: dict[str, dict[str, Any]] = {
    "cut": {"text": "Let me see what there is", "chunk_chars": 4, "cut_after": 4},
    "clean end": {"text": "Let me see what there is", "chunk_chars": 4, "eof_after": 4},
    "no finish reason": {"text": "Let me see", "chunk_chars": 4, "finish_reason": None},
    "error chunk": {
        "raw": [
            chunk({"content": "Let me"}),
            'data: {"error": {"message": "gone"}}\n\n',
        ]
    },
}


@pytest.mark.parametrize("case", BROKEN)
async def test_shown_text_is_kept_when_the_stream_breaks_and_nothing_is_repeated(
    chat: ChatKit, model: ScriptedModel, rows: Rows, case: str
) -> None:
    await model.script(BROKEN[case])
    answer = await chat.say("hello")
    assert answer.error is not None
    assert answer.error["allow_retry"] is True
    assert len(await model.finished_requests()) == 1
    assert answer.text.startswith("Let me")
    stored = await chat.items(answer.thread_id)
    assert [text_of(item) for item in stored if item["type"] == "assistant_message"] == [answer.text]
    assert rows("SELECT outcome FROM runs") == [{"outcome": "failed"}]


@pytest.mark.parametrize(("reason", "sentence"), [("length", "output limit"), ("content_filter", "filtered")])
async def test_an_answer_cut_short_by_the_provider_says_so(
    chat: ChatKit, model: ScriptedModel, rows: Rows, reason: str, sentence: str
) -> None:
    await model.script({"text": "One, two, thr", "finish_reason": reason})
    answer = await chat.say("count")
    assert answer.text == "One, two, thr"
    assert sentence in answer.of("notice")[0]["message"]
    assert rows("SELECT outcome FROM runs") == [{"outcome": "completed"}]


async def test_too_many_steps_end_the_turn(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script(*[{"tool_calls": [{"name": "list_tasks", "arguments": {"limit": n}}]} for n in range(1, 30)])
    answer = await chat.say("loop")
    assert answer.error is not None
    assert "too many steps" in answer.error["message"]
    assert len(await model.finished_requests()) == 10
    await model.reset()
    again = await chat.say("hello", answer.thread_id)
    assert again.error is None
    check_pairs((await model.finished_requests())[-1]["body"]["messages"])


async def test_a_tool_server_that_is_not_there_fails_the_turn_and_says_so(
    backend: Backend, model: ScriptedModel, free_port: Callable[[], int], rows: Rows
) -> None:
    async with backend(mcp_internal_url=f"http://127.0.0.1:{free_port()}/mcp", mcp_resend_seconds=0.3) as chat:
        answer = await chat.say("hello")
        assert answer.error is not None
        assert "task service cannot be reached" in answer.error["message"]
        assert answer.error["allow_retry"] is True
        assert rows("SELECT outcome FROM runs") == [{"outcome": "failed"}]
    assert await model.requests() == []


async def test_reasoning_is_shown_as_reasoning_and_goes_back_to_cerebras_only(
    chat: ChatKit, model: ScriptedModel
) -> None:
    await model.script(
        {"reasoning": "The person wants milk.", "tool_calls": [{"name": "add_task", "arguments": {"title": "milk"}}]},
        {"reasoning": "Done.", "reasoning_field": "reasoning_content", "text": "Added."},
    )
    answer = await chat.say("add milk")
    shown = [item["workflow"] for item in answer.items if item["type"] == "workflow"]
    assert [workflow["type"] for workflow in shown] == ["reasoning", "reasoning"]
    assert [workflow["tasks"][0]["content"] for workflow in shown] == ["The person wants milk.", "Done."]
    assert [item["type"] for item in await chat.items(answer.thread_id)] == [
        "user_message",
        "workflow",
        "widget",
        "workflow",
        "assistant_message",
    ]
    assert "The person wants milk" not in str([request["body"] for request in await model.finished_requests()])


async def test_turns_do_not_disturb_each_other(chat: ChatKit, rows: Rows) -> None:
    answers = await asyncio.gather(*(chat.say(f"add task {word}") for word in ("one", "two", "three", "four", "five")))
    assert all(answer.error is None for answer in answers)
    assert len(rows("SELECT * FROM tasks")) == 5
