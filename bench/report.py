from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any


@dataclass(frozen=True, slots=True)
class ReportRow:
    """A figure and its baseline; `ratio` is measured in pairs and may differ from their quotient."""

    name: str
    figure: float
    unit: str = ""
    baseline: float | None = None
    baseline_name: str = ""
    ratio: float | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare(
    name: str, unit: str, figures: Sequence[float], baselines: Sequence[float], baseline_name: str
) -> ReportRow:
    """The ratio is the median of the rounds' ratios, because a disturbance affects both sides of a round."""
    ratio = median(figure / baseline for figure, baseline in zip(figures, baselines, strict=True))
    return ReportRow(name, median(figures), unit, median(baselines), baseline_name, ratio)


def percentile(values: Sequence[float], percent: int) -> float:
    """Returns 0 if there are no values."""
    if len(values) < 2:
        return sum(values)
    return quantiles(values, n=100, method="inclusive")[percent - 1]
