"""The places that repeat the table of a task's fields: signatures of the tools, and the model of the database."""

import inspect
from datetime import UTC, datetime
from typing import Any, get_args, get_type_hints

import pytest
from pydantic import TypeAdapter, ValidationError
from sqlalchemy.dialects import postgresql

from mcp_server import arguments, tools
from mcp_server.models import TaskRow
from mcp_server.tasks.fields import ARGUMENTS, COLUMNS, Task, TaskPatch, parse_value, render_value
from tests.mcp.calls import FULL

TABLE = TaskRow.metadata.tables["tasks"]
SQL_TYPES = {"timestamptz": "TIMESTAMP WITH TIME ZONE", "time(0)": "TIME(0) WITHOUT TIME ZONE"}
"""As SQLAlchemy spells them, if it is not the same."""
TOOLS: dict[str, Any] = {"add": tools.add_task, "update": tools.update_task}
OTHER_ARGUMENTS = {"user_id", "task_id", "also", "undo"}


def test_model_has_the_columns_of_the_table() -> None:
    of_alerts = ["snoozed_until", "alert_at", "alert_stale_since"]  # they follow from the fields, and from a snooze
    assert [column.name for column in TABLE.columns] == ["user_id", *COLUMNS, *of_alerts, "folded"]


@pytest.mark.parametrize("name", COLUMNS)
def test_column_of_the_model(name: str) -> None:
    kind = TABLE.columns[name].type.compile(postgresql.dialect())
    assert kind == SQL_TYPES.get(COLUMNS[name].type, COLUMNS[name].type.upper())
    assert TABLE.columns[name].nullable == (type(None) in get_args(Task.model_fields[name].annotation))


@pytest.mark.parametrize("tool", TOOLS)
def test_arguments_of_a_tool_are_those_of_the_table(tool: str) -> None:
    hints = get_type_hints(TOOLS[tool], include_extras=True)
    assert arguments.list_arguments(hints).keys() - OTHER_ARGUMENTS == {
        name for name, types in ARGUMENTS.items() if getattr(types, tool)
    }


def test_tests_set_each_field() -> None:
    assert FULL.keys() == {name for name, types in ARGUMENTS.items() if types.add}


@pytest.mark.parametrize(
    ("tool", "name"), [(tool, name) for tool in TOOLS for name, types in ARGUMENTS.items() if getattr(types, tool)]
)
def test_argument_of_a_tool(tool: str, name: str) -> None:
    assert get_type_hints(TOOLS[tool], include_extras=True)[name] == getattr(ARGUMENTS[name], tool)
    is_required = (tool, name) == ("add", "title")
    assert inspect.signature(TOOLS[tool]).parameters[name].default is (inspect.Parameter.empty if is_required else None)


@pytest.mark.parametrize("name", [name for name, column in COLUMNS.items() if column.words])
def test_words_of_numbers(name: str) -> None:
    words = COLUMNS[name].words
    assert [render_value(name, number) for number in words.values()] == [*words]
    assert [parse_value(name, word) for word in words] == [*words.values()]
    assert render_value(name, None) is None


def test_value_that_a_word_removes() -> None:
    assert parse_value("priority", "none") is None


@pytest.mark.parametrize(("name", "least", "most"), [("priority", 1, 3), ("remind", -1, 40_320)])
def test_numbers_of_a_field(name: str, least: int, most: int) -> None:
    assert COLUMNS[name].check == f"{name} BETWEEN {least} AND {most}"
    row = Task.new("milk", datetime.now(UTC)).as_json()
    assert [getattr(Task.model_validate(row | {name: number}), name) for number in (least, most)] == [least, most]
    for wrong in (least - 1, most + 1):
        with pytest.raises(ValidationError):
            Task.model_validate(row | {name: wrong})


def test_number_is_published_as_text() -> None:
    [add] = [tool for tool in tools.create_tools(with_user_id=False) if tool.name == "add_task"]
    published = add.parameters["properties"]["remind"]
    assert (published["type"], published["default"], {*published}) == ("string", "", {"type", "description", "default"})


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    ("given", "value", "stored"),
    [
        *((30, 30, 30), ("30", 30, 30), (0, 0, 0), (40_320, 40_320, 40_320)),
        *(("none", "none", -1), ("default", "default", None)),
    ],
)
def test_minutes(tool: str, given: object, value: object, stored: int | None) -> None:
    read = TypeAdapter(getattr(ARGUMENTS["remind"], tool)).validate_python(given)
    assert (read, TaskPatch(remind=read)) == (value, {"remind": value})
    assert parse_value("remind", read) == stored


@pytest.mark.parametrize("given", ["", "null", None])
def test_minutes_that_are_not_given(given: object) -> None:
    assert TaskPatch(remind=TypeAdapter(ARGUMENTS["remind"].add).validate_python(given)) == {}


@pytest.mark.parametrize("given", [-1, 40_321, "40321", "many", "10 minutes", True, 1.5, [1]])
def test_minutes_that_are_rejected(given: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(ARGUMENTS["remind"].add).validate_python(given)
