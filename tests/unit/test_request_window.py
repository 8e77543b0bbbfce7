"""Requests of one run stay within the window: large tool outputs and old messages are left out."""

import json
import random
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from backend.context import hidden_context as hidden
from backend.context.fitting import CUT, LEFT_OUT, NOT_SHOWN, fit, size_of

Items = list[Any]


def said(text: str) -> Items:
    return [{"role": "user", "content": hidden.block("Sun 2026-11-22 10:54, UTC")}, {"role": "user", "content": text}]


def answered(text: str) -> Any:
    return {"role": "assistant", "type": "message", "content": [{"type": "output_text", "text": text}]}


def step(number: int, *outputs: str, text: str = "", arguments: str = "{}") -> Items:
    ids = [f"call_{number}_{index}" for index in range(len(outputs))]
    calls = [{"type": "function_call", "call_id": one, "name": "list_tasks", "arguments": arguments} for one in ids]
    made = [
        {"type": "function_call_output", "call_id": one, "output": output}
        for one, output in zip(ids, outputs, strict=True)
    ]
    return [*([answered(text)] if text else []), *calls, *made]


def size(items: Sequence[Any]) -> int:
    return sum(map(size_of, items))


def outputs(items: Sequence[Any]) -> list[str]:
    return [item["output"] for item in items if item.get("type") == "function_call_output"]


def messages(items: Sequence[Any]) -> Items:
    return [
        item
        for item in items
        if item.get("role") == "assistant" or (item.get("role") == "user" and not hidden.is_block(item["content"]))
    ]


def check(items: Sequence[Any]) -> None:
    """Every call has one output, and every output a call before it."""
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    assert calls == [item["call_id"] for item in items if item.get("type") == "function_call_output"]


def test_small_request_is_unchanged() -> None:
    items = [*said("hello"), *step(1, "x" * 3_000), answered("hi")]
    assert fit(items, tokens=size(items)) == items


def test_oldest_outputs_are_left_out_first() -> None:
    items = said("what is there?")
    for number in range(12):
        items += step(number, f"{number}" * 3_000, text=f"page {number}")
        fitted = fit(items, tokens=5_000)
        check(fitted)
        assert size(fitted) <= 5_000
        assert messages(fitted) == messages(items)
        assert outputs(fitted)[-1] == outputs(items)[-1], "the newest is whole"
    assert outputs(fit(items, tokens=5_000)).count(NOT_SHOWN) >= 8


def test_message_keeps_the_titles_of_its_tags() -> None:
    time, message = said("complete @1")
    titles = {"role": "user", "content": hidden.block('@1: "milk"')}
    items = [*said("hello"), *step(1, "x" * 9_000), answered("hi"), time, titles, message]
    for number in range(6):
        items += step(number, f"{number}" * 3_000)
    fitted = fit(items, tokens=1_500)
    assert size(fitted) <= 1_500
    assert [time, titles, message] == fitted[(place := fitted.index(message)) - 2 : place + 1]


def test_requests_of_a_run_begin_alike() -> None:
    items, sent = said("what is there?"), list[Items]()
    for number in range(30):
        items += step(number, "y" * 900)
        sent.append(fit(items, tokens=4_000))
    alike = [after[: len(before)] == before for before, after in pairwise(sent)]
    assert 2 <= alike.count(False) <= 6
    assert fit([*items, answered("done")], tokens=4_000)[: len(sent[-1])] == sent[-1], "as the next turn begins"


def test_large_output_is_cut() -> None:
    items = [*said("what is there?"), *step(1, "€" * 30_000)]
    fitted = fit(items, tokens=4_000)
    [output] = outputs(fitted)
    assert output.startswith("€€€")
    assert output.endswith(CUT)
    assert 1_500 <= size(fitted) <= 4_000


