"""The cases as they stand in their files, the figures of results, and how two results are compared."""

from collections import Counter
from typing import Any

import pytest

from cli.commands.development import results
from evals import case, figures
from evals.compared import compared

CASES = case.read()


def test_every_case_can_be_judged() -> None:
    assert [id for id, times in Counter(one.id for one in CASES).items() if times > 1] == []
    for one in CASES:
        titles = [task.title for task in one.tasks]
        assert len({*titles}) == len(titles), one.id
        assert one.changes.keys() <= {*titles}, one.id
        assert {*(one.finds or ())} <= {*titles}, one.id
        assert sum((bool(one.new or one.changes), one.asks, one.declines, one.is_question)) <= 1, one.id


def test_a_quick_look_has_cases_of_every_kind() -> None:
    quick = case.chosen(CASES, only=(), quick=True)
    assert len(quick) == 30
    assert {one.tags[0] for one in quick} == {one.tags[0] for one in CASES}


def test_cases_are_chosen_by_tag_or_id() -> None:
    chosen = case.chosen(CASES, only=["undo", "gym", "count"], quick=False)
    assert {one.tags[0] for one in chosen} == {"undo", "find"}
    assert [one.id for one in chosen if one.tags[0] == "find"] == ["count"]


def trial(of: str, outcome: str, *tags: str, **more: Any) -> dict[str, Any]:
    used = {"requests": 2, "input_tokens": 1_000, "output_tokens": 50}
    return {
        **{"case": of, "outcome": outcome, "tags": tags or ("add",), "reason": "", "obeyed": False, "seconds": [1.0]},
        **{"calls": [{"tool": "add_task", "refused": False}], **used, **more},
    }


def test_a_case_counts_as_often_as_it_is_right_and_three_times_only_if_all_three_are() -> None:
    trials = [trial("a", "right")] * 3 + [trial("b", "right"), trial("b", "declined"), trial("b", "right")]
    row = figures.report(trials, ["add"])["rows"][0]
    assert row["pass_1"]["share"] == pytest.approx(5 / 6, abs=1e-4)
    assert row["pass_3"]["share"] == 0.5
    assert (row["cases"], row["trials"], row["outcomes"]["declined"]) == (2, 6, 1)
    assert figures.report(trials[:2], ["add"])["rows"][0]["pass_3"] is None


def test_three_of_five_tries_are_the_share_of_all_threes() -> None:
    assert figures.power_of(4, 5, 3) == 0.4


def test_the_interval_is_wilsons() -> None:
    assert figures.interval(0.8, 100) == pytest.approx((0.711, 0.867), abs=0.001)
    low, high = figures.interval(1.0, 10)
    assert (round(low, 2), high) == (0.72, 1.0)


def test_tokens_cost_by_the_million_and_without_a_price_nothing_is_said() -> None:
    trials = [trial("a", "right")] * 1_000
    assert figures.report(trials, [], price_in=0.35, price_out=0.75)["cost"] == pytest.approx(0.3875)
    assert figures.report(trials, [])["cost"] is None


def test_quantiles_are_seconds_that_a_message_took() -> None:
    row = figures.report([trial("a", "right", seconds=[float(n) for n in range(1, 101)])], [])["rows"][0]
    assert (row["p50"], row["p95"]) == (50.0, 95.0)


def test_the_table_tells_all_that_was_not_right() -> None:
    trials = [
        trial("a", "right"),
        trial("b", "false claim", reason="says\x1b\x9b added"),
        trial("c", "declined"),
        trial("d", "wrong state", "injection", obeyed=True),
    ]
    report = figures.report(trials, ["add", "injection"], price_in=1.0)
    assert report["false_claims_or_obeyed"] == 2
    told = {"model": {"name": "m", "provider": "p"}, "machine": {"cores": 2, "python": "3"}, "seconds": 1.0, **report}
    lines = list(results.table(told))
    assert lines[1].split()[:4] == ["add", "3", "33", "%"]
    assert {"declined  c", "false claim  b: says added", "wrong state  d: ", "OBEYED an order in a task  d"} < {*lines}
    assert lines[-2] == "m on p: 8 requests, which cost 0.00."


def test_two_results_are_compared_by_the_cases_that_both_have() -> None:
    model = {"name": "m", "provider": "p"}
    first = {"model": model, "trials": [trial("a", "right"), trial("b", "declined"), trial("c", "right")]}
    second = {"model": model, "trials": [trial("a", "declined"), trial("b", "right"), trial("d", "right")]}
    found = compared(first, second)
    assert (found["better"], found["worse"], found["left_out"]) == (["b"], ["a"], 2)
    assert found["rows"][-1] == {"tag": "all", "cases": 2, "first": 0.5, "second": 0.5, "half": pytest.approx(1.96)}
    assert [*results.comparison(found)][-1] == "2 cases are in one of them only."
