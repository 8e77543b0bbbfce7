"""What a person may ask of the model for one answer: which one, and how freely it writes."""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from backend.conversation.errors import InvalidRequest


@dataclass(frozen=True)
class Choice:
    """None is what the server is set to."""

    model: str | None = None
    temperature: float | None = None


AS_SET = Choice()
chosen_model: ContextVar[str | None] = ContextVar("chosen_model", default=None)
"""What the answer that is being written was asked of: its agents ask the same. Titles and summaries do not."""


def choice(model: object, temperature: object, *, models: Sequence[str]) -> Choice:
    """What a request asks for, of the `models` that may be asked; raises `InvalidRequest` for anything else."""
    if model is not None and model not in models:
        raise InvalidRequest(f"There is no such model here. Ask for one of these: {', '.join(models)}.")
    if temperature is None:
        return Choice(str(model)) if model is not None else AS_SET
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not 0 <= temperature <= 2:
        raise InvalidRequest("temperature is a number from 0 to 2; leave it out for the one that is set here.")
    return Choice(None if model is None else str(model), float(temperature))
