"""The model's endpoint: the offline model, which looks at each request as it comes."""

import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from offline_model import app as offline
from offline_model.conversation import parse_turns
from offline_model.protocol import MODEL, ChatMessage, Completion, CompletionCall, CompletionRequest, parse_request
from offline_model.settings import OfflineSettings
from tests.chaos.agents.script import Script
from tests.serving import serve
from tests.support.completions import check_pairs

TOKEN_SECONDS = 0.02
_TWO = re.compile(r"delete task (\d+) and postpone task (\d+)")


class LookedAt(offline.Endpoint):
    """Counts the requests, and keeps those whose calls and outputs are not paired.

    Beside what the rules know it can do two things in one step that are asked for one by one, and what a script says.
    """

    def __init__(self, script: Script | None, token_seconds: float) -> None:
        super().__init__(token_seconds, None)
        self._script = script
        self.url = ""
        self.requests = 0
        self.unpaired: list[Sequence[ChatMessage]] = []

    async def chat_completions(self, request: Request) -> Response:
        chat = parse_request(await request.body())
        self.requests += 1
        try:
            check_pairs([message.model_dump() for message in chat.messages])
        except AssertionError:
            self.unpaired.append(chat.messages)
        completion = _two_at_once(chat) or (self._script and self._script.next_of(chat))
        if chat.stream and completion is not None:
            return StreamingResponse(self._paced(completion.as_events()), headers=offline.EVENTS)
        return await super().chat_completions(request)


def _two_at_once(chat: CompletionRequest) -> Completion | None:
    turn = parse_turns(chat.messages)[-1]
    asked = _TWO.fullmatch(turn.request)
    if asked is None:
        return None
    deleted, postponed = map(int, asked.groups())
    calls = [
        CompletionCall("delete_task", json.dumps({"task_id": deleted})),
        CompletionCall("update_task", json.dumps({"task_id": postponed, "due": "+2d"})),
    ]
    outputs = [text for _, answers in turn.made for text in answers.values()]
    if outputs:
        failed = any(not text.startswith(("{", "The person refused")) for text in outputs)
        said = f"{'That did not work' if failed else 'I heard'}: {' / '.join(outputs)}"
        return Completion(model=MODEL, text=said, calls=[], finish_reason="stop", usage=None)
    return Completion(model=MODEL, text="", calls=calls, finish_reason="tool_calls", usage=None)


@asynccontextmanager
async def serve_model(script: Script | None = None, *, token_seconds: float = TOKEN_SECONDS) -> AsyncIterator[LookedAt]:
    app = offline.create_app(OfflineSettings())
    endpoint = LookedAt(script, token_seconds)
    app.router.routes.insert(0, Route("/v1/chat/completions", endpoint.chat_completions, methods=["POST"]))
    async with serve(app, lifespan="off") as url:
        endpoint.url = f"{url}/v1"
        yield endpoint
