"""The schema that the run API publishes is true, whatever schemathesis makes up of it."""

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


@pytest.fixture
def document(user: User) -> dict[str, Any]:
    """Published to everybody, with or without a token."""
    return httpx2.get(f"{user.url}/chats/openapi.json", trust_env=False, timeout=60).json()


def test_document(document: dict[str, Any]) -> None:
    """Each operation says how it rejects a request, each POST takes an idempotency key, and no reference is broken."""
    assert document["openapi"].startswith("3.1.")
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert {"401", "413", "429"} <= set(operation["responses"]), (method, path)
            keyed = any(one["name"] == "Idempotency-Key" for one in operation.get("parameters", ()))
            assert keyed == (method == "post"), (method, path)
    references = {*re.findall(r"'\$ref': '([^']+)'", str(document))}
    assert references <= {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}


@pytest.mark.long
def test_generated_requests(user: User, document: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {user.token}"}
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
