"""An event of the run API is the same in its class, docs/api.md, the published schema and the Python client."""

import re

import pytest

from backend.api.interactions.events import EVENTS, AgentEvent
from backend.api.interactions.schemas import StreamedEvent
from tests.conftest import ROOT
from tests.runs_client import AGENT_EVENTS, SHAPES
from todo_client.events import EventType


def test_names() -> None:
    assert [*EVENTS] == StreamedEvent.model_json_schema()["properties"]["event"]["enum"]
    assert {*EVENTS} == {*SHAPES}
    assert {name for name, event in EVENTS.items() if issubclass(event, AgentEvent)} == AGENT_EVENTS


@pytest.mark.parametrize("name", sorted({*EVENTS} | {*SHAPES}))
def test_fields(name: str) -> None:
    fields, documented = EVENTS[name].model_fields, SHAPES[name]
    assert {*fields} == {*documented}
    sometimes_missing = {field for field, is_always_there in documented.items() if not is_always_there}
    assert sometimes_missing <= {field for field, about in fields.items() if not about.is_required()}


def test_the_client_documents_all_that_it_hands_on() -> None:
    table = (ROOT / "docs/python.md").read_text().partition("| type | data |\n|---|---|\n")[2].partition("\n\n")[0]
    assert {name for row in table.splitlines() for name in re.findall(r"`([A-Z_]+)`", row.split(" | ")[0])} == {
        *EventType
    }
