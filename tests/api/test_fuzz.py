"""Rubbish in: no 5xx, no hang, no secret out."""

import json
import random
from typing import Any

import pytest

from tests.chatkit_client import JSON, user_input
from tests.mutations import mutated, spoiled
from tests.scripted_model import ScriptedModel
from tests.support.operations import UNKNOWN_THREAD, UNSUPPORTED
from tests.support.script import add_task, says
from tests.support.users import User

SEED, MUTATIONS = 20_261_128, 400


@pytest.mark.long
async def test_mutated_requests(user: User, model: ScriptedModel) -> None:
    chance = random.Random(SEED)
    await model.script(add_task("milk"), says("Fine."), *[says("Hello.")] * MUTATIONS)
    answer = await user.chatkit.say("add milk")
    known = {"thread_id": answer.thread_id, "item_id": answer.user_item_id}
    valid: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/chatkit", {"type": kind, "params": params | {key: known[key] for key in known if key in params}})
        for kind, params in (
            *((kind, {"thread_id": "", **params}) for kind, params in UNKNOWN_THREAD.items()),
            *UNSUPPORTED.items(),
            ("threads.list", {"limit": 5, "order": "asc", "after": answer.thread_id}),
            ("threads.create", {"input": user_input("hello", quoted_text="x")}),
        )
        if kind != "threads.delete"
    ]
    valid += [
        ("POST", "/tasks", {"title": "bread", "due": "2026-12-01", "labels": ["home"], "repeat": "FREQ=DAILY"}),
        ("PATCH", "/tasks/1", {"title": "bread", "due": None, "status": "completed"}),
        ("POST", "/tasks/undo", {"batch": "x"}),
        ("PUT", "/memory", {"text": "* I work nights"}),
        ("POST", "/memory", {"text": "* I work nights", "chat_id": answer.thread_id}),
        ("POST", "/chat", {"threadId": "a", "messages": [{"role": "user", "content": "hello"}]}),
        ("POST", "/conversations", {"title": "a"}),
    ]
    statuses: set[int] = set()
    for number in range(MUTATIONS):
        method, path, body = chance.choice(valid)
        sent = spoiled(json.dumps(mutated(body, chance)).encode(), chance)
        response = await user.chatkit.http.request(method, path, content=sent, headers=JSON)
        place = f"mutation {number}: {method} {path} {sent[:300]!r}"
        assert response.status_code < 500, f"{response.status_code} at {place}"
        for internal in ("postgresql", "Traceback", "/tmp/", "psycopg"):
            assert internal not in response.text, place
        statuses.add(response.status_code)
    assert statuses >= {200, 400, 404}
    assert (await user.chatkit.say("hello", answer.thread_id)).error is None
