"""The forms in which model turns are sent back to a server: with which of its fields, and with which empty text."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from backend.model.failures.errors import ModelError
from backend.model.requests.replay import ITEMS
from backend.settings import EmptyText, ReplayForm

Message = dict[str, Any]

_TEXTS: tuple[EmptyText, ...] = ("empty", "missing", "null")
_REPLAYS: tuple[ReplayForm, ...] = ("reasoning_content", "extra_content", "none", "all")
# For a turn of another model, which has none: the word that Gemini accepts in place of a thought's signature
# (ai.google.dev, `/gemini-api/docs/thought-signatures`), and a blank, as DeepSeek V4 rejects an empty text.
_UNSIGNED = {"google": {"thought_signature": "skip_thought_signature_validator"}}
_NO_THOUGHT = " "
_ABOUT_TEXT = re.compile(r"content|message|text\b|null\b|\bnil\b|\bnone(type)?\b|empty", re.IGNORECASE)
_ABOUT_REPLAY = re.compile(r"reasoning|thought|thinking|signature|encrypted|extra_content", re.IGNORECASE)
_ABOUT_ENCRYPTED = re.compile(r"encrypted|verified|decrypt", re.IGNORECASE)
_REJECTED = re.compile(
    r"\b(un|not )(supported|expect|recogni|known|permitted|allowed)|\bextra\b|forbidden", re.IGNORECASE
)
_CODES = ("model_request_rejected", "model_failed")
_LEARNT_AFTER = 2  # requests that were accepted in another form


@dataclass(frozen=True)
class TurnForm:
    text: EmptyText = "null"
    """The content of a message with tool calls and without text."""
    replay: ReplayForm = "all"
    """Whether the server gets the fields back that it sent beside tool calls: `all` or `none`; `reasoning_content`,
    which then has all reasoning, also beside answers; or all and, where it is missing, a filler for `extra_content`.
    """


def render_turns(messages: list[Message], form: TurnForm) -> list[Message]:
    turns: list[Message] = []
    ids: dict[str, str] = {}  # of calls that go back under the ids that their server gave them
    for message in messages:
        turn = _render_turn(message, form)
        for call, sent in zip(message.get("tool_calls") or (), turn.get("tool_calls") or (), strict=True):
            ids |= {call["id"]: sent["id"]} if call["id"] != sent["id"] else {}
        if turn.get("tool_call_id") in ids:
            turn["tool_call_id"] = ids[turn["tool_call_id"]]
        turns.append(turn)
    return turns


def _render_turn(message: Message, form: TurnForm) -> Message:
    replay = message.get("replay")
    turn = {name: value for name, value in message.items() if name != "replay"}
    if turn["role"] != "assistant":
        return turn
    calls = turn.get("tool_calls")
    if calls and not turn.get("content"):
        turn["content"] = None if form.text == "null" else ""
        if form.text == "missing":
            del turn["content"]
    if replay and form.replay != "none":
        turn |= _select_fields(replay["message"], form, has_calls=bool(calls))
        if calls and len(calls) == len(replay["calls"]):
            turn["tool_calls"] = calls = [call | more for call, more in zip(calls, replay["calls"], strict=True)]
    if form.replay == "reasoning_content":
        turn.setdefault("reasoning_content", _NO_THOUGHT)
    if form.replay == "extra_content" and calls:
        turn["tool_calls"] = [{"extra_content": _UNSIGNED, **call} for call in calls]
    return turn


def _select_fields(fields: Message, form: TurnForm, *, has_calls: bool) -> Message:
    """Of an answer without calls, selects only what servers demand: its reasoning is not in the history's budget."""
    if form.replay == "reasoning_content":
        texts = (fields.get(name) for name in ("reasoning_content", "reasoning", "reasoning_text", "thinking"))
        return {"reasoning_content": next((text for text in texts if isinstance(text, str)), _NO_THOUGHT)}
    return {name: value for name, value in fields.items() if has_calls or name == ITEMS}


class TurnForms:
    """The form that each model of a server gets. What a setting says is not changed."""

    def __init__(self, default: TurnForm, *, has_text_setting: bool, has_replay_setting: bool) -> None:
        self._default = default
        self._texts = () if has_text_setting else _TEXTS
        self._replays = () if has_replay_setting else _REPLAYS
        self._learnt: dict[str, TurnForm] = {}  # by the model's name
        self._cures = Counter[tuple[str, TurnForm]]()

    def get(self, model: str) -> TurnForm:
        return self._learnt.get(model, self._default)

    def learn(self, model: str, form: TurnForm) -> dict[str, str]:
        """Notes that a form was accepted after the usual one was not. Returns the settings that spare the others, once
        that has happened twice."""
        usual = self.get(model)
        self._cures[model, form] += 1
        if self._cures[model, form] < _LEARNT_AFTER:
            return {}
        self._learnt[model] = form
        settings = {"LLM_EMPTY_TEXT": (usual.text, form.text), "LLM_REPLAY": (usual.replay, form.replay)}
        return {name: value for name, (before, value) in settings.items() if value != before}

    def find_other(
        self, messages: list[Message], form: TurnForm, error: ModelError, tried: list[TurnForm]
    ) -> TurnForm | None:
        """Returns a form that the words of a rejection make likely, and that changes something in these messages."""
        if error.code not in _CODES:
            return None
        sent = [render_turns(messages, one) for one in tried]
        for other in self._list_others(form, error.words):
            if other not in tried and render_turns(messages, other) not in sent:
                return other
        return None

    def _list_others(self, form: TurnForm, words: str) -> Iterator[TurnForm]:
        if _ABOUT_REPLAY.search(words):
            is_unwanted = _REJECTED.search(words) or _ABOUT_ENCRYPTED.search(words)
            named = "none" if is_unwanted else "extra_content" if "signature" in words else "reasoning_content"
            for kind in sorted(self._replays, key=lambda kind: kind != named):
                yield replace(form, replay=kind)
        if _ABOUT_TEXT.search(words):
            for kind in self._texts:
                yield replace(form, text=kind)


def is_lasting(words: str) -> bool:
    """Whether a rejection says something of the server, and not of one encrypted text that it cannot read."""
    return _ABOUT_ENCRYPTED.search(words) is None
