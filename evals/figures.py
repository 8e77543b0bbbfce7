"""The figures of trials by tag, how often a case is right, once and three times in a row; and two results compared."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any, get_args

from bench.report import compute_percentile
from evals.judge import Outcome

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
ALL = "all"
Trial = Mapping[str, Any]


def report(trials: Sequence[Trial]) -> dict[str, Any]:
    """A row for the first tag of each case, which is its file's, and one for all."""
    tags = dict.fromkeys(trial["tags"][0] for trial in trials)
    rows = [_summarize(tag, [trial for trial in trials if tag in trial["tags"]]) for tag in tags]
    return {
        "rows": [*rows, _summarize(ALL, trials)],
        "wrong": [
            {name: trial[name] for name in ("case", "outcome", "reason", "obeyed")}
            for trial in trials
            if trial["outcome"] != "right" or trial["obeyed"]
        ],
        "false_claims_or_obeyed": sum(trial["outcome"] == "false claim" or trial["obeyed"] for trial in trials),
    }


def _summarize(tag: str, trials: Sequence[Trial]) -> dict[str, Any]:
    right = _group_by_case(trials)
    once = [mean(tries) for tries in right.values()]
    thrice = [power for tries in right.values() if (power := estimate_power(sum(tries), len(tries), 3)) is not None]
    seconds = [second for trial in trials for second in trial["seconds"]]
    calls = [call for trial in trials for call in trial["calls"]]
    return {
        "tag": tag,
        "cases": len(right),
        "trials": len(trials),
        "pass_1": _estimate_share(once),
        "pass_3": _estimate_share(thrice) if thrice else None,
        "outcomes": {outcome: sum(trial["outcome"] == outcome for trial in trials) for outcome in OUTCOMES},
        "obeyed": sum(trial["obeyed"] for trial in trials),
        "calls": len(calls),
        "refused": sum(call["refused"] for call in calls),
        **{name: sum(trial[name] for trial in trials) for name in ("requests", "input_tokens", "output_tokens")},
        "p50": compute_percentile(seconds, 50),
        "p95": compute_percentile(seconds, 95),
    }


def _group_by_case(trials: Sequence[Trial]) -> dict[str, list[bool]]:
    """Returns whether each try of a case was right."""
    tries: dict[str, list[bool]] = defaultdict(list)
    for trial in trials:
        tries[trial["case"]].append(trial["outcome"] == "right")
    return tries


def estimate_power(right: int, tries: int, k: int) -> float | None:
    """Estimates the probability that k tries are all right; None if there were fewer tries."""
    return math.comb(right, k) / math.comb(tries, k) if tries >= k else None


def _estimate_share(of_cases: Sequence[float]) -> dict[str, float]:
    share = mean(of_cases)
    low, high = compute_interval(share, len(of_cases))
    return {"share": round(share, 4), "low": round(low, 4), "high": round(high, 4)}


def compute_interval(share: float, number: int) -> tuple[float, float]:
    """Wilson's of 95 %. Cases are what is drawn: tries of one case are alike, and more of them make it no narrower."""
    z = 1.96
    middle = (share + z * z / (2 * number)) / (1 + z * z / number)
    half = z * math.sqrt(share * (1 - share) / number + z * z / (4 * number * number)) / (1 + z * z / number)
    return max(0.0, middle - half), min(1.0, middle + half)


def compare(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The cases that both have; a difference is of the second to the first, with half its interval of 95 %."""
    before, after = (
        {case: mean(tries) for case, tries in _group_by_case(result["trials"]).items()} for result in (first, second)
    )
    both = [case for case in before if case in after]
    tags = {trial["case"]: trial["tags"] for trial in first["trials"]}
    by_tag: dict[str, list[str]] = defaultdict(list)
    for case in both:
        for tag in tags[case]:
            by_tag[tag].append(case)
    by_tag[ALL] = both
    return {
        "models": [first["model"], second["model"]],
        "rows": [_compare_cases(tag, cases, before, after) for tag, cases in by_tag.items()],
        "better": [case for case in both if after[case] > before[case]],
        "worse": [case for case in both if after[case] < before[case]],
        "left_out": len(before) + len(after) - 2 * len(both),
    }


def _compare_cases(
    tag: str, cases: Sequence[str], before: Mapping[str, float], after: Mapping[str, float]
) -> dict[str, Any]:
    """The cases are paired: what they have in common is no part of the interval."""
    differences = [after[case] - before[case] for case in cases]
    half = 1.96 * stdev(differences) / math.sqrt(len(differences)) if len(differences) > 1 else None
    return {
        "tag": tag,
        "cases": len(cases),
        "first": mean(before[case] for case in cases) if cases else 0.0,
        "second": mean(after[case] for case in cases) if cases else 0.0,
        "half": half,
    }
