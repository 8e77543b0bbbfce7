"""After an upgrade of a database of version 0.2.0, every API renders what that version did.

The database and the responses were recorded from that version; `data/README.md` tells how.
"""

import gzip
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.conftest import migrate, new_database, prepare_roles
from tests.logins import as_admin, as_owner, as_service
from tests.migrations.older import DATA, create_tables, read_version_0_2_0
from tests.migrations.recording import USERS, normalise, record
from tests.support.stack import STACKS, Stack, run_services, run_stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until

pytestmark = pytest.mark.long(seconds=40)

Json = dict[str, Any]
RECORDED: Json = json.loads(gzip.decompress((DATA / "version-0.2.0.json.gz").read_bytes()))
_OLD_DUE = re.compile(r'"due": "\w{3} ([\d-]{10})(?: ([\d:]{5}))?"')
_OLD_NOW = re.compile(r'"now": "Wed 2026-11-25 09:00"')


@pytest.fixture
def upgraded_stack(server_url: str) -> Iterator[Stack]:
    with new_database(server_url) as (_, url), tempfile.TemporaryDirectory(prefix="todo-stack-") as directory:
        prepare_roles(url)
        create_tables(as_owner(url), read_version_0_2_0())
        migrate(url)
        with psycopg.connect(as_admin(url)) as connection:  # a sweep deletes old ones
            connection.execute("UPDATE task_calls SET created_at = now()")
        place = Path(directory)
        with run_services(as_service(url), place) as services, run_stack(services, STACKS["approvals"], place) as stack:
            yield stack


async def test_every_api(upgraded_stack: Stack) -> None:
    with Stored(upgraded_stack.database_url) as stored:
        await until(lambda: not stored.is_run_running(), seconds=60)  # that of the killed process
    for name in USERS:
        async with User(upgraded_stack, name) as user:
            shown = await record(user)
        expected = with_typed_dates(RECORDED[name])
        assert [*find_differences(simplify(expected), simplify(shown), name)] == []


def with_typed_dates(recorded: Json) -> Json:
    text = json.dumps(recorded)
    text = _OLD_NOW.sub('"now": "2026-11-25T09:00:00+01:00"', text)
    return json.loads(_OLD_DUE.sub(lambda due: f'"due": {json.dumps({"date": due[1], "time": due[2]})}', text))


def simplify(recorded: Json) -> Json:
    """Leaves out what version 0.3 tells later: the tool call that needs an approval, and the number of `approved`."""
    recorded = normalise(recorded, later_than=RECORDED["dumped_at"])
    approvals = {*re.findall(r'"approval_id": "(\w+)"', json.dumps(recorded))}
    return {address: _simplify(response, approvals) for address, response in recorded.items()}


def _simplify(value: Any, approvals: set[str]) -> Any:
    if isinstance(value, list):
        return [_simplify(each, approvals) for each in value if not _is_call_of(each, approvals)]
    if not isinstance(value, dict):
        return value
    left_out = "number" if value.get("event") == "approved" else None
    return {name: _simplify(each, approvals) for name, each in value.items() if name != left_out}


def _is_call_of(value: Any, approvals: set[str]) -> bool:
    data = value.get("data", value) if isinstance(value, dict) else {}
    return isinstance(data, dict) and data.get("type") == "TOOL_CALL" and data.get("id") in approvals


def find_differences(expected: Any, shown: Any, where: str) -> Iterator[str]:
    """Yields what is not shown as expected; there may be more in an object than is expected."""
    if isinstance(expected, dict) and isinstance(shown, dict):
        for name, value in expected.items():
            if name in shown:
                yield from find_differences(value, shown[name], f"{where} {name}")
            else:
                yield f"{where} {name} is missing"
    elif isinstance(expected, list) and isinstance(shown, list) and len(expected) == len(shown):
        for number, (value, other) in enumerate(zip(expected, shown, strict=True)):
            yield from find_differences(value, other, f"{where}[{number}]")
    elif expected != shown:
        yield f"{where} is {json.dumps(shown)}, not {json.dumps(expected)}"
