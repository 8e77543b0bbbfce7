"""Versions that the documents name are those of the files that pin them."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator

import pytest
from packaging.version import parse

from common import VERSION
from tests.conftest import ROOT
from tests.docs.documents import DOCUMENTS
from tests.node_packages import MCP_CLIENTS
from tests.support.ai_sdk import FRONTENDS

_VERSION = re.compile(
    r"(?P<name>[A-Z][\w.]*|@[\w/-]+|[\w-]+(?=@)|`[\w-]+`|\bversion)(?:@| )(?:before )?"
    r"(?P<version>\d+(?:\.\d+)+)\b(?: to (?P<last>[\d.]+\d))?"
)
_MAJOR = re.compile(r"(?P<name>PostgreSQL) (?P<version>\d+)\b(?P<last>)(?!\.)")
NOT_PINNED = {
    "Engine": "Docker's, with which it was tried by hand",
    "Linux": "what its kernel can do",
    "PgBouncer": "what it can do",
    "Ubuntu": "what it allows",
}


def read(path: str) -> str:
    return (ROOT / path).read_text()


def image(name: str) -> str:
    [version] = re.findall(rf"^ARG \w+={name}:([\d.]+)", read("Dockerfile"), re.MULTILINE)
    return version


def python_versions() -> list[str]:
    """The oldest and the newest one, for which there are packages with PostgreSQL."""
    oldest = tomllib.loads(read("pyproject.toml"))["project"]["requires-python"].removeprefix(">=")
    [after] = re.findall(r"python_full_version < '3\.(\d+)'", read("requirements-embedded.lock").splitlines()[0])
    return [oldest, f"3.{int(after) - 1}"]


def node_versions() -> list[str]:
    """What the Inspector needs."""
    packages = json.loads((MCP_CLIENTS / "package-lock.json").read_text())["packages"]
    return [packages["node_modules/@modelcontextprotocol/inspector"]["engines"]["node"].removeprefix(">=")]


def locked(name: str) -> list[str]:
    return [
        packages[name]
        for folder in (MCP_CLIENTS, FRONTENDS)
        if name in (packages := json.loads((folder / "package.json").read_text())["dependencies"])
    ]


PINNED: dict[str, Callable[[], list[str]]] = {
    "@modelcontextprotocol/inspector": lambda: locked("@modelcontextprotocol/inspector"),
    "Caddy": lambda: [image("caddy")],
    "Node.js": node_versions,
    "PostgreSQL": lambda: [image("postgres")],
    "Python": python_versions,
    "assistant-stream": lambda: locked("assistant-stream"),
    "mcp-remote": lambda: locked("mcp-remote"),
    "version": lambda: re.findall(r"^## \[([\d.]+)\]", read("CHANGELOG.md"), re.MULTILINE),
}


def list_versions() -> Iterator[tuple[str, str, str]]:
    """The document, the name and the version; without those of the machine on which the speed was measured."""
    for document in DOCUMENTS:
        if document != "docs/speed.md":
            for found in (*_VERSION.finditer(read(document)), *_MAJOR.finditer(read(document))):
                name = found["name"].strip("`")
                for version in filter(None, (found["version"], found["last"])):
                    yield document, "version" if name == "Version" else name, version


VERSIONS = sorted(set(list_versions()))


@pytest.mark.parametrize(("document", "name", "version"), VERSIONS)
def test_version(document: str, name: str, version: str) -> None:
    """A document may leave out the last numbers, and name a later version of this program."""
    assert name in PINNED or name in NOT_PINNED, f"which file pins {name}? Add it to PINNED, or else to NOT_PINNED"
    pinned = [f"{one}." for one in PINNED[name]()] if name in PINNED else [f"{version}."]
    is_planned = name == "version" and parse(version) > parse(VERSION)
    assert is_planned or any(one.startswith(f"{version}.") for one in pinned), (
        f"{document}: {name} {version}, pinned: {pinned}"
    )


def test_each_name_is_in_a_document() -> None:
    assert {name for _, name, _ in VERSIONS} == {*PINNED, *NOT_PINNED}
