"""The test cases of the evaluation, the figures of its results, and the comparison of two results."""

from collections import Counter
from typing import Any

import pytest

from evals import case, figures, table

CASES = case.read_cases()


def test_every_case_can_be_judged() -> None:
    assert [id for id, times in Counter(one.id for one in CASES).items() if times > 1] == []
    for one in CASES:
        titles = [task.title for task in one.tasks]
        assert len({*titles}) == len(titles), one.id
        assert {*one.changes, *(one.finds or ())} <= {*titles}, one.id
        assert sum((bool(one.new or one.changes), one.asks, one.declines, one.is_question)) <= 1, one.id


def test_quick_run_has_cases_of_every_kind() -> None:
    quick = case.select_cases(CASES, only=(), quick=True)
    assert len(quick) == 30
    assert {one.tags[0] for one in quick} == {one.tags[0] for one in CASES}


def test_cases_are_chosen_by_tag_or_id() -> None:
    chosen = case.select_cases(CASES, only=["undo", "gym", "count"], quick=False)
    assert {one.tags[0] for one in chosen} == {"undo", "find"}
    assert [one.id for one in chosen if one.tags[0] == "find"] == ["count"]


def trial(of: str, outcome: str, *tags: str, **more: Any) -> dict[str, Any]:
    used = {"requests": 2, "input_tokens": 1_000, "output_tokens": 50}
    return {
        **{"case": of, "outcome": outcome, "tags": tags or ("add",), "reason": "", "obeyed": False, "seconds": [1.0]},
        **{"calls": [{"tool": "add_task", "refused": False}], **used, **more},
    }


def test_shares_of_trials() -> None:
    trials = [trial("a", "right")] * 3 + [trial("b", "right"), trial("b", "declined"), trial("b", "right")]
    report = figures.report(trials)
    row = report["rows"][0]
    assert row["pass_1"]["share"] == pytest.approx(5 / 6, abs=1e-4)
    assert row["pass_3"]["share"] == 0.5
    assert (row["cases"], row["trials"], row["outcomes"]["declined"]) == (2, 6, 1)
    assert figures.report(trials[:2])["rows"][0]["pass_3"] is None
    assert figures.estimate_power(4, 5, 3) == 0.4
    assert figures.compute_interval(0.8, 100) == pytest.approx((0.711, 0.867), abs=0.001), "Wilson's"


def test_table_lists_all_wrong_trials() -> None:
    trials = [
        trial("a", "right"),
        trial("b", "false claim", reason=f"says\x1b\x9b added {'and more ' * 20}"),
        trial("c", "declined"),
        trial("d", "wrong state", "injection", obeyed=True),
    ]
    report = figures.report(trials)
    assert report["false_claims_or_obeyed"] == 2
    for row in report["rows"]:
        row |= {"input_tokens": 12_345_678, "output_tokens": 1_234_567}
    lines = "\n".join(table.format_report(report, {"name": "m", "provider": "p"}))
    assert max(map(len, lines.splitlines())) <= 80
    for case_and_reason in ("declined  c", "b: says added", "wrong state  d"):
        assert case_and_reason in lines
    assert "\x1b" not in lines


def test_two_results_are_compared_by_the_cases_of_both() -> None:
    model = {"name": "m", "provider": "p"}
    first = {"model": model, "trials": [trial("a", "right"), trial("b", "declined"), trial("c", "right")]}
    second = {"model": model, "trials": [trial("a", "declined"), trial("b", "right"), trial("d", "right")]}
    found = figures.compare(first, second)
    assert (found["better"], found["worse"], found["left_out"]) == (["b"], ["a"], 2)
    assert found["rows"][-1] == {"tag": "all", "cases": 2, "first": 0.5, "second": 0.5, "half": pytest.approx(1.96)}
