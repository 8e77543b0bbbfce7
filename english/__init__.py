"""Reads dates, times, repeats, priorities and labels of a task in English.

Pure functions of a text, the user's clock and the order of day and month. Words that are not understood stay in the
title and are listed, because a wrong date is worse than none.
"""

from english.atoms import DateOrder
from english.dates.combination import When
from english.ranges import read_coming_range, read_past_range, read_shift
from english.reading import Kind, ParsedTask, Span, read_task, read_when
from english.schedules import ParsedSchedule, read_schedule

__all__ = [
    "DateOrder",
    "Kind",
    "ParsedSchedule",
    "ParsedTask",
    "Span",
    "When",
    "read_coming_range",
    "read_past_range",
    "read_schedule",
    "read_shift",
    "read_task",
    "read_when",
]
