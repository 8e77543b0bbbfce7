"""Replaces the sentences that version 0.1.0 stored by codes."""

import re
from typing import Any

_CODES = {
    "This answer was stopped before its end.": "cancelled",
    "The server had to end this answer. What was done so far is kept.": "interrupted",
    "The server had to end this answer. What was done so far is kept; try again in a moment.": "interrupted",
    "This answer was taken over by another process and ended here.": "interrupted",
    # Not the code of the time limit, whose sentence names a limit that is not known of an old run.
    "This answer took too long and was ended. What was done so far is kept: say what is still to be done.": (
        "interrupted"
    ),
    "The answer ends here because it reached the model's output limit.": "answer_over_limit",
    "The answer ends here because the model's provider filtered the rest.": "answer_filtered",
    "The assistant stopped after too many steps. Say what is still to be done.": "too_many_model_turns",
    "The model gave an empty answer. Try again.": "empty_answer",
    "The model declined to answer this.": "model_refused",
    "The model's answer could not be understood. Try again.": "model_invalid_answer",
    "The model is busy right now. Try again in a moment.": "model_busy",
    "The model cannot be reached right now. Try again in a moment.": "model_unreachable",
    "The model took too long to answer. Try again in a moment.": "model_timeout",
    "The model's service failed. Try again in a moment.": "model_failed",
    "The model's answer was cut off before its end. Try again.": "model_cut_off",
    "The model used up its output limit before it said anything. Ask for less at once, or raise LLM_MAX_TOKENS.": (
        "model_output_limit"
    ),
    "The database cannot be reached right now. Try again in a moment.": "database_unreachable",
    "The tools cannot be reached right now. What was done so far is kept; try again in a moment.": "tools_unavailable",
    "The task service cannot be reached right now. What was done so far is kept; try again in a moment.": (
        "tasks_unavailable"
    ),
}
_PARTS = {
    "(its key was refused)": "model_key_rejected",
    "(the model's name or address is unknown)": "model_not_found",
    "(the account has no credit)": "model_no_credit",
    "(it refused the request)": "model_request_rejected",
}
_REFERENCE = re.compile(r" \(Reference [0-9a-f]+\)$")
_SUMMARISED = re.compile(r"[\d,]+ earlier messages? (?:was|were) summarised\.")

# How an output begins that says that a call was not made, and its state and reason.
_OUTCOMES = {
    "The person refused this call": ("rejected", "user"),
    "This call was not made. The person wrote": ("rejected", "other_message"),
    "This call was not made. The person stopped": ("rejected", "stopped"),
    "This call was not made. The person went": ("rejected", "left_path"),
    "This call was not made": ("not_made", None),
    "The outcome of this call is unknown": ("unknown", None),
}
STOP_CODES = {
    "The person stopped this answer. Do not go on with it unless they ask for it.": "cancelled",
    "The server had to end this answer. Check what was done before you go on with it.": "interrupted",
}
"""The codes of notes about a run that did not end normally."""


def get_notice_code(sentence: str) -> str | None:
    """Returns `failed` for a sentence without a code, and None for the line about a summary, which is no notice."""
    if _SUMMARISED.fullmatch(sentence):
        return None
    sentence = _REFERENCE.sub("", sentence)
    return _CODES.get(sentence) or next((code for part, code in _PARTS.items() if part in sentence), "failed")


def get_outcome(output: str) -> dict[str, Any] | None:
    """Returns state and reason of a call that no tool answered; None for the output of a tool."""
    found = (outcome for beginning, outcome in _OUTCOMES.items() if output.startswith(beginning))
    return next(({"state": state, "reason": reason} for state, reason in found), None)
