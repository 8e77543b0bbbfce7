import os
import re
import subprocess
import sys
from typing import Any

import psycopg
import pytest

from backend.model.providers import ModelNotConfigured, resolve
from backend.settings import Settings, read_settings
from service.environment import SettingsInvalid
from tests.conftest import ROOT
from tests.logins import as_admin

URL = "postgresql://localhost/todo"
NAMES = [name.upper() for name in Settings.model_fields]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ("offline", "http://127.0.0.1:8002/v1", "none", "offline-rules")),
        ({"OFFLINE_URL": "http://x/v1"}, ("offline", "http://x/v1", "none", "offline-rules")),
        (
            {"OFFLINE_URL": "http://x/v1", "CEREBRAS_API_KEY": "k"},
            ("cerebras", "https://api.cerebras.ai/v1", "k", "gpt-oss-120b"),
        ),
        ({"CEREBRAS_API_KEY": "k"}, ("cerebras", "https://api.cerebras.ai/v1", "k", "gpt-oss-120b")),
        ({"LLM_API_KEY": "k"}, ("cerebras", "https://api.cerebras.ai/v1", "k", "gpt-oss-120b")),
        ({"OPENAI_API_KEY": "k"}, ("offline", "http://127.0.0.1:8002/v1", "none", "offline-rules")),
        (
            {"LLM_PROVIDER": "openai", "OPENAI_API_KEY": "k", "CEREBRAS_API_KEY": "c", "LLM_MODEL": "m"},
            ("openai", "https://api.openai.com/v1", "k", "m"),
        ),
        ({"LLM_PROVIDER": "ollama"}, ("ollama", "http://localhost:11434/v1", "none", "qwen3:8b")),
        (
            {"LLM_PROVIDER": "anthropic", "LLM_API_KEY": "k"},
            ("anthropic", "https://api.anthropic.com/v1/", "k", "claude-opus-5-5"),
        ),
        (
            {"LLM_PROVIDER": "custom", "LLM_BASE_URL": "http://x/v1", "LLM_MODEL": "m"},
            ("custom", "http://x/v1", "none", "m"),
        ),
        (
            {"LLM_PROVIDER": "", "CEREBRAS_API_KEY": ""},
            ("offline", "http://127.0.0.1:8002/v1", "none", "offline-rules"),
        ),
    ],
)
def test_the_environment_chooses_the_model(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: tuple[str, ...]
) -> None:
    for name, value in {"DATABASE_URL": URL, **variables}.items():
        monkeypatch.setenv(name, value)
    endpoint = resolve(read_settings())
    assert (endpoint.profile.name, endpoint.base_url, endpoint.api_key, endpoint.model) == expected


@pytest.mark.parametrize(("given", "tokens"), [("", 16_000), ("1000", 1_000), ("500000", 500_000)])
def test_how_much_of_a_conversation_is_read_can_be_set(
    monkeypatch: pytest.MonkeyPatch, given: str, tokens: int
) -> None:
    for name, value in {"DATABASE_URL": URL, "CEREBRAS_API_KEY": "k", "HISTORY_TOKENS": given}.items():
        monkeypatch.setenv(name, value)
    assert resolve(read_settings()).profile.history_tokens == tokens


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"LLM_PROVIDER": "openai"}, "OPENAI_API_KEY or LLM_API_KEY"),
        ({"LLM_PROVIDER": "cerebras"}, "CEREBRAS_API_KEY or LLM_API_KEY"),
        ({"LLM_PROVIDER": "custom", "LLM_MODEL": "m"}, "LLM_BASE_URL"),
        ({"LLM_PROVIDER": "custom", "LLM_BASE_URL": "http://x"}, "LLM_MODEL"),
    ],
)
def test_a_model_that_is_not_configured_is_named(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], sentence: str
) -> None:
    for name, value in {"DATABASE_URL": URL, **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ModelNotConfigured, match=sentence):
        resolve(read_settings())


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"DATABASE_URL": ""}, "DATABASE_URL is not set"),
        ({"DATABASE_URL": "mysql://secret@x"}, "DATABASE_URL"),
        ({"DATABASE_URL": "postgresql://me:secret@host:port/todo"}, "DATABASE_URL"),
        ({"BACKEND_PORT": "many"}, "BACKEND_PORT"),
        ({"LLM_TEMPERATURE": "9"}, "LLM_TEMPERATURE"),
        ({"HISTORY_TOKENS": "999"}, "HISTORY_TOKENS must be a whole number that is at least 1000"),
        ({"HISTORY_TOKENS": "8k"}, "HISTORY_TOKENS must be a whole number that is at least 1000"),
        ({"LLM_PROVIDER": "skynet"}, "LLM_PROVIDER"),
        ({"AUTH_MODE": "jwt"}, "AUTH_MODE"),
        ({"BACKEND_HOST": "0.0.0.0"}, "BACKEND_HOST"),
    ],
)
def test_a_setting_that_cannot_work_is_named(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], sentence: str
) -> None:
    for name, value in {"DATABASE_URL": URL, **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsInvalid, match=sentence) as caught:
        read_settings()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("approvals", "sentence"),
    [
        ("bulk,delete_tsk", "APPROVALS must be of bulk, .*, delete_task, .*; 'delete_tsk' is none of these."),
        ("none,bulk", "APPROVALS must be none alone"),
        (",", "APPROVALS must be none alone"),
    ],
)
def test_what_is_to_be_asked_must_be_known(approvals: str, sentence: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key not in NAMES}
    environment |= {"DATABASE_URL": URL, "APPROVALS": approvals}
    command = [sys.executable, "-m", "backend", "check"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == os.EX_CONFIG
    assert re.match(sentence, done.stderr)


def test_beyond_loopback_only_when_told_so_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    variables: dict[str, Any] = {"DATABASE_URL": URL, "BACKEND_HOST": "0.0.0.0", "AUTH_NONE_BEYOND_LOOPBACK": "true"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert read_settings().backend_host == "0.0.0.0"


@pytest.mark.parametrize("arguments", [[], ["check"]])
def test_the_service_does_not_start_and_says_why(arguments: list[str]) -> None:
    environment = {key: value for key, value in os.environ.items() if key not in NAMES}
    command = [sys.executable, "-m", "backend", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == os.EX_CONFIG
    assert done.stderr == "DATABASE_URL is not set: .env.example says what it is.\n"


@pytest.mark.parametrize("room", ["backend", "mcp_server"])
def test_an_unknown_command_starts_no_service(room: str) -> None:
    command = [sys.executable, "-m", room, "chekc"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith(f"chekc is no command of {room}: give ")
    assert " check, export" in done.stderr
    assert done.stdout == ""


def test_a_database_where_rows_are_not_kept_apart_is_refused(fresh_database_url: str) -> None:
    with psycopg.connect(as_admin(fresh_database_url)) as connection:
        connection.execute("ALTER TABLE messages DISABLE ROW LEVEL SECURITY")
    environment = {key: value for key, value in os.environ.items() if key not in NAMES}
    command = [sys.executable, "-m", "backend"]
    environment |= {"DATABASE_URL": fresh_database_url}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == os.EX_CONFIG
    assert "ALTER TABLE messages ENABLE ROW LEVEL SECURITY" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_lease_shorter_than_its_heartbeat_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"DATABASE_URL": URL, "HEARTBEAT_SECONDS": "60", "LEASE_SECONDS": "6"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsInvalid, match="LEASE_SECONDS"):
        read_settings()
