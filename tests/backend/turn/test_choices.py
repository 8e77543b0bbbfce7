"""A person may ask another model for one answer, of those that are offered, and how freely it is to write."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.backend.agents_at_work import coder
from tests.backend.conftest import Backend
from tests.backend.consent import call, calls, cards, decide
from tests.chatkit_client import ChatKit
from tests.runs_client import Runs, id_of
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.long

OFFERED = {"llm_model": "small", "llm_models": ("small", "large"), "llm_temperature": 0.5}
METADATA = {"metadata": {"temperature": 1.25}}


@pytest.fixture
async def chat(backend: Backend) -> AsyncIterator[ChatKit]:
    async with backend(**OFFERED, approvals=("add_task",)) as chat:
        yield chat


def sent(requests: list[dict[str, Any]]) -> list[tuple[str, float]]:
    return [(one["body"]["model"], one["body"]["temperature"]) for one in requests]


async def test_an_answer_is_the_chosen_models_and_the_next_is_not(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script(*[{"text": "Good."}] * 6)
    asked = {"user_message": "hello", "model": "large", **METADATA}
    edited = {"new_user_message": "hi", "model": "large", **METADATA}
    async with Runs(chat.base_url) as runs:
        await chat.http.post("/chats/one/interactions", json=asked)
        run = id_of(await runs.say("one", "again"))
        await chat.http.post(f"/chats/one/interactions/{run}/edit", json=edited)
        stored = (await runs.get_chat("one"))["interactions"]
    metadata = {"detached": True, "temperature": 1.25}
    body = {
        "content": [{"type": "input_text", "text": "hello"}],
        "attachments": [],
        "inference_options": {"model": "large"},
    }
    for kind, params in (
        ("threads.create", {"input": body}),
        ("threads.add_user_message", {"input": body, "thread_id": (await chat.say("hello")).thread_id}),
    ):
        await chat.http.post("/chatkit", json={"type": kind, "params": params, "metadata": metadata})
    assert sent(await model.finished_requests()) == [
        ("large", 1.25),
        ("small", 0.5),
        ("large", 1.25),
        ("small", 0.5),
        ("large", 1.25),
        ("large", 1.25),
    ]
    assert [(one["usage"]["model"], one["usage"].get("temperature")) for one in stored] == [("large", 1.25)] * 2


async def test_it_is_the_same_ones_after_its_person_was_asked(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script(calls(call("add_task", title="milk")), {"text": "Added."})
    waits = await chat.stream(
        "threads.create",
        input={
            "content": [{"type": "input_text", "text": "add milk"}],
            "attachments": [],
            "inference_options": {"model": "large"},
        },
    )
    assert (await decide(chat, cards(waits)[0], approve=True)).text == "Added."
    assert [name for name, _ in sent(await model.finished_requests())] == ["large", "large"]


async def test_the_agents_of_an_answer_ask_its_model_and_their_own_temperature(
    backend: Backend, with_agents: dict[str, Any], model: ScriptedModel
) -> None:
    writes = calls(call("write_file", path="a.txt", content="x"))
    await model.script(*[calls(coder()), writes, {"text": "Done."}, {"text": "It is done."}] * 2)
    async with backend(**OFFERED, **with_agents) as chat, Runs(chat.base_url) as runs:
        await runs.say("one", "do it", more={"model": "large", **METADATA})
        await runs.say("one", "do it again")
        lines = [line async for line in runs.get_log("one")]
    asked = sent(await model.finished_requests())
    assert asked[:4] == [("large", 1.25), ("large", 0.2), ("large", 0.2), ("large", 1.25)]
    assert asked[4:] == [("small", 0.5), ("small", 0.2), ("small", 0.2), ("small", 0.5)]
    logged = [line["model"] for line in lines if line["event"] == "assistant_message"]
    assert sorted(logged) == sorted(name for name, _ in asked)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"model": "huge"}, "There is no such model here. Ask for one of these: small, large."),
        *[
            ({"metadata": {"temperature": wrong}}, "temperature is a number from 0 to 2; leave it out")
            for wrong in (2.1, -0.1, "1", True, [])
        ],
    ],
)
async def test_anything_else_is_refused_and_nothing_is_stored(
    asked: dict[str, Any], sentence: str, chat: ChatKit
) -> None:
    response = await chat.http.post("/chats/one/interactions", json={"user_message": "hello", **asked})
    assert (response.status_code, response.json()["error"][: len(sentence)]) == (400, sentence)
    options = {"model": asked["model"]} if "model" in asked else {}
    body = {"content": [{"type": "input_text", "text": "x"}], "attachments": [], "inference_options": options}
    request = {"type": "threads.create", "params": {"input": body}, "metadata": asked.get("metadata", {})}
    response = await chat.http.post("/chatkit", json=request)
    assert (response.status_code, response.json()["error"][: len(sentence)]) == (400, sentence)
    assert (await chat.list_threads()).data == []


async def test_which_may_be_asked_is_told(chat: ChatKit) -> None:
    assert (await chat.http.get("/ready")).json()["model"]["models"] == ["small", "large"]
