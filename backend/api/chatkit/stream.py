"""The order, form and errors of ChatKit's event streams."""

from collections.abc import AsyncIterator, Iterator

from chatkit import types as ck
from chatkit.errors import CustomStreamError

from backend.api.chatkit.context import RequestContext
from backend.errors import BackendError
from backend.runs.outcomes import ending_of, may_retry, sentence_of
from common.database import DatabaseUnavailable

Events = AsyncIterator[ck.ThreadStreamEvent]


async def in_order(events: Events, context: RequestContext) -> Events:
    """Holds back the first events of a request until it is known that it can be carried out, and orders them.

    The SDK sends `thread.created` before anything is stored, and `stream_options` before an action does anything.
    """
    held: list[ck.ThreadStreamEvent] = []
    has_begun = False
    async for event in events:
        if has_begun:
            yield event
        elif context.live is None and isinstance(event, ck.ThreadCreatedEvent | ck.StreamOptionsEvent):
            held.append(event)
        else:
            has_begun = True
            for one in _beginning(held, event, context):
                yield one


def _beginning(
    held: list[ck.ThreadStreamEvent], event: ck.ThreadStreamEvent, context: RequestContext
) -> Iterator[ck.ThreadStreamEvent]:
    """Yields the first events of a stream: the id of a detached run, then those that were held back, with what is
    stored.
    """
    if not isinstance(context.request, ck.ThreadsCreateReq | ck.ThreadsAddUserMessageReq):
        yield event
        if context.interaction_id is not None:
            yield from held
        return
    live = context.live
    if live is not None:
        if context.is_detached:
            yield interaction_event(live.run.id)
        for created in held:
            if isinstance(created, ck.ThreadCreatedEvent) and live.conversation is not None:
                created.thread.title = live.conversation.title
                created.thread.created_at = live.conversation.created_at
            yield created
    yield event


async def explain_errors(events: Events) -> Events:
    """Raises errors in the stream as errors of the SDK with their own sentence; it would replace others by its own."""
    try:
        async for event in events:
            yield event
    except BackendError as error:
        raise CustomStreamError(str(error), allow_retry=error.allow_retry) from error
    except DatabaseUnavailable as error:
        code = ending_of(error, "of a ChatKit request").error_code or "failed"
        raise CustomStreamError(sentence_of(code), allow_retry=may_retry(code)) from error


def frame(event: bytes) -> bytes:
    """Formats ChatKit's JSON as a server-sent event."""
    return b"data: " + event + b"\n\n"


def interaction_event(run_id: str) -> ck.ClientEffectEvent:
    """Creates the event that tells the page the run's id, by which it can stop a detached run."""
    return ck.ClientEffectEvent(name="todo.interaction", data={"interaction_id": run_id})
