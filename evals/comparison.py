"""Two files of results beside each other: what is better, what is worse, and whether that may be chance."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import mean, stdev
from typing import Any

from evals.figures import ALL


def compare(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The cases that both have; a difference is of the second to the first, with half its interval of 95 %."""
    before, after = _right(first["trials"]), _right(second["trials"])
    both = [case for case in before if case in after]
    tags = {trial["case"]: trial["tags"] for trial in first["trials"]}
    by_tag: dict[str, list[str]] = defaultdict(list)
    for case in both:
        for tag in tags[case]:
            by_tag[tag].append(case)
    by_tag[ALL] = both
    return {
        "models": [first["model"], second["model"]],
        "rows": [_row(tag, cases, before, after) for tag, cases in by_tag.items()],
        "better": [case for case in both if after[case] > before[case]],
        "worse": [case for case in both if after[case] < before[case]],
        "left_out": len(before) + len(after) - 2 * len(both),
    }


def _right(trials: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    tries: dict[str, list[bool]] = defaultdict(list)
    for trial in trials:
        tries[trial["case"]].append(trial["outcome"] == "right")
    return {case: mean(each) for case, each in tries.items()}


def _row(tag: str, cases: Sequence[str], before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, Any]:
    """The cases are paired: what they have in common is no part of the interval."""
    differences = [after[case] - before[case] for case in cases]
    half = 1.96 * stdev(differences) / sqrt(len(differences)) if len(differences) > 1 else None
    return {
        "tag": tag,
        "cases": len(cases),
        "first": mean(before[case] for case in cases) if cases else 0.0,
        "second": mean(after[case] for case in cases) if cases else 0.0,
        "half": half,
    }
