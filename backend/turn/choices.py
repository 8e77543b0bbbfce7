"""The model of the current run, which its sub-agents use, too; titles and summaries do not."""

from contextvars import ContextVar

chosen_model: ContextVar[str | None] = ContextVar("chosen_model", default=None)
