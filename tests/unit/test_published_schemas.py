"""What is published of the tools and the HTTP API has no names that only the code has."""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import httpx2
import pytest

import workspace.tools
from backend.app import create_app
from backend.model.providers import resolve
from backend.settings import BackendSettings
from mcp_server.tools import create_tools
from tests.conftest import ROOT

NAME = re.compile(r"`([A-Za-z_][\w.]*)(?:\(\))?`|\b([A-Za-z]+_\w+|[A-Z][a-z]+[A-Z]\w*)\b")
TOOLS = {tool.name: tool for tool in (*create_tools(with_user_id=True), *workspace.tools.TOOLS)}


@cache
def read_documents() -> str:
    paths = [*ROOT.glob("docs/*.md"), ROOT / "README.md", ROOT / ".env.example"]
    return "".join(path.read_text() for path in paths if path.name not in ("architecture.md", "contributing.md"))


def split_descriptions(value: Any) -> Iterator[tuple[str, bool]]:
    """Returns the texts of a schema, and whether they are descriptions; `title` is the name of a class."""
    match value:
        case dict():
            for name, part in value.items():
                if name == "description" and isinstance(part, str):
                    yield part, True
                elif not (name == "title" and isinstance(part, str)):
                    yield name, False
                    yield from split_descriptions(part)
        case list():
            for part in value:
                yield from split_descriptions(part)
        case _:
            yield json.dumps(value), False


def find_private_names(schema: Any) -> set[str]:
    """Returns the names in descriptions that are neither part of the schema nor of the users' documents."""
    parts = [*split_descriptions(schema)]
    public = " ".join([read_documents(), *(text for text, described in parts if not described)])
    names = {"".join(match) for text, described in parts if described for match in NAME.findall(text)}
    return {name for name in names if not re.search(rf"\b{re.escape(name)}\b", public)}


@pytest.mark.parametrize("name", TOOLS)
def test_tool(name: str) -> None:
    tool = TOOLS[name]
    schemas = [one.parameters["properties"] for one in TOOLS.values()]
    assert find_private_names([{"description": tool.description}, tool.output_schema, [*TOOLS], schemas]) == set()


async def test_http_api() -> None:
    settings = BackendSettings.model_validate({"database_url": "postgresql://x/y", "llm_provider": "offline"})
    transport = httpx2.ASGITransport(app=create_app(settings, resolve(settings)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        document = (await client.get("/openapi.json")).raise_for_status().json()
    assert find_private_names(document) == set()


@pytest.mark.parametrize("text", ["left out, see `lean`", "see render_value", "a TaskPatch", "as `Task.render`"])
def test_private_names_are_found(text: str) -> None:
    assert find_private_names({"properties": {"title": {"description": text}}})
