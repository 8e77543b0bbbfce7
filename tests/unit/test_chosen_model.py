"""Which model the environment chooses."""

from typing import Any, get_args

import pytest

from backend.model.providers import PROFILES, ModelEndpoint, Profile, resolve
from backend.settings import BackendSettings, ProviderName, read_settings

OFFLINE = ("offline", "http://127.0.0.1:8002/v1", "none", "offline-rules")
CEREBRAS = ("cerebras", "https://api.cerebras.ai/v1", "k", "gpt-oss-120b")


def resolved(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> ModelEndpoint:
    for name in BackendSettings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in {"DATABASE_URL": "postgresql://localhost/todo", **variables}.items():
        monkeypatch.setenv(name, value)
    return resolve(read_settings())


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, OFFLINE),
        ({"OPENAI_API_KEY": "k"}, OFFLINE),
        ({"LLM_PROVIDER": "", "CEREBRAS_API_KEY": ""}, OFFLINE),
        ({"OFFLINE_URL": "http://x/v1"}, ("offline", "http://x/v1", "none", "offline-rules")),
        ({"OFFLINE_URL": "http://x/v1", "CEREBRAS_API_KEY": "k"}, CEREBRAS),
        ({"CEREBRAS_API_KEY": "k"}, CEREBRAS),
        ({"LLM_API_KEY": "k"}, CEREBRAS),
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
    ],
)
def test_provider(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: tuple[str, ...]) -> None:
    endpoint = resolved(monkeypatch, variables)
    assert (endpoint.profile.name, endpoint.base_url, endpoint.api_key, endpoint.model) == expected


def test_each_provider_that_can_be_chosen_has_a_profile() -> None:
    assert set(PROFILES) == set(get_args(ProviderName))


def test_provider_needs_a_setting_for_its_key() -> None:
    name: Any = "newest"
    with pytest.raises(TypeError, match="newest_api_key"):
        Profile(name, base_url="http://x/v1", model="m")
    Profile(name, base_url="http://x/v1", model="m", needs_key=False)
