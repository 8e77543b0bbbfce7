"""Changes a request after a rejection that names a field, a limit or the form of a model turn."""

import re
from typing import Any

from backend.model.failures.errors import ModelError
from backend.model.requests import bodies
from backend.model.requests.turn_forms import TurnForm, TurnForms, is_lasting

_MAX_FORMS = 5  # in which one request is tried
# Of a chat template that cannot render a turn, as llama.cpp reports it: other failures have nothing to do with forms.
_TEMPLATE = re.compile(r"NoneType|\bnull\b|\bnil\b|template|jinja|reasoning_content|thought_signature", re.IGNORECASE)


class Attempts:
    def __init__(self, body: dict[str, Any], forms: TurnForms) -> None:
        self.body, self._model, self._forms = body, body["model"], forms
        self.form = forms.get(self._model)
        self.rejected: list[str] = []
        """Optional fields."""
        self.error = ModelError("model_request_rejected")
        """The error to raise when nothing is left to change: that of the usual form if no other form has helped."""
        self._tried: list[TurnForm] = []
        self._is_lowered = False
        self._is_lasting = True

    def change(self, error: ModelError) -> bool:
        """Changes what a rejection is about; false if there is nothing to change."""
        is_rejection = error.provider_status in (400, 422) and error.code != "model_context_exceeded"
        is_template = error.provider_status == 500 and _TEMPLATE.search(error.words) is not None
        if not self._tried or not (is_rejection or is_template):
            self.error = error
        if is_rejection and self._change_fields(error.words):
            return True
        return (is_rejection or is_template) and self._change_form(error)

    def _change_fields(self, words: str) -> bool:
        if (field := bodies.rejected_field(self.body, words)) is not None:
            self.rejected.append(field)
            self.body = bodies.remove_fields(self.body, field)
            return True
        lower = None if self._is_lowered else bodies.lower_output_limit(self.body, words)
        self.body, self._is_lowered = lower or self.body, self._is_lowered or lower is not None
        return lower is not None

    def _change_form(self, error: ModelError) -> bool:
        self._tried.append(self.form)
        form: TurnForm | None = None
        if len(self._tried) < _MAX_FORMS:
            form = self._forms.find_other(self.body["messages"], self.form, error, self._tried)
        self._is_lasting = self._is_lasting and is_lasting(error.words)
        self.form = form or self.form
        return form is not None

    def learn(self) -> dict[str, str]:
        """Returns the settings that avoid the rejection, once a changed request was accepted twice."""
        return self._forms.learn(self._model, self.form) if self._tried and self._is_lasting else {}
