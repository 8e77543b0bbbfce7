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

_REASONS = {
    "The person wrote something else instead.": "other_message",
    "The person stopped this answer.": "stopped",
    "The person went to another version of the conversation.": "left_path",
    "What it may reach is another now than what the person was asked about.": "reach_changed",
}
STOP_CODES = {
    "The person stopped this answer. Do not go on with it unless they ask for it.": "cancelled",
    "The server had to end this answer. Check what was done before you go on with it.": "interrupted",
}
"""The codes of notes about a run that did not end normally."""
_UNKNOWN = "The outcome of this call is unknown: it may have been carried out. Check what is there before repeating it."
_NOT_MADE = "This call was not made: the answer was ended before its turn came."
_NOT_SHOWN = "This call was not made: the person is asked about it first, and it cannot be shown to them whole."


def get_notice_code(sentence: str) -> str | None:
    """Returns `failed` for a sentence without a code, and None for the line about a summary, which is no notice."""
    if _SUMMARISED.fullmatch(sentence):
        return None
    sentence = _REFERENCE.sub("", sentence)
    return _CODES.get(sentence) or next((code for part, code in _PARTS.items() if part in sentence), "failed")


def get_outcome(output: str | None, rejected_because: str | None) -> dict[str, Any]:
    """Returns state and reason of a call without a result; empty for the output of a tool.

    A call without output was rejected by the user, with a text, or for a reason of ours.
    """
    if output is None:
        reason = _REASONS.get(rejected_because or "", "user")
        return {"state": "rejected", "reason": reason, "decision_text": rejected_because if reason == "user" else None}
    if output == _UNKNOWN:
        return {"state": "unknown"}
    if output == _NOT_MADE:
        return {"state": "not_made", "reason": "ended"}
    if output.startswith(_NOT_SHOWN):
        return {"state": "not_made", "reason": "not_shown"}
    if output.startswith("This call was not made. "):
        reasons = [reason for sentence, reason in _REASONS.items() if sentence in output]
        return {"state": "not_made", "reason": reasons[0]} if reasons else {}
    return {}
