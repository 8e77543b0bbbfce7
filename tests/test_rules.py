"""Rules of the house that no single room can hold."""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pydantic_settings import BaseSettings

from backend.settings import Settings as BackendSettings
from cli.arguments import values
from mcp_server.imports.reading import FORMATS
from mcp_server.settings import ImportSettings
from mcp_server.settings import Settings as McpSettings
from offline_model.settings import Settings as OfflineSettings
from service.settings import OwnerSettings
from service.workers import ClientLimits
from tests.conftest import ROOT
from tests.settings import example, variables
from tests.tokens import OTHER_SECRET
from workspace.settings import Settings as WorkspaceSettings

ROOMS: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
SETTINGS: list[type[BaseSettings]] = [
    *(BackendSettings, OwnerSettings, McpSettings, ImportSettings, OfflineSettings, WorkspaceSettings, ClientLimits),
]
NEEDED = {
    "DATABASE_URL": "postgresql://localhost/todo",
    "WORKSPACE_DIR": "/var/lib/todo",
    "WORKSPACE_TOKEN_SECRET": OTHER_SECRET,
}


def test_the_example_environment_names_every_setting_and_no_other() -> None:
    assert set(example()) == {name for settings in SETTINGS for name in variables(settings)}


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings.__module__)
def test_the_example_environment_shows_the_defaults(
    settings: type[BaseSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(example()):
        monkeypatch.delenv(name, raising=False)
    for name, value in NEEDED.items():
        monkeypatch.setenv(name, value)
    plain = settings()
    for name, value in example().items():
        if value:
            monkeypatch.setenv(name, value)
    assert settings() == plain


def test_the_command_line_names_the_formats_that_can_be_imported() -> None:
    assert values.IMPORTED == FORMATS


@pytest.mark.parametrize("name", sorted(path.name for path in ROOT.glob("requirements*.lock")))
def test_a_lock_names_no_index_and_pins_everything_with_hashes(name: str) -> None:
    lock = (ROOT / name).read_text()
    assert "://" not in lock
    assert "--index" not in lock
    requirements = re.findall(r"^[a-z0-9].*", lock, re.MULTILINE)
    assert all(re.match(r"[a-z0-9._-]+(\[[a-z,]+\])?==\S+", line) for line in requirements)
    assert lock.count("--hash=sha256:") >= len(requirements)


@pytest.mark.parametrize("room", [*ROOMS, "tests"])
def test_what_a_room_imports_is_declared(room: str) -> None:
    """Another package may bring it today, and not tomorrow."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    declared = list(project["project"]["dependencies"])
    declared += project["dependency-groups"]["dev"] if room == "tests" else []
    names = {canonicalize_name(Requirement(line).name) for line in declared}
    brought_by = packages_distributions()
    imported = {name for path in (ROOT / room).rglob("*.py") for name in imports(path)}
    missing = {
        name
        for name in imported - sys.stdlib_module_names - {*ROOMS, "tests"}
        if not {canonicalize_name(one) for one in [name, *brought_by.get(name, ())]} & names
    }
    assert not missing


def imports(path: Path) -> Iterator[str]:
    """The first part of the name of each module that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from (alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(module))]):
                yield module.partition(".")[0]


def test_what_tests_share_stands_in_a_module_without_tests() -> None:
    found = {(path.name, name) for path in (ROOT / "tests").rglob("*.py") for name in imported_names(path)}
    assert not {(path, name) for path, name in found if any(part.startswith("test_") for part in name.split("."))}


def imported_names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names):
                yield from (f"{module}.{alias.name}" for alias in names)


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
