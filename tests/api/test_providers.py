"""What users get of what providers send: odd calls and texts, quirks of providers, faults and limits."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from starlette.responses import RedirectResponse
from starlette.types import Receive, Scope, Send

from backend.model.providers import PROFILES
from backend.settings import ProviderName
from tests.chatkit_client import Answer
from tests.conftest import find_free_port
from tests.runs_client import id_of
from tests.scripted_model import ScriptedModel
from tests.serving import serve
from tests.support.backends import user_at
from tests.support.completions import call_delta, chunk
from tests.support.model_requests import requests_to
from tests.support.providers import call, open_conversation
from tests.support.script import add_task, says
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User

pytestmark = pytest.mark.long

DONE = "data: [DONE]\n\n"
Json = dict[str, Any]


def raw(*frames: str) -> Json:
    """A response of these frames."""
    return {"raw": [*frames, DONE]}


async def test_empty_text_beside_calls_is_no_message(user: User, model: ScriptedModel) -> None:
    frames = [
        chunk({"role": "assistant", "content": ""}),
        chunk(call_delta(index=0, id="a", name="add_task", arguments='{"title": "a"}') | {"content": ""}),
        chunk({"content": ""}, "tool_calls"),
    ]
    await model.script(raw(*frames), says("Added."))
    answer = await user.chatkit.say("add a")
    assert [item["type"] for item in answer.items].count("assistant_message") == 1
    assert answer.text == "Added."


async def test_equal_calls_are_all_made(user: User, model: ScriptedModel, stored: Stored) -> None:
    """But one that is sent again under its id is made once."""
    deltas = [
        call_delta(index=index, id=id, name="add_task", arguments='{"title": "a"}') for index, id in enumerate("xyy")
    ]
    await model.script(raw(*map(chunk, deltas), chunk({}, "tool_calls")), says("Added."))
    assert (await user.chatkit.say("add a twice")).text == "Added."
    assert stored.titles(user.name) == ["a", "a"]


def error_of(answer: Answer) -> Json:
    assert answer.error is not None
    return answer.error


LONE = "\ud83d"  # the half of a pair; json.dumps sends it as an escape
UNSTORABLE: dict[str, list[dict[str, Any]]] = {
    "text": [{"content": f"a\x00{LONE}b"}],
    "refusal": [{"refusal": f"a\x00{LONE}b"}],
    "reasoning": [{"reasoning": f"a\x00{LONE}b"}, {"content": "x"}],
    "reasoning_content": [{"reasoning_content": f"a\x00{LONE}b"}, {"content": "x"}],
    "name": [call_delta(index=0, name=f"add\x00{LONE}task", arguments="{}")],
    "arguments": [call_delta(index=0, name="add_task", arguments=f'{{"title": "a\x00{LONE}b"}}')],
    "a field of the provider's own": [{"content": "x", "annotations": [{"a": [f"a\x00{LONE}b"]}], "audio": None}],
}


@pytest.mark.parametrize("case", UNSTORABLE)
async def test_what_postgresql_cannot_hold(case: str, user: User, model: ScriptedModel) -> None:
    await model.script(raw(*map(chunk, UNSTORABLE[case]), chunk({}, "stop")), says("Fine."))
    events = await user.runs.say("chat", "go")
    assert events[-1].data["status"] == "COMPLETED"
    shown = repr([event.data for event in await user.runs.read("chat", id_of(events))])
    assert "\\x00" not in shown
    assert "\\ud83d" not in shown
    assert "\ufffd" in shown or case in ("name", "a field of the provider's own")


async def test_escape_that_never_ends(user: User, model: ScriptedModel, stored: Stored) -> None:
    cut = chunk(call_delta(index=0, id="a", name="add_task", arguments=r'{"title": "a\ud8'))
    await model.script(raw(cut, chunk({}, "tool_calls")), add_task("b"), says("Fine."))
    assert (await user.chatkit.say("go")).text == "Fine."
    assert stored.titles(user.name) == ["b"]


WITH_KEYS = [name for name, profile in PROFILES.items() if profile.needs_key]
KEYS = {f"{name.upper()}_API_KEY": f"key-of-{name}" for name in WITH_KEYS}


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_key_of_the_provider_that_is_set(provider: ProviderName, services: Services, user: User) -> None:
    """And no other one, nor the variables of OpenAI's client where the provider is another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_ORG_ID", "org-of-mine")
        patch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: gateway-of-mine")
        async with open_conversation(services, user, provider, LLM_API_KEY="", **KEYS) as talk:
            assert (await talk.say("hello", says("Hello."))).text == "Hello."
    sent = [headers["authorization"] for headers in talk.strict.headers]
    assert sent == [f"Bearer key-of-{provider}"] * len(sent)
    mine = {value for headers in talk.strict.headers for value in headers.values() if value.endswith("-of-mine")}
    assert mine == ({"org-of-mine", "gateway-of-mine"} if provider == "openai" else set())


