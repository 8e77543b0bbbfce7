import platform
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from bench.processes import count_cores


@dataclass(frozen=True, slots=True)
class ReportRow:
    """A figure and its baseline; `ratio` is measured in pairs and may differ from their quotient."""

    name: str
    figure: float
    unit: str = ""
    baseline: float | None = None
    baseline_name: str = ""
    ratio: float | None = None


def compare(
    name: str, unit: str, figures: Sequence[float], baselines: Sequence[float], baseline_name: str
) -> ReportRow:
    """The ratio is the median of the rounds' ratios, because a disturbance affects both sides of a round."""
    ratio = median(figure / baseline for figure, baseline in zip(figures, baselines, strict=True))
    return ReportRow(name, median(figures), unit, median(baselines), baseline_name, ratio)


def compute_percentile(values: Sequence[float], percent: int) -> float:
    """Returns 0 if there are no values."""
    if len(values) < 2:
        return sum(values)
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def format_number(value: float | None) -> str:
    """Formats a number with three digits, or all digits before the point; None as nothing."""
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def format_machine(seconds: float) -> str:
    return f"{seconds:.0f} seconds on {count_cores()} cores, Python {platform.python_version()}."
