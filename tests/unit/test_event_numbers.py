"""Readers who ask for what happened after a number get each event of a tool call."""

import re
from dataclasses import fields

from backend.conversations.records import ToolCall
from backend.conversations.schema import ToolCallRow
from backend.conversations.timeline import CALL_COLUMNS

NUMBERS = {field.name for field in fields(ToolCall) if field.name.endswith("seq")}


def test_numbers_are_read() -> None:
    assert set(re.findall(r"c\.(\w*seq)\b", CALL_COLUMNS)) == NUMBERS


def test_last_number_is_the_greatest_of_all() -> None:
    computed = ToolCallRow.metadata.tables["tool_calls"].columns["last_seq"].computed
    assert computed is not None
    assert set(re.findall(r"\w*seq", str(computed.sqltext))) == NUMBERS