async def test_badly_written_call_is_asked_for_again(services: Services, user: User) -> None:
    """Groq answers it with an error."""
    failed = {"error": {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "<f"}}
    async with open_conversation(services, user, "groq") as talk:
        assert (await talk.say("hello", {"status": 400, "body": failed}, says("Here it is."))).text == "Here it is."


async def test_redirect_is_not_followed_and_no_proxy_used(services: Services, user: User, model: ScriptedModel) -> None:
    async def elsewhere(scope: Scope, receive: Receive, send: Send) -> None:
        await RedirectResponse(f"{services.model.url}/v1/chat/completions", 307)(scope, receive, send)

    async with serve(elsewhere, lifespan="off") as url:
        async with user_at(services, user, LLM_BASE_URL=f"{url}/v1") as there:
            assert (await there.chatkit.say("hello")).error
        assert await model.requests() == []
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HTTP_PROXY", url)
            patch.delenv("NO_PROXY", raising=False)
            patch.delenv("no_proxy", raising=False)
            await model.script(says("Hello."))
            async with user_at(services, user) as there:
                assert (await there.chatkit.say("hello")).text == "Hello."


async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.close()


async def test_model_that_leaves_before_it_answers(services: Services, user: User) -> None:
    port = find_free_port()
    server = await asyncio.start_server(leave, "127.0.0.1", port)
    given = {"LLM_BASE_URL": f"http://127.0.0.1:{port}/v1"}
    async with user_at(services, user, **given) as there:
        answer = await there.chatkit.say("hello")
    server.close()
    assert error_of(answer)["allow_retry"]


MILK: Json = {"tool_calls": [call("add_task", title="milk")]}


