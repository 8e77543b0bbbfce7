"""The offline model understands the same sentences as the page's line that adds tasks: `tests/sentences.json`."""

import json
from datetime import datetime
from typing import Any

import pytest

from mcp_server.tasks import dates
from offline_model.rules.language.text import Text
from offline_model.rules.plans.new_tasks import new_tasks
from tests.conftest import ROOT

TABLE = json.loads((ROOT / "tests" / "sentences.json").read_text())
NOW = datetime.fromisoformat(TABLE["now"])


@pytest.mark.parametrize("sentence", TABLE["sentences"], ids=lambda sentence: sentence["say"])
def test_it_understands_the_table(sentence: dict[str, Any]) -> None:
    [task] = new_tasks(Text.said(sentence["say"], NOW))
    if "due" in task:
        task["due"] = as_written(task["due"])
    assert task == {name: value for name, value in sentence.items() if name != "say"}


def as_written(due: str) -> str:
    """As the table has it, whichever word of the tools' grammar it was."""
    read = dates.read_due(due, now=NOW)
    assert isinstance(read, dates.Due)
    return f"{read.day}" + (f" {read.time:%H:%M}" if read.time else "")
