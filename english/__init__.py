"""What English words say of a task: dates, times, repeats, priorities and labels.

Pure functions of a text, the user's clock and the order of day and month; no file, network or model. What is not
understood stays in the title and is listed: a wrong date is worse than none.
"""

from english.atoms import DateOrder
from english.ranges import read_coming_range, read_past_range, read_shift
from english.reading import Kind, Reading, Span, When, read_task, read_when

__all__ = [
    "DateOrder",
    "Kind",
    "Reading",
    "Span",
    "When",
    "read_coming_range",
    "read_past_range",
    "read_shift",
    "read_task",
    "read_when",
]
