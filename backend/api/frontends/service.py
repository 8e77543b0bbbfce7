"""What `/chat` does: the runs of the run API, answered whole or while they go on."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from fastapi.responses import JSONResponse, Response

from backend.api.frontends import schemas
from backend.api.frontends.ai_sdk import render_chunk
from backend.api.frontends.chunks import ChunkRenderer
from backend.api.frontends.request import ChatRequest
from backend.api.frontends.response import is_error, render_answer
from backend.api.identity import AuthenticatedUser
from backend.api.interactions.service import InteractionService
from backend.api.sse import EventStream, format_event
from backend.conversations import branches, timeline
from backend.conversations.approvals import Decision, load_approvals
from backend.conversations.errors import AlreadyDecided
from backend.conversations.records import ENDED, Run
from backend.errors import Busy, NotFound
from backend.runs.service import RunService
from backend.users.idempotency import IdempotencyKey
from common.database import DatabaseUnavailable

_DONE = format_event("[DONE]")
_HEADERS = {"x-vercel-ai-ui-message-stream": "v1"}
_FAILED = "The answer was interrupted. Try again."
_STATUS = {"failed": 502, "interrupted": 503}


@dataclass(frozen=True, slots=True)
class FrontendService:
    interactions: InteractionService
    runs: RunService

    async def answer(
        self, request: ChatRequest, user: AuthenticatedUser, key: IdempotencyKey | None
    ) -> schemas.Answered | Response:
        """Answers once the run has ended or waits. Raises `Busy` if this process ends before the run."""
        run_id = await self._start(request, user, key)
        async with aclosing(self.runs.streams.follow(user.user_id, run_id, while_waiting=False)) as events:
            async for _ in events:
                pass
        trees = await timeline.load_trees(self.runs.database, user.user_id, [run_id])
        run = next((run for run in trees.runs if run.id == run_id), None)
        if run is None:
            raise NotFound
        if run.status == "running":  # this process ends, and the run is in another one
            raise Busy
        answer = render_answer(run, trees, request.thread)
        if not is_error(run):
            return answer
        content = {"error": answer.reason or _FAILED, **answer.model_dump(by_alias=True)}
        return JSONResponse(content, status_code=_STATUS[run.status])

    async def stream(
        self, request: ChatRequest, user: AuthenticatedUser, key: IdempotencyKey | None, *, sdk: int
    ) -> Response:
        self.runs.streams.check_readers(user.user_id)
        run_id = await self._start(request, user, key)
        renderer = ChunkRenderer(run_id, request.thread, decided={one.id for one in request.decisions})
        return EventStream(self._render_frames(user.user_id, run_id, renderer, sdk), _HEADERS)

    async def resume(self, thread: str, user: AuthenticatedUser, *, sdk: int) -> Response:
        try:
            chat = await self.interactions.reader.find(user.user_id, thread)
        except NotFound:
            return Response(status_code=204)
        head = chat.head_run_id
        run = await self.runs.find(user.user_id, chat.id, head) if head is not None else None
        if run is None or run.status in ENDED:
            return Response(status_code=204)
        self.runs.streams.check_readers(user.user_id)
        return EventStream(self._render_frames(user.user_id, run.id, ChunkRenderer(run.id, thread), sdk), _HEADERS)

    async def _render_frames(
        self, user_id: str, run_id: str, renderer: ChunkRenderer, sdk: int
    ) -> AsyncIterator[bytes]:
        """Yields a run's chunks up to where it ends or waits; ends the message, too, if its events cannot be read."""
        try:
            async with aclosing(self.runs.streams.follow(user_id, run_id, while_waiting=False)) as events:
                async for event in events:
                    for chunk in renderer.render(event):
                        yield format_event(render_chunk(chunk, sdk))
                    if renderer.is_over:
                        break
        except (DatabaseUnavailable, NotFound):
            pass  # it goes on, or was deleted: `render_loss` says so
        if not renderer.is_over:
            for chunk in renderer.render_loss():
                yield format_event(render_chunk(chunk, sdk))
        yield _DONE

    async def _start(self, request: ChatRequest, user: AuthenticatedUser, key: IdempotencyKey | None) -> str:
        """Starts or continues the run that answers a message, or whose calls were decided, and returns its id."""
        if request.decisions:
            return await self._decide(request, user)
        message = await self.interactions.create_message(user.user_id, request.text, user.time_zone)
        if request.again and (run := await self._find_run_to_regenerate(request, user)) is not None:
            return await self.interactions.edit(run, None, key=key)
        return await self.interactions.start(user.user_id, request.thread, message, key=key)

    async def _find_run_to_regenerate(self, request: ChatRequest, user: AuthenticatedUser) -> Run | None:
        """Returns the newest shown run of this message: `useChat` sends only its text, not the run's id."""
        if request.thread is None:
            return None
        try:
            chat = await self.interactions.reader.find(user.user_id, request.thread)
        except NotFound:
            return None
        return await branches.find_run_by_first_message(self.runs.database, user.user_id, chat.id, request.text)

    async def _decide(self, request: ChatRequest, user: AuthenticatedUser) -> str:
        assert request.thread is not None
        chat = await self.interactions.reader.find(user.user_id, request.thread)
        ids = [one.id for one in request.decisions]
        found = await load_approvals(self.runs.database, user.user_id, chat.id, ids)
        states = {approval.call_id: approval.state for approval in found}
        run_ids = {approval.top_run_id for approval in found}
        if len(states) < len(ids) or len(run_ids) != 1:
            raise NotFound
        undecided = [one for one in request.decisions if states[one.id] == "awaiting_approval"]
        if any((states[one.id] != "rejected") != one.approved for one in request.decisions if one not in undecided):
            raise AlreadyDecided
        [run_id] = run_ids
        for one in undecided:
            await self.runs.decide(user.user_id, one.id, Decision(one.approved, text=one.reason), run_id=run_id)
        return run_id
