"""What has to agree between files of this project, and what no linter checks."""

import ast
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
from common.settings import OwnerSettings
from common.workers import ClientLimits
from mcp_server.imports.reading import FORMATS
from mcp_server.settings import ImportSettings
from mcp_server.settings import Settings as McpSettings
from offline_model.settings import Settings as OfflineSettings
from tests.conftest import ROOT
from tests.settings import example, variables
from tests.tokens import OTHER_SECRET
from workspace.settings import Settings as WorkspaceSettings

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES: list[str] = PROJECT["tool"]["importlinter"]["root_packages"]
SETTINGS: list[type[BaseSettings]] = [
    *(BackendSettings, OwnerSettings, McpSettings, ImportSettings, OfflineSettings, WorkspaceSettings, ClientLimits),
]
REQUIRED = {
    "DATABASE_URL": "postgresql://localhost/todo",
    "WORKSPACE_DIR": "/var/lib/todo",
    "WORKSPACE_TOKEN_SECRET": OTHER_SECRET,
}


def test_example_environment_names_every_setting() -> None:
    assert set(example()) == {name for settings in SETTINGS for name in variables(settings)}


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings.__module__)
def test_example_environment_shows_the_defaults(settings: type[BaseSettings], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in example():
        monkeypatch.delenv(name, raising=False)
    for name, value in REQUIRED.items():
        monkeypatch.setenv(name, value)
    defaults = settings()
    for name, value in example().items():
        if value:
            monkeypatch.setenv(name, value)
    assert settings() == defaults


def test_command_line_names_the_import_formats() -> None:
    assert values.IMPORTED == FORMATS


@pytest.mark.parametrize("name", sorted(path.name for path in ROOT.glob("requirements*.lock")))
def test_python_lock_pins_every_package_by_hash(name: str) -> None:
    lock = (ROOT / name).read_text()
    requirements = re.findall(r"^[a-z0-9].*", lock, re.MULTILINE)
    assert all(re.match(r"[a-z0-9._-]+(\[[a-z,]+\])?==\S+", line) for line in requirements)
    assert lock.count("--hash=sha256:") >= len(requirements) > 0
    assert "://" not in lock
    assert "--index" not in lock


@pytest.mark.parametrize("package", PACKAGES)
def test_imported_packages_are_declared(package: str) -> None:
    """Otherwise a package is there only as long as another one needs it."""
    declared = {canonicalize_name(Requirement(line).name) for line in PROJECT["project"]["dependencies"]}
    distributions = packages_distributions()
    imported = {name for path in (ROOT / package).rglob("*.py") for name in imports(path)}
    others = imported - sys.stdlib_module_names - {*PACKAGES}
    assert not {
        name for name in others if declared.isdisjoint(map(canonicalize_name, [name, *distributions.get(name, ())]))
    }


def imports(path: Path) -> Iterator[str]:
    """The first part of the name of each module that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from (alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]
            case _:
                pass
