"""What `/chat` does: the runs of the run API, answered whole or while they go on."""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

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
from backend.conversations.timeline import Trees
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

    @property
    def _runs(self) -> RunService:
        return self.interactions.runs

    async def answer(
        self, request: ChatRequest, user: AuthenticatedUser, key: IdempotencyKey | None
    ) -> schemas.Answered | Response:
        """Starts or continues a run and returns its answer once it has ended or waits; with status 502 or 503 if it
        failed. The run goes on if nobody waits for that. Raises `Busy` if this process ends before the run.
        """
        run_id = await self._start(request, user, key)
        async with aclosing(self._runs.streams.follow(user.user_id, run_id, while_waiting=False)) as events:
            async for _ in events:
                pass
        run, trees = await self._load(user.user_id, run_id)
        answer = render_answer(run, trees, request.thread)
        if not is_error(run):
            return answer
        content = {"error": answer.reason or _FAILED, **answer.model_dump(by_alias=True)}
        return JSONResponse(content, status_code=_STATUS[run.status])

    async def stream(
        self, request: ChatRequest, user: AuthenticatedUser, key: IdempotencyKey | None, *, sdk: int
    ) -> Response:
        """Starts or continues a run and streams it as chunks; a reader who leaves does not stop it.

        Raises `LimitReached`.
        """
        self._runs.streams.check_readers(user.user_id)
        run_id = await self._start(request, user, key)
        renderer = ChunkRenderer(run_id, request.thread, decided={one.id for one in request.decisions})
        return EventStream(self._render_frames(user.user_id, run_id, renderer, sdk), _HEADERS)

    async def resume(self, thread: str, user: AuthenticatedUser, *, sdk: int) -> Response:
        """Streams the run that runs or waits in a chat, from its beginning; responds with 204 if there is none."""
        try:
            chat = await self.interactions.reader.find(user.user_id, thread)
        except NotFound:
            return Response(status_code=204)
        run = None
        if chat.head_run_id is not None:
            run = await self._runs.find(user.user_id, chat.id, chat.head_run_id)
        if run is None or run.status in ENDED:
            return Response(status_code=204)
        self._runs.streams.check_readers(user.user_id)
        return EventStream(self._render_frames(user.user_id, run.id, ChunkRenderer(run.id, thread), sdk), _HEADERS)

    async def _load(self, user_id: str, run_id: str) -> tuple[Run, Trees]:
        """Loads a run that has ended or waits, with its sub-agents. Raises `NotFound`, and `Busy` if it still runs."""
        trees = await timeline.load_trees(self._runs.database, user_id, [run_id])
        run = next((run for run in trees.runs if run.id == run_id), None)
        if run is None:
            raise NotFound
        if run.status == "running":  # this process ends, and the run is in another one
            raise Busy
        return run, trees

    async def _render_frames(
        self, user_id: str, run_id: str, renderer: ChunkRenderer, sdk: int
    ) -> AsyncIterator[bytes]:
        """Yields the frames of a run's chunks up to where it ends or waits; also ends the message if its events cannot
        be read.
        """
        try:
            async with aclosing(self._runs.streams.follow(user_id, run_id, while_waiting=False)) as events:
                async for event in events:
                    for chunk in renderer.render(event):
                        yield _format_chunk(chunk, sdk)
                    if renderer.is_over:
                        break
        except (DatabaseUnavailable, NotFound):
            pass  # it goes on, or was deleted: `render_loss` says so
        if not renderer.is_over:
            for chunk in renderer.render_loss():
                yield _format_chunk(chunk, sdk)
        yield _DONE

    async def _start(self, request: ChatRequest, user: AuthenticatedUser, key: IdempotencyKey | None) -> str:
        """Returns the id of the run that answers a message, or whose calls were decided; starts or continues it.

        `again` answers the message of an earlier run once more, or starts a new run if there is none.
        """
        if request.decisions:
            return await self._decide(request, user)
        message = await self.interactions.create_message(user.user_id, request.text, user.time_zone)
        if request.again and (run := await self._find_run_to_regenerate(request, user)) is not None:
            return await self.interactions.edit(user.user_id, run, None, key=key)
        return await self.interactions.start(user.user_id, request.thread, message, key=key)

    async def _find_run_to_regenerate(self, request: ChatRequest, user: AuthenticatedUser) -> Run | None:
        """Returns the newest run of the shown path whose first message has this text, for `regenerate-message`; None if
        there is none. `useChat` sends only the text, not the run's id.
        """
        if request.thread is None:
            return None
        try:
            chat = await self.interactions.reader.find(user.user_id, request.thread)
        except NotFound:
            return None
        return await branches.find_run_by_first_message(self._runs.database, user.user_id, chat.id, request.text)

    async def _decide(self, request: ChatRequest, user: AuthenticatedUser) -> str:
        """Decides calls of one run of this chat and returns its id; a decision that was sent before changes nothing.

        Raises `NotFound`, and `AlreadyDecided` for a call that was decided otherwise.
        """
        assert request.thread is not None
        chat = await self.interactions.reader.find(user.user_id, request.thread)
        ids = [one.id for one in request.decisions]
        found = await load_approvals(self._runs.database, user.user_id, chat.id, ids)
        approvals = {approval.call_id: approval for approval in found}
        run_ids = {approval.top_run_id for approval in found}
        if len(approvals) < len(ids) or len(run_ids) != 1:
            raise NotFound
        undecided = [one for one in request.decisions if approvals[one.id].state == "awaiting_approval"]
        for one in request.decisions:
            if one not in undecided and (approvals[one.id].state != "rejected") != one.approved:
                raise AlreadyDecided
        [run_id] = run_ids
        for one in undecided:
            await self._runs.decide(user.user_id, one.id, Decision(one.approved, text=one.reason), run_id=run_id)
        return run_id


def _format_chunk(chunk: dict[str, Any], sdk: int) -> bytes:
    """Formats a chunk as a server-sent event for this version of the AI SDK."""
    return format_event(json.dumps(render_chunk(chunk, sdk), ensure_ascii=False))
