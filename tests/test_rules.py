"""Rules of the house that no single room can hold."""

import json
import re
from collections.abc import Iterator

import pytest
from pydantic_settings import BaseSettings

from backend.settings import Settings as BackendSettings
from mcp_server.settings import Settings as McpSettings
from offline_model.settings import Settings as OfflineSettings
from tests.conftest import ROOT

SETTINGS: list[type[BaseSettings]] = [BackendSettings, McpSettings, OfflineSettings]


def variables(settings: type[BaseSettings]) -> Iterator[str]:
    prefix = settings.model_config.get("env_prefix", "")
    return (f"{prefix}{name}".upper() for name in settings.model_fields)


def example() -> dict[str, str]:
    return dict(re.findall(r"^([A-Z_]+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE))


def test_the_example_environment_names_every_setting_and_no_other() -> None:
    assert set(example()) == {name for settings in SETTINGS for name in variables(settings)}


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings.__module__)
def test_the_example_environment_shows_the_defaults(
    settings: type[BaseSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(example()):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DATABASE_URL", "postgresql://localhost/todo")
    plain = settings()
    for name, value in example().items():
        if value:
            monkeypatch.setenv(name, value)
    assert settings() == plain


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-runtime.lock"])
def test_a_lock_names_no_index_and_pins_everything_with_hashes(name: str) -> None:
    lock = (ROOT / name).read_text()
    assert "://" not in lock
    assert "--index" not in lock
    requirements = re.findall(r"^[a-z0-9].*", lock, re.MULTILINE)
    assert all(re.match(r"[a-z0-9._-]+(\[[a-z,]+\])?==\S+", line) for line in requirements)
    assert lock.count("--hash=sha256:") >= len(requirements)


def test_the_npm_lock_holds_names_and_hashes_only() -> None:
    lock = (ROOT / "tests/mcp_clients/package-lock.json").read_text()
    assert "://" not in lock
    assert lock.count('"integrity": "sha512-') > 50


def test_the_readme_names_the_clients_as_they_are_tested() -> None:
    readme = (ROOT / "README.md").read_text()
    locked = json.loads((ROOT / "tests/mcp_clients/package.json").read_text())["dependencies"]
    for client in ("@modelcontextprotocol/inspector", "mcp-remote"):
        assert f"{client}@{locked[client]}" in readme


def test_the_readme_is_short_and_names_the_test_command() -> None:
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) < 150
    assert "./todo test" in readme
