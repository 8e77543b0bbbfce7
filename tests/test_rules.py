"""Checks that files of this project agree, where no linter does."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import get_args

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from backend.settings import ProviderName
from cli.chat.commands import table
from cli.commands import user_data
from common import VERSION
from mcp_server.imports.formats import FORMATS
from tests.conftest import ROOT
from tests.settings import FILES

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CLIENT = tomllib.loads((ROOT / "todo_client" / "pyproject.toml").read_text())["project"]
PACKAGES: list[str] = PROJECT["tool"]["importlinter"]["root_packages"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_repeat_the_settings_classes(path: Path) -> None:
    text = path.read_text()
    assert FILES[path](text) == text, "run: python -m tests.settings"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_new_setting_is_added_beside_its_neighbours(path: Path) -> None:
    text = path.read_text()
    assert "LIMIT_TASKS" in text
    without = "".join(line for line in text.splitlines(keepends=True) if "LIMIT_TASKS" not in line)
    assert [line for line in FILES[path](without).splitlines() if "LIMIT_" in line] == [
        line for line in text.splitlines() if "LIMIT_" in line
    ]


@pytest.mark.parametrize(
    "path", [*(ROOT / "web").rglob("*.js"), ROOT / "web" / "index.html"], ids=lambda path: path.name
)
def test_page_names_no_address_from_the_root(path: Path) -> None:
    """All paths are relative to `<base>`, so that the page works below a path of a proxy."""
    if "vendor" not in path.parts:
        found = re.findall(r"""(?<!base href=)["'`]/[\w$].*""", path.read_text())
        assert found == []


def test_one_version() -> None:
    """The version is repeated in `common`, as the image has no pyproject.toml, and in the changelog."""
    newest = re.findall(r"^## \[(\d.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    assert PROJECT["project"]["version"] == CLIENT["version"] == VERSION == newest


def test_command_line_names_the_import_formats() -> None:
    assert (*FORMATS,) == user_data.IMPORT_FORMATS


def test_document_names_the_import_formats() -> None:
    section = (ROOT / "docs" / "data.md").read_text().partition("\n## Import\n")[2].partition("\n## ")[0].lower()
    assert [name for name in FORMATS if name not in section] == []


def test_documents_list_the_providers() -> None:
    [table] = re.findall(r"\| `LLM_PROVIDER` \|.*?\n\n", (ROOT / "docs" / "models.md").read_text(), re.DOTALL)
    assert {*re.findall(r"^\| `([a-z]+)`", table, re.MULTILINE)} == {*get_args(ProviderName)}
    [sentence] = re.findall(r"LLM_PROVIDER is (.*?)\.", (ROOT / ".env.example").read_text(), re.DOTALL)
    assert {*re.findall(r"[a-z]+", sentence)} - {"or"} == {*get_args(ProviderName)}


def test_page_draws_the_components_of_cards() -> None:
    drawn = re.findall(r'(?:case|root\.type ===) "(\w+)"', (ROOT / "web" / "chat" / "widgets.js").read_text())
    modules = (ROOT / "backend" / "cards").glob("*.py")
    used = {name for path in modules for name in re.findall(r'"type": "([A-Z]\w+)"', path.read_text())}
    assert used - {*drawn} == {"Card"}, "a card has no case of its own"


def test_document_lists_the_slash_commands() -> None:
    [listed] = re.findall(r"\| command \|.*?\n\n", (ROOT / "docs" / "terminal.md").read_text(), re.DOTALL)
    assert set(re.findall(r"`/([a-z]+)", listed)) == {*table.COMMANDS}


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
    """An undeclared package would be installed only as long as another one needs it."""
    declared = {canonicalize_name(Requirement(line).name) for line in PROJECT["project"]["dependencies"]}
    distributions = packages_distributions()
    imported = {name for path in (ROOT / package).rglob("*.py") for name in list_imports(path)}
    others = imported - sys.stdlib_module_names - {*PACKAGES}
    assert not {
        name for name in others if declared.isdisjoint(map(canonicalize_name, [name, *distributions.get(name, ())]))
    }


def test_client_is_installed_by_itself() -> None:
    imported = {name for path in (ROOT / "todo_client").glob("*.py") for name in list_imports(path)}
    assert imported - sys.stdlib_module_names == {"httpx2", "todo_client"}
    assert [line for line in PROJECT["project"]["dependencies"] if line.startswith("httpx2")] == CLIENT["dependencies"]


def test_modules_of_the_page_import_each_other_in_one_direction() -> None:
    """Comments import types, which may be from anywhere."""
    paths = [path for path in (ROOT / "web").rglob("*.js") if "vendor" not in path.parts]
    modules = {path: re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL) for path in paths}
    imports = {
        path: {(path.parent / name).resolve() for name in re.findall(r'(?:from|import)[ (]"(\.[^"]+)"', text)}
        for path, text in modules.items()
    }
    TopologicalSorter(imports).prepare()  # raises CycleError


def list_imports(path: Path) -> Iterator[str]:
    """Returns the top-level names of the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from (alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]
            case _:
                pass
