"""How each model of an endpoint makes tool calls: natively, or as text once it has shown that it cannot."""

import logging
from collections import Counter

from backend.model.providers import ModelEndpoint
from backend.settings import ToolCalls

logger = logging.getLogger(__name__)

_MAX_MISSED_CALLS = 2


class ToolCallModes:
    """The modes of one process. Where LLM_TOOL_CALLS is set, no model's mode changes by itself."""

    def __init__(self, endpoint: ModelEndpoint) -> None:
        self._endpoint = endpoint
        self._mode: ToolCalls = endpoint.profile.tool_calls
        self._text_reasons: dict[str, str] = {}  # by the model's name
        self._missed_calls = Counter[str]()
        self._callers = set[str]()  # models that have made a native call

    def get(self, model: str) -> ToolCalls:
        return "text" if model in self._text_reasons else self._mode

    def get_text_reason(self, model: str) -> str | None:
        """Returns why calls of this model are text although LLM_TOOL_CALLS does not say so; None if they are not."""
        return self._text_reasons.get(model)

    def use_whole(self) -> None:
        """Requests all models without streaming: their server loses calls that it streams."""
        self._mode = "whole"

    def use_text(self, model: str, reason: str) -> None:
        """Makes a model write its calls as text. The `reason` completes the sentence "The model …"."""
        if self._endpoint.has_tool_calls_setting or self.get(model) == "text":
            return
        self._text_reasons[model] = reason
        logger.warning("the model %s %s: its tool calls are read from its text, as LLM_TOOL_CALLS=text", model, reason)

    def use_native(self, model: str) -> None:
        """Ends what `use_text` began: another model has this name now."""
        self._text_reasons.pop(model, None)
        self._missed_calls.pop(model, None)
        self._callers.discard(model)

    def record_call(self, model: str) -> None:
        """Notes that a model has made a native call: from then on a missed one says nothing of what it can do."""
        self._callers.add(model)

    def record_missed_call(self, model: str, fault: str) -> None:
        """Notes an answer in which a model should have called a tool; after the second one its calls are text.

        A user can make any model claim a change, so that this counts only for a model that has never made a call.
        """
        self._missed_calls[model] += 1
        if model not in self._callers and self._missed_calls[model] >= _MAX_MISSED_CALLS:
            self.use_text(model, f"has {fault} {_MAX_MISSED_CALLS} times")
