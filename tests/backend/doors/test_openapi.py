"""schemathesis on the HTTP API: what it makes up is answered, and never with a 5xx."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from chatkit.types import ChatKitReq
from hypothesis import HealthCheck, settings
from pydantic import TypeAdapter
from pydantic.json_schema import PydanticJsonSchemaWarning

from backend.app import create_app
from backend.model.providers import resolve
from backend.settings import Settings
from tests.processes import ServiceProcess


def api() -> dict[str, Any]:
    """The API as FastAPI describes it, with ChatKit's requests as the body of /chatkit."""
    values: dict[str, Any] = {"database_url": "postgresql://localhost/todo"}
    given = Settings(**values)
    described = create_app(given, resolve(given)).openapi()
    with warnings.catch_warnings(action="ignore", category=PydanticJsonSchemaWarning):  # a default of a type variable
        body = TypeAdapter(ChatKitReq).json_schema(ref_template="#/components/schemas/{model}")
    described.setdefault("components", {}).setdefault("schemas", {}).update(body.pop("$defs"))
    described["paths"]["/chatkit"]["post"]["requestBody"] = {"content": {"application/json": {"schema": body}}}
    return described


SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
SCHEMA = schemathesis.openapi.from_dict(api())


@pytest.fixture(scope="module")
def url(session_database_url: str, mcp_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory: Path = tmp_path_factory.mktemp("openapi")
    model = ServiceProcess("offline_model", "OFFLINE_PORT", directory / "model.log")
    backend = ServiceProcess(
        "backend",
        "BACKEND_PORT",
        directory / "backend.log",
        DATABASE_URL=session_database_url,
        MCP_URL=mcp_url,
        LLM_PROVIDER="offline",
        LLM_BASE_URL=f"{model.url}/v1",
    )
    for service in (model, backend):
        service.start()
    backend.wait_until_ready()
    yield backend.url
    for service in (model, backend):
        service.end()


@pytest.mark.long
@SCHEMA.parametrize()
@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
def test_nothing_made_up_breaks_the_server(case: schemathesis.Case, url: str) -> None:
    response = case.call(base_url=url, timeout=20)
    assert response.status_code < 500, response.text
    for secret in ("postgresql", "Traceback", "psycopg"):
        assert secret not in response.text
