"""The offline model as an HTTP endpoint that checks each request."""

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
from tests.chaos.agents.model_script import AgentScript
from tests.serving import serve
from tests.support.completions import check_pairs

TOKEN_SECONDS = 0.02
_TWO_TASKS = re.compile(r"delete task (\d+) and postpone task (\d+)")


class CheckingEndpoint(offline.Endpoint):
    """Counts the requests and keeps the messages of those whose tool calls and outputs are not paired.

    It also answers a message about two tasks with two calls in one response, and follows the script, if there is one.
    """

    def __init__(self, script: AgentScript | None) -> None:
        super().__init__(TOKEN_SECONDS, None)
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
        completion = _complete_two_calls(chat) or (self._script and self._script.complete(chat))
        if chat.stream and completion is not None:
            return StreamingResponse(self._delay(completion.as_events()), headers=offline.EVENTS)
        return await super().chat_completions(request)


def _complete_two_calls(chat: CompletionRequest) -> Completion | None:
    turn = parse_turns(chat.messages)[-1]
    match = _TWO_TASKS.fullmatch(turn.request)
    if match is None:
        return None
    deleted, postponed = map(int, match.groups())
    calls = [
        CompletionCall("delete_task", json.dumps({"task_id": deleted})),
        CompletionCall("update_task", json.dumps({"task_id": postponed, "due": "+2d"})),
    ]
    outputs = [text for _, answers in turn.made for text in answers.values()]
    if outputs:
        failed = any(not text.startswith(("{", "The person refused")) for text in outputs)
        answer = f"{'That did not work' if failed else 'I heard'}: {' / '.join(outputs)}"
        return Completion(model=MODEL, text=answer, calls=[], finish_reason="stop", usage=None)
    return Completion(model=MODEL, text="", calls=calls, finish_reason="tool_calls", usage=None)


@asynccontextmanager
async def serve_model(script: AgentScript | None = None) -> AsyncIterator[CheckingEndpoint]:
    app = offline.create_app(OfflineSettings())
    endpoint = CheckingEndpoint(script)
    app.router.routes.insert(0, Route("/v1/chat/completions", endpoint.chat_completions, methods=["POST"]))
    async with serve(app, lifespan="off") as url:
        endpoint.url = f"{url}/v1"
        yield endpoint
