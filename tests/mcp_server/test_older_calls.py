"""Calls as they were made before tasks had dates mean the same, and return the same fields."""

import json
from pathlib import Path
from typing import Any

from tests.mcp_server.calls import Tools

# Recorded, one after the other, from the server before migration 0009. "$time" is any moment, "$next" a cursor.
CALLS = json.loads((Path(__file__).parent / "older_calls.json").read_text())


async def test_calls_recorded_of_the_server_before(tools: Tools) -> None:
    cursor: str | None = None
    for call in CALLS:
        arguments = {name: cursor if value == "$next" else value for name, value in call["arguments"].items()}
        meta = {"todo/idempotency_key": call["key"]} if "key" in call else None
        if call.get("refused"):
            assert "internal error" not in await tools.refusal(call["tool"], **arguments, meta=meta)
            continue
        result = await tools.call(call["tool"], **arguments, meta=meta)
        cursor = result.get("next_cursor") or cursor
        assert_holds(result, call["result"])


def assert_holds(found: Any, recorded: Any) -> None:
    """What was recorded is there with the same values, whatever there is beside it."""
    if isinstance(recorded, dict):
        for name, value in recorded.items():
            assert_holds(found[name], value)
    elif isinstance(recorded, list):
        assert len(found) == len(recorded)
        for one, other in zip(found, recorded, strict=True):
            assert_holds(one, other)
    elif recorded in ("$time", "$next"):
        assert isinstance(found, str)
    else:
        assert found == recorded
