"""What is taken of an Ollama on this machine, and that nothing which listens there can do harm."""

import json
import socket
import time
from http.server import BaseHTTPRequestHandler

import pytest

from cli.services import ollama
from tests.conftest import find_free_port
from tests.fake_ollama import model, send, send_endlessly, serve_ollama

TOOLS = ("completion", "tools")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ollama, "SECONDS", 60)


def found(host: str, **variables: str) -> tuple[str, str] | None:
    result = ollama.find({"OLLAMA_HOST": host, **variables})
    return result and (result.model, result.note)


NONE = ("", "Ollama has no model on this machine that can call tools")
CHOICES = {
    "the only one that can call tools": ([model("gemma3:4b", "completion"), model("qwen3:8b", *TOOLS)], "qwen3:8b"),
    "by the order of preference": (
        [model("new:1b", *TOOLS), model("qwen3:8b", *TOOLS), model("gpt-oss:20b", *TOOLS)],
        "gpt-oss:20b",
    ),
    "of one family the largest": (
        [model("qwen3:4b", *TOOLS, size=3), model("qwen3:30b", *TOOLS, size=18), model("qwen3:8b", *TOOLS, size=5)],
        "qwen3:30b",
    ),
    "an unknown family where there is no other": ([model("me/new:1b", *TOOLS)], "me/new:1b"),
    "gpt-oss, whatever is said of it": ([model("gpt-oss:20b", "completion", "thinking")], "gpt-oss:20b"),
    "none of the cloud": (
        [
            model("gpt-oss:120b-cloud", *TOOLS),
            model("glm-4.7:cloud", *TOOLS),
            model("qwen3:8b", *TOOLS, remote_host="https://ollama.com:443"),
            model("llama3.1:8b", *TOOLS),
        ],
        "llama3.1:8b",
    ),
    "nothing that is no name": (
        [model("qwen3\n:8b", *TOOLS), model("qwen3 :8b", *TOOLS), model("q" * 201, *TOOLS), model("", *TOOLS)],
        "",
    ),
    "nothing where there is none": ([], ""),
}


@pytest.mark.parametrize("case", CHOICES)
def test_chosen_model(case: str) -> None:
    models, chosen = CHOICES[case]
    with serve_ollama(*models) as host:
        assert found(host) == ((chosen, "") if chosen else NONE)


def test_older_version() -> None:
    shown = {
        "qwen3:8b": {"capabilities": ["completion"]},
        "mistral-small:24b": {"capabilities": [*TOOLS], "remote_host": "https://ollama.com:443"},
        "llama3.1:8b": {"capabilities": [*TOOLS]},
    }
    with serve_ollama(*map(model, reversed(shown)), shown=shown) as host:
        assert found(host) == ("llama3.1:8b", "")


@pytest.mark.parametrize(
    ("named", "taken"),
    [("gemma3:4b", "gemma3:4b"), ("gemma3", "gemma3:latest"), ("llama3", ""), ("gpt-oss:120b-cloud", "")],
)
def test_llm_model(named: str, taken: str) -> None:
    models = [model("qwen3:8b", *TOOLS), model("gemma3:4b", "completion"), model("gemma3:latest", "completion")]
    with serve_ollama(*models, model("gpt-oss:120b-cloud", *TOOLS)) as host:
        note = "" if taken else f"Ollama has no model {named} on this machine"
        assert found(host, LLM_MODEL=named) == (taken, note)


def test_settings_of_the_backend() -> None:
    with serve_ollama(model("qwen3:8b", *TOOLS)) as host:
        result = ollama.find({"OLLAMA_HOST": f"http://{host}/"})
        assert result is not None
        assert result.settings == {
            "LLM_PROVIDER": "ollama",
            "LLM_BASE_URL": f"http://{host}/v1",
            "LLM_MODEL": "qwen3:8b",
        }
        assert found(f"0.0.0.0:{host.partition(':')[2]}") == ("qwen3:8b", ""), "which it listens at, is asked here"
        assert found(f"https://{host}") is None


GOOD = {"models": [model("qwen3:8b", *TOOLS)]}
RUBBISH = {
    "a redirect to who would answer": lambda handler: send(handler, b"", 307, Location="http://192.0.2.1/api/tags"),
    "an error with the right answer": lambda handler: send(handler, GOOD, 500),
    "no JSON": lambda handler: send(handler, b"<html>"),
    "no text": lambda handler: send(handler, b"\xff\xfe"),
    "JSON that is too deep": lambda handler: send(handler, b"[" * 200_000),
    "no HTTP": lambda handler: handler.wfile.write(b"220 mail\r\n"),
    "nothing": lambda handler: None,
    "too much": send_endlessly(b" " * 100_000, 0),
    "never an end": send_endlessly(b" ", 0.01),
    "never a beginning": lambda handler: time.sleep(2),
}


@pytest.mark.parametrize("case", RUBBISH)
def test_no_ollama_listens_there(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ollama, "SECONDS", 0.3)
    with serve_ollama(instead=RUBBISH[case]) as host:
        assert found(host) is None


def test_slow_ollama() -> None:
    def answer_late(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.5)
        send(handler, GOOD)

    with serve_ollama(instead=answer_late) as host:
        assert found(host) == ("qwen3:8b", "")


@pytest.mark.parametrize(
    "answer",
    [[], None, 1, {"models": None}, {"models": {"name": "qwen3:8b"}}, {"models": [None, 1, {}, {"name": 1}]}],
    ids=json.dumps,
)
def test_answer_of_another_shape(answer: object) -> None:
    with serve_ollama(instead=lambda handler: send(handler, answer)) as host:
        assert found(host) is None


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("localhost", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        (":8080", "http://127.0.0.1:8080"),
        ("127.0.0.2:1", "http://127.0.0.2:1"),
        ("::1", "http://[::1]:11434"),
        ("[::]:8080", "http://[::1]:8080"),
        (" http://localhost ", "http://127.0.0.1:80"),
        ("http://localhost:8080/", "http://127.0.0.1:8080"),
        ("localhost:no", "http://127.0.0.1:11434"),
        ("localhost:99999", "http://127.0.0.1:11434"),
        ("box.example:8080", "http://box.example:8080"),
        ("https://box.example", "https://box.example:443"),
        ("[bad", "http://bad:11434"),
    ],
)
def test_ollama_host(given: str, url: str) -> None:
    assert ollama.address({"OLLAMA_HOST": given} if given else {}).url == url


@pytest.mark.parametrize(
    "host", ["192.0.2.1", "192.0.2.1:11434", "box.example", "127.0.0.1.example", "http://10.0.0.1"]
)
def test_another_machine(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("somebody was asked"))
    assert found(host) is None
    chosen = {"LLM_PROVIDER": "ollama", "OLLAMA_HOST": host}
    assert ollama.base_url(chosen) == {"LLM_BASE_URL": f"{ollama.address(chosen).url}/v1"}, "unless it was chosen"


def test_nothing_listens() -> None:
    assert found(f"127.0.0.1:{find_free_port()}") is None


@pytest.mark.parametrize("name", ["LLM_PROVIDER", "LLM_BASE_URL", "LLM_API_KEY", "CEREBRAS_API_KEY"])
def test_another_provider(name: str) -> None:
    assert ollama.is_wanted({"LLM_MODEL": "m", "OPENAI_API_KEY": "k"})
    assert not ollama.is_wanted({name: "x"})
    assert ollama.base_url({"LLM_PROVIDER": "ollama"}) == {}
    assert ollama.base_url({"LLM_PROVIDER": "ollama", "OLLAMA_HOST": "x", "LLM_BASE_URL": "http://y/v1"}) == {}
