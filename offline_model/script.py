"""The answers that a test has asked for, used up one by one."""

import json
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from offline_model.completion import Call

Seconds = Annotated[float, Field(ge=0)]
Frames = Annotated[int, Field(ge=0)]


class ScriptedCall(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict, description="A string is sent as it is, JSON or not.")
    id: str | None = Field(default=None, description="A unique one if left out; null sends none.")

    def as_call(self) -> Call:
        arguments = self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)
        return Call(self.name, arguments, self.id) if "id" in self.model_fields_set else Call(self.name, arguments)


class Step(BaseModel):
    """One answer; a field that is left out behaves as with a real model."""

    model_config = ConfigDict(extra="forbid")

    when: str | None = Field(default=None, description="Use it only if the last user message contains this.")
    text: str = ""
    reasoning: str = ""
    reasoning_field: Literal["reasoning", "reasoning_content"] = "reasoning"
    tool_calls: list[ScriptedCall] = Field(default_factory=list)
    finish_reason: str | None = Field(default=None, description="Null: none is ever sent.")
    usage: dict[str, Any] | None = Field(default=None, description="Sent even if not asked for; null: never sent.")

    delay: Seconds = Field(default=0, description="Before the first byte.")
    token_delay: Seconds | None = Field(default=None, description="Between two frames; the setting's if left out.")
    chunk_chars: Annotated[int, Field(ge=1)] | None = Field(default=None, description="Text and arguments are cut so.")

    status: Annotated[int, Field(ge=200, le=599)] | None = Field(default=None, description="Answer with an HTTP error.")
    body: Any = Field(default={"error": {"message": "Scripted.", "type": "server_error"}}, description="JSON, or text.")
    headers: dict[str, str] = Field(default_factory=dict)

    raw: list[str] | None = Field(default=None, description="The frames of the body, verbatim.")
    cut_after: Frames | None = Field(default=None, description="Break the connection after so many frames.")
    eof_after: Frames | None = Field(default=None, description="End the body after so many frames, without [DONE].")
    hang: bool = Field(default=False, description="After the frames stay silent until the client leaves.")

    def is_given(self, name: str) -> bool:
        return name in self.model_fields_set

    def fits(self, user_text: str) -> bool:
        return self.when is None or self.when in user_text


class Addition(BaseModel):
    """The body of POST /script."""

    model_config = ConfigDict(extra="forbid")

    steps: list[Step]


class Script:
    def __init__(self) -> None:
        self._steps: list[Step] = []

    def add(self, steps: Iterable[Step]) -> None:
        self._steps.extend(steps)

    def clear(self) -> None:
        self._steps.clear()

    def take(self, user_text: str) -> Step | None:
        """Remove and return the first step that fits."""
        for index, step in enumerate(self._steps):
            if step.fits(user_text):
                return self._steps.pop(index)
        return None
