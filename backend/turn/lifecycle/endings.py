"""What kept an answer from its end: a sentence for the person, and an item for whoever reads the conversation later."""

import logging
import secrets
from dataclasses import dataclass

from agents.exceptions import MaxTurnsExceeded, ModelBehaviorError, ModelRefusalError
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from backend.conversation.items import Ending
from backend.conversation.runs.abandoned import CUT
from backend.conversation.runs.leases import Outcome
from backend.errors import BackendError
from backend.turn.log import Event, Failed, Notice
from common.database import DatabaseUnavailable
from service.telemetry import logs

logger = logging.getLogger(__name__)

INTERRUPTED = "The server had to end this answer. What was done so far is kept; try again in a moment."
OUT_OF_STEPS = "The assistant stopped after too many steps. Say what is still to be done."
_CUT: dict[Outcome, str] = {
    "cancelled": "You stopped this answer.",
    "interrupted": CUT,
}


@dataclass(frozen=True)
class Explanation:
    message: str
    allow_retry: bool


def told(event: Event) -> Ending | None:
    """The item for a failure or a notice, which is otherwise seen only while the log is read."""
    match event:
        case Failed():
            return failed(event)
        case Notice(text=sentence):
            return Ending(sentence=sentence, next="go on")
        case _:
            return None


def failed(failure: Failed) -> Ending:
    return Ending(sentence=failure.message, next="ask again" if failure.allow_retry else "nothing")


def cut(outcome: Outcome) -> Ending:
    """The item for an answer that was stopped or interrupted."""
    return Ending(sentence=_CUT[outcome], next="go on")


def explain(error: BaseException) -> Explanation:
    """A sentence a person understands, with a reference that is in the log; never the error's own text."""
    own = _own_error(error)
    reference = secrets.token_hex(4)
    if own is not None:
        logger.warning("turn failed, reference %s: %s", reference, own.code)
        return Explanation(f"{own} (Reference {reference})", own.allow_retry)
    message, allow_retry = sentence_of(error)
    logger.error("turn failed, reference %s\n%s", reference, logs.describe_error(error))
    return Explanation(f"{message} (Reference {reference})", allow_retry)


def _own_error(error: BaseException) -> BackendError | None:
    return next((one for one in logs.chain(error) if isinstance(one, BackendError)), None)


def sentence_of(error: BaseException) -> tuple[str, bool]:
    """The sentence for an error, and whether to offer another try: the SDK may have wrapped it, as those in agents."""
    if (own := _own_error(error)) is not None:
        return str(own), own.allow_retry
    return next(filter(None, map(_described, logs.chain(error))), _UNKNOWN)


_UNKNOWN = ("Something went wrong on the server. Try again.", True)


def _described(error: BaseException) -> tuple[str, bool] | None:
    match error:
        case MaxTurnsExceeded():
            return OUT_OF_STEPS, True
        case ModelRefusalError():
            return "The model refused to answer this.", False
        case ModelBehaviorError():
            return "The model's answer was not valid. Try again.", True
        case OperationalError() | InterfaceError() | PoolTimeout() | DatabaseUnavailable():
            return "The database cannot be reached right now. Try again in a moment.", True
        case _:
            return None
