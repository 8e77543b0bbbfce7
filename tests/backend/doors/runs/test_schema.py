"""The schema that the run API publishes: it is true, whatever is made up of it."""

import json
import re

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from client.runs import Runs
from tests.backend.doors.runs.published import schema
from tests.chatkit_client import ChatKit

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
TRUE = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]


SCHEMA = schemathesis.openapi.from_dict(schema())


async def test_the_schema_is_published_to_whoever_asks(chat: ChatKit) -> None:
    response = await chat.http.get("/chats/openapi.json")
    assert response.status_code == 200
    assert response.json() == schema()
    assert response.json()["openapi"].startswith("3.1.")


def test_every_operation_says_how_it_refuses_and_which_are_repeated_safely() -> None:
    for path, operations in schema()["paths"].items():
        for method, operation in operations.items():
            assert {"401", "413", "429"} <= set(operation["responses"]), (method, path)
            keyed = any(given["name"] == "Idempotency-Key" for given in operation.get("parameters", ()))
            assert keyed == (method == "post"), (method, path)


def test_every_reference_in_it_leads_to_a_schema() -> None:
    whole = schema()
    references = {*re.findall(r'"\$ref": "([^"]+)"', json.dumps(whole))}
    named = {f"#/components/schemas/{name}" for name in whole["components"]["schemas"]}
    assert references >= {"#/components/schemas/Refused", "#/components/schemas/Message"}
    assert references <= named


@pytest.mark.long
@SCHEMA.parametrize()
@settings(max_examples=60, suppress_health_check=SLOW)
def test_what_is_made_up_is_answered_as_the_schema_says(case: schemathesis.Case, url_of_process: str) -> None:
    response = case.call(base_url=url_of_process, timeout=30)
    case.validate_response(response, checks=TRUE)
    for secret in ("postgresql", "Traceback", "psycopg"):
        assert secret not in response.text


def test_the_client_has_every_operation_of_the_run_api() -> None:
    paths = {path: methods for path, methods in schema()["paths"].items() if path.startswith("/chats")}
    operations = [(method, path) for path, methods in paths.items() for method in methods]
    assert len(operations) == len([name for name in vars(Runs) if not name.startswith("_")])