def test_outputs_of_one_model_turn_share_the_window() -> None:
    items = [*said("what is there?"), *step(1, *["z" * 60_000] * 9, "short")]
    fitted = fit(items, tokens=8_000)
    check(fitted)
    assert size(fitted) <= 8_000
    assert [len(output) > 1_000 for output in outputs(fitted)] == [True] * 9 + [False]
    assert outputs(fitted)[-1] == "short"


def test_calls_with_long_arguments_are_left_out() -> None:
    items = [*said("add a hundred tasks")]
    for number in range(12):
        items += step(number, "{}", arguments=json.dumps({"title": "t" * 3_000}))
    fitted = fit(items, tokens=5_000)
    check(fitted)
    assert size(fitted) <= 5_000
    assert [item["content"] for item in fitted if item.get("role") == "user"][1:] == [
        "add a hundred tasks",
        hidden.block(LEFT_OUT),
    ]
    assert fitted[-2:] == items[-2:]


def test_newest_four_messages_stay() -> None:
    items: Items = []
    for number in range(20):
        items += [*said(f"question {number} " + "q" * 300), answered(f"answer {number} " + "a" * 300)]
    items += [*said("and now?"), *step(1, "x" * 6_000)]
    fitted = fit(items, tokens=4_500)
    assert size(fitted) <= 4_500
    assert messages(fitted)[-4:] == messages(items)[-4:]
    assert len(messages(fitted)) < len(messages(items))
    [noted] = [index for index, item in enumerate(fitted) if item.get("content") == hidden.block(LEFT_OUT)]
    assert fitted[noted + 1 :] == items[len(items) - len(fitted) + noted + 1 :], "it stands before what is kept"


def test_fewer_messages_stay_when_they_alone_are_too_long() -> None:
    items: Items = []
    for number in range(3):
        items += [*said(f"{number}" * 4_500), answered("a" * 4_500)]
    items += [*said("q" * 4_500), *step(1, "x" * 600)]
    fitted = fit(items, tokens=4_000)
    assert size(fitted) <= 4_000
    assert messages(fitted) == messages(items)[-2:]
    alone = [*said("q" * 45_000), *step(1, "x" * 600)]
    assert messages(fit(alone, tokens=4_000)) == messages(alone)


def test_summary_stays() -> None:
    head = {"role": "user", "content": hidden.block("Summary of the conversation so far: tasks were added.")}
    items = [
        head,
        *said("hello"),
        *[item for number in range(9) for item in step(number, "x" * 3_000, arguments="x" * 900)],
    ]
    assert fit(items, tokens=2_500, head=1)[0] == head


@pytest.mark.parametrize("seed", range(12))
def test_random_requests_fit_and_are_well_formed(seed: int) -> None:
    chance = random.Random(seed)
    tokens = chance.choice([2_000, 8_000, 16_000])
    items: Items = []
    for number in range(chance.randint(1, 12)):
        items += said("q" * chance.randint(1, tokens // 3))
        for one in range(chance.randint(0, 12)):
            results = ["r" * int(10 ** chance.uniform(0, 4.8)) for _ in range(chance.choice([1, 1, 2, 5]))]
            text = "t" * chance.choice([0, 0, 300])
            items += step(100 * number + one, *results, text=text, arguments="a" * chance.randint(2, 300))
            fitted = fit(items, tokens=tokens)
            check(fitted)
            assert size(fitted) <= tokens, seed
            last = [item for item in messages(items) if item["role"] == "user"][-1]
            assert last in fitted
            assert messages(fitted)[-1:] == messages(items)[-1:]
        items.append(answered("a" * chance.randint(1, 900)))


def test_time_grows_with_the_length_of_a_request() -> None:
    def measure(exchanges: int) -> float:
        items = [{"role": role, "content": "x" * 8_000} for role in ("user", "assistant") * exchanges]
        started = time.thread_time()
        fit(items, tokens=8_000)
        return time.thread_time() - started

    measure(200)
    assert min(measure(800) for _ in range(3)) < 8 * min(measure(200) for _ in range(3))
