"""schemathesis on the HTTP API: what it makes up is answered, and never with a 5xx."""

import warnings
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


@pytest.mark.long
@SCHEMA.parametrize()
@settings(max_examples=60, suppress_health_check=SLOW)
def test_nothing_made_up_breaks_the_server(case: schemathesis.Case, url_of_process: str) -> None:
    response = case.call(base_url=url_of_process, timeout=20)
    assert response.status_code < 500, response.text
    for secret in ("postgresql", "Traceback", "psycopg"):
        assert secret not in response.text
