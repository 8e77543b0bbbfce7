"""How a run ends, and why: an exception becomes an outcome with an error code, and a code becomes a sentence."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agents.exceptions import MaxTurnsExceeded, ModelBehaviorError

from backend.conversations.records import Entry, Outcome
from backend.errors import BackendError, TooManyAtOnce
from backend.model.failures.errors import FAILURES, ModelError
from backend.tools.connection import ToolsUnavailable
from backend.tools.task_tools import TasksUnavailable
from backend.tools.workspace.tools import NoRoom, WorkspaceUnavailable
from common.database import DatabaseUnavailable, UserShareExceeded

logger = logging.getLogger(__name__)


class RunError(Exception):
    """Ends a run with an error code of this module or of `backend.model.failures.errors`."""

    def __init__(self, code: str, **values: Any) -> None:
        super().__init__(code)
        self.code, self.values = code, values


@dataclass(frozen=True, slots=True)
class Ending:
    """The outcome of a run; `error_code` and `values` tell why it did not complete."""

    outcome: Outcome
    error_code: str | None = None
    values: dict[str, Any] | None = None


_ERRORS = (ToolsUnavailable, TasksUnavailable, WorkspaceUnavailable, NoRoom, TooManyAtOnce)
_SENTENCES = {
    "cancelled": "You stopped this answer.",
    "interrupted": "This answer was interrupted. What was done so far is kept; try again in a moment.",
    "answer_over_limit": "The answer ends here because it reached the model's output limit.",
    "answer_filtered": "The answer ends here because the model's provider blocked the rest.",
    "answer_ended": "The answer ends here because the model's server ended it.",
    "nothing_changed": "Nothing was changed. Say it again, or change the list yourself.",
    "answer_repeated": "The answer was ended because it repeated itself. Ask again, or in other words.",
    "empty_answer": "The model gave an empty answer. Try again.",
    "too_many_model_turns": "The assistant stopped after too many steps. Say what is still to be done.",
    "tokens_used_up": "This answer ended because your {most:,} model tokens of the day are used up. What was done so "
    "far is kept. Say tomorrow what is still to be done; a day begins at 00:00 UTC.",
    "run_too_long": "This answer took too long and was stopped. What was done so far is kept. Say what is still to be "
    "done. The limit is {seconds:g} seconds (LIMIT_RUN_SECONDS).",
    "model_refused": "The model refused to answer this.",
    "model_invalid_answer": "The model's answer was not valid. Try again.",
    "database_unreachable": "The database cannot be reached right now. Try again in a moment.",
    "no_directories": "Conversations cannot work in directories of yours any more, as ./todo up runs otherwise now.",
    "failed": "Something went wrong on the server. Try again.",
    **{error.code: str(error()) for error in _ERRORS},
    **{code: failure.sentence for code, failure in FAILURES.items()},
}
CUT_OFF_CODES = ("answer_over_limit", "answer_filtered", "answer_ended", "answer_repeated", "nothing_changed")
"""Of runs that completed, although the model's last response was cut off or claims what is not so."""
_WITHOUT_RETRY = ("cancelled", "model_refused")


def sentence_of(code: str, values: dict[str, Any] | None = None) -> str:
    return _SENTENCES.get(code, _SENTENCES["failed"]).format_map(values or {})


def sentence_of_notice(notice: Entry) -> str:
    """The sentence that the user reads for a notice; that of a failure ends with a reference to the log's line."""
    details = notice.details or {}
    code = details["code"]
    sentence = sentence_of(code, details.get("values"))
    return f"{sentence} (Reference {notice.run_id[-8:]})" if is_failure(code) else sentence


def is_failure(code: str) -> bool:
    return code not in ("cancelled", "interrupted", *CUT_OFF_CODES)


def may_retry(code: str) -> bool:
    return FAILURES[code].allow_retry if code in FAILURES else code not in _WITHOUT_RETRY


def get_ending(error: Exception, run_id: str) -> Ending:
    """The ending of a run that an exception has ended; the log names the run and the error, without texts of users."""
    for cause in causes_of(error):
        match cause:
            case RunError(code=code, values=values) | ModelError(code=code, values=values):
                return _fail(run_id, code, values)
            case MaxTurnsExceeded():
                return _fail(run_id, "too_many_model_turns")
            case ModelBehaviorError():
                return _fail(run_id, "model_invalid_answer")
            case BackendError(code=code):
                return _fail(run_id, code)
            case UserShareExceeded():
                return _fail(run_id, TooManyAtOnce.code)
            case DatabaseUnavailable():
                return _fail(run_id, "database_unreachable")
            case _:
                continue
    logger.error("run %s failed (reference %s)", run_id, run_id[-8:], exc_info=error)
    return Ending("failed", "failed")


def _fail(run_id: str, code: str, values: dict[str, Any] | None = None) -> Ending:
    logger.warning("run %s failed (reference %s): %s", run_id, run_id[-8:], code)
    return Ending("failed", code, values or None)


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what has caused it: the SDK wraps what a tool raises."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