class TestOllama:
    """Its streams lose calls, and its requests are cut without a word."""

    async def test_lost_calls_are_asked_for_whole(self, services: Services, user: User, stored: Stored) -> None:
        async with open_conversation(services, user, "ollama", {"drops_calls": True}) as talk:
            thoughtful = {**MILK, "reasoning": "Milk."}
            answer = await talk.say("add milk", thoughtful, thoughtful, says("Added."))
            bodies = await requests_to(talk.model)
        assert (answer.error, answer.text) == (None, "Added.")
        assert stored.titles(user.name) == ["milk"]
        assert [body.get("stream", False) for body in bodies] == [True, False, False]

    async def test_empty_response(self, services: Services, user: User) -> None:
        async with open_conversation(services, user, "ollama") as talk:
            assert (await talk.say("hello", {"finish_reason": "stop"}, {"finish_reason": "stop"})).error
            assert (await talk.say("hello", says("Again."))).text == "Again."

    @pytest.mark.parametrize(("setting", "titles"), [("streamed", []), ("whole", ["milk"])])
    async def test_calls_lost_beside_text(
        self, setting: str, titles: list[str], services: Services, user: User, stored: Stored
    ) -> None:
        """LLM_TOOL_CALLS=whole has them."""
        async with open_conversation(services, user, "ollama", {"drops_calls": True}, LLM_TOOL_CALLS=setting) as talk:
            answer = await talk.say("add milk", {**MILK, "text": "I add it."}, says("Added."))
        assert stored.titles(user.name) == titles
        assert answer.text == ("I add it.\nAdded." if titles else "I add it.")

    @pytest.mark.parametrize(("context", "warnings"), [(1_200, 1), (16_384, 0)])
    async def test_small_context(
        self, context: int, warnings: int, services: Services, user: User, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The log says once which setting of Ollama to change."""
        async with open_conversation(services, user, "ollama", {"context": context}) as talk:
            for _ in range(2):
                assert (await talk.say("hello", says("Hello."))).error is None
        logged = [record for record in caplog.records if "OLLAMA_CONTEXT_LENGTH" in record.getMessage()]
        assert len(logged) == warnings


MB = 1_000_000
EVENTS, JSON = "text/event-stream", "application/json"


@dataclass
class Flood:
    """A model's server that sends these pieces to whoever asks, as fast as they are taken."""

    pieces: Callable[[], Iterable[bytes]]
    kind: str = EVENTS
    status: int = 200
    encoding: str = "identity"
    asked: int = 0
    sent: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        self.asked += 1
        headers = [(b"content-type", self.kind.encode()), (b"content-encoding", self.encoding.encode())]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        for piece in self.pieces():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            self.sent += len(piece)
            await asyncio.sleep(0)  # the backend runs on the same event loop
        await send({"type": "http.response.body", "body": b""})


def repeated(piece: bytes, megabytes: int) -> Iterator[bytes]:
    joined = piece * max(1, 50_000 // len(piece))
    for _ in range(megabytes * MB // len(joined)):
        yield joined


def one_line(megabytes: int) -> Iterator[bytes]:
    yield b'data: {"choices": [{"index": 0, "delta": {"content": "'
    yield from repeated(b"x", megabytes)


def packed(pieces: Iterable[bytes]) -> list[bytes]:
    data = gzip.compress(b"".join(pieces))
    return [data[start : start + 16_000] for start in range(0, len(data), 16_000)]


def frames(**delta: Any) -> Callable[[], Iterable[bytes]]:
    return lambda: repeated(chunk(delta).encode(), 10)


def numbered(field: str, megabytes: int) -> Iterator[bytes]:
    """Yields frames whose text does not repeat itself."""
    numbers = range(megabytes * MB // 100)
    return (chunk({field: f"{number:010}"}).encode() for number in numbers)


FLOODS: dict[str, Flood] = {
    "one line": Flood(lambda: one_line(10)),
    "comments": Flood(lambda: repeated(b": waiting\n\n", 10)),
    "a field that nobody reads": Flood(frames(padding="x" * 10_000)),
    "text": Flood(lambda: numbered("content", 10)),
    "reasoning": Flood(lambda: numbered("reasoning", 10)),
    "arguments": Flood(frames(**call_delta(index=0, name="add_task", arguments="x" * 10))),
    "calls without arguments": Flood(frames(**call_delta(id="a", name="a"))),
    "gzip": Flood(lambda: packed(one_line(10)), encoding="gzip"),
    "the body of an error": Flood(lambda: one_line(10), JSON, 400),
    "not streamed": Flood(lambda: packed(one_line(10)), JSON, encoding="gzip"),
}


@asynccontextmanager
async def flooded(services: Services, user: User, flood: Flood, **environment: str) -> AsyncIterator[User]:
    async with (
        serve(flood, lifespan="off") as url,
        user_at(services, user, LLM_BASE_URL=f"{url}/v1", LIMIT_ANSWER_CHARS="20000", **environment) as there,
    ):
        yield there


@pytest.mark.parametrize("case", FLOODS)
async def test_response_over_the_limit(case: str, services: Services, user: User) -> None:
    """It ends with an error that names the setting, and is not asked for again."""
    flood = replace(FLOODS[case])
    whole = {"LLM_TOOL_CALLS": "whole"} if case == "not streamed" else {}
    async with flooded(services, user, flood, **whole) as there:
        answer = await there.chatkit.say("hello")
        assert (await there.runs.http.get("/health")).status_code == 200
    assert "LIMIT_ANSWER_CHARS" in error_of(answer)["message"]
    assert flood.asked == 1


async def test_long_response_within_the_limit(services: Services, user: User) -> None:
    told = [chunk({"content": f"{number:0499} "}) for number in range(30)]
    flood = Flood(lambda: packed(map(str.encode, [*told, chunk({}, "stop"), DONE])), encoding="gzip")
    async with flooded(services, user, flood) as there:
        answer = await there.chatkit.say("hello")
    assert (answer.error, len(answer.text)) == (None, 15_000)


SILENT: dict[str, tuple[Json, str]] = {
    "no headers": ({"delay": 60}, "LLM_FIRST_TOKEN_SECONDS"),
    "a role alone": ({"raw": [chunk({"role": "assistant"})], "hang": True}, "LLM_FIRST_TOKEN_SECONDS"),
    "comments without an end": ({"raw": [": waiting\n\n"] * 1_000, "token_delay": 0.05}, "LLM_FIRST_TOKEN_SECONDS"),
    "after some text": ({"raw": [chunk({"content": "Let me"})], "hang": True}, "LLM_SILENCE_SECONDS"),
}


@pytest.mark.parametrize("case", SILENT)
async def test_silent_model(case: str, services: Services, user: User, model: ScriptedModel) -> None:
    """The error names the setting; the model is not asked again."""
    step, setting = SILENT[case]
    await model.script(step)
    async with user_at(services, user, **{setting: "0.3"}) as there:
        answer = await there.chatkit.say("hello")
    assert setting in error_of(answer)["message"]
    assert answer.text == ("Let me" if setting == "LLM_SILENCE_SECONDS" else "")
    assert [request["outcome"] for request in await model.finished_requests()] == ["client_closed"]
