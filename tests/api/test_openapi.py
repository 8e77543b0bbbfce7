"""The schema that the server publishes is valid and true, whatever schemathesis makes up of it."""

import re
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from tests.support.users import User

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]


OTHER_ERRORS = {
    *(("502", "/chat"), ("503", "/ready"), ("404", "/c/{chat_id}")),
    *((status, "/session/callback") for status in ("400", "403", "404", "429", "503")),
}
"""A failed answer and the state have more fields, and pages say themselves what is missing or wrong."""
UNKEYED = {"/chatkit", "/chats/{chat_id}/commit"}


@pytest.fixture
def document(user: User) -> dict[str, Any]:
    """Published to everybody, with or without a token."""
    return httpx2.get(f"{user.url}/openapi.json", trust_env=False, timeout=60).json()


def test_document(document: dict[str, Any], user: User) -> None:
    OPENAPI_31_VALIDATOR.validate(document)
    components = document["components"]
    references = {*re.findall(r"'\$ref': '#/components/([^']+)'", str(document))}
    assert references <= {f"{kind}/{name}" for kind, values in components.items() for name in values}
    assert "422" not in str([list(one["responses"]) for one in list_operations(document).values()])
    older = httpx2.get(f"{user.url}/chats/openapi.json", trust_env=False, timeout=60).json()
    assert older == document, "its address up to version 0.2"


def test_operations(document: dict[str, Any]) -> None:
    """Each says how it rejects a request, and each of the run API's that changes something takes an idempotency key."""
    error = {"$ref": "#/components/schemas/Error"}
    named = document["components"]["responses"]
    for (method, path), operation in list_operations(document).items():
        responses, names = operation["responses"], [one.get("name") for one in operation.get("parameters", ())]
        assert {"405", "421", "500"} <= set(responses), (method, path)
        assert ("401" in responses) == (operation["security"] != []) or path in ("/session", "/links/take")
        if operation["security"]:
            assert {"400", "413", "429", "503"} <= set(responses), (method, path)
        if "{" in path and path != "/chat/stream/{chat_id}/stream":
            assert "404" in responses, (method, path)
        assert ("415" in responses) == (method in ("post", "patch") and "requestBody" in operation), (method, path)
        for status, response in responses.items():
            if status >= "400" and (status, path) not in OTHER_ERRORS:
                shown = named[response["$ref"].rpartition("/")[2]] if "$ref" in response else response
                assert shown["content"] == {"application/json": {"schema": error}}, (method, path, status)
        if method == "post" and path.startswith(("/chats/", "/chat", "/tasks", "/memory")) and path not in UNKEYED:
            assert "Idempotency-Key" in names, (method, path)


def list_operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    paths = document["paths"].items()
    return {(method, path): operation for path, operations in paths for method, operation in operations.items()}


def test_times_and_ids(document: dict[str, Any]) -> None:
    """A time is a text in the form of ISO 8601, and an id a text, other than the numbers of tasks and channels."""
    schemas = {name: schema for name, schema in document["components"]["schemas"].items() if name != "TaskCounts"}
    for schema, name, value in [
        (one, *field) for one, it in schemas.items() for field in it.get("properties", {}).items()
    ]:
        types = {one.get("type") for one in value.get("anyOf", [value])}
        if name.endswith("_at") or name in ("modified", "expires", "completed", "deleted"):
            formats = {one.get("format") for one in value.get("anyOf", [value]) if one["type"] != "null"}
            assert formats == {"date-time"}, (schema, name)
        if name == "id" or name.endswith("_id"):
            is_number = name in ("task_id", "channel_id") or schema in ("Task", "ListedTask", "ShownChannel")
            assert types <= ({"integer"} if is_number else {"string", "null"}), (schema, name)


@pytest.mark.long
def test_generated_requests(user: User, document: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {user.token}"}
    for operation in list_operations(document).values():  # any other time zone is an error
        operation["parameters"] = [one for one in operation.get("parameters", ()) if "TimeZone" not in str(one)]
    results = schemathesis.openapi.from_dict(document).get_all_operations()
    operations = [result.ok() for result in results if isinstance(result, Ok)]
    assert len(operations) > 10

    def check(case: Case) -> None:
        response = case.call(base_url=user.url, headers=headers, timeout=60)
        case.validate_response(response, checks=CHECKS)
        for internal in ("postgresql", "Traceback", "psycopg"):
            assert internal not in response.text

    for operation in operations:
        limited = settings(max_examples=20, suppress_health_check=SLOW, deadline=None)
        limited(given(case=operation.as_strategy())(check))()
