"""Names of other servers' tools: providers take them, and no two are equal."""

import pytest

from backend.tools.connectors import names


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("fetch", "mcp_web__fetch"),
        ("get.page", "mcp_web__get_page_1c9b3ffb"),
        ("get_page", "mcp_web__get_page"),
        ("x" * 70, "mcp_web__" + "x" * 46 + "_"),
    ],
)
def test_name(tool: str, expected: str) -> None:
    name = names.for_model("web", tool)
    assert name.startswith(expected.rpartition("_")[0])
    assert len(name) <= 64
    assert names.server_of(name) == "web"
    assert names.for_people(name).startswith("mcp.web.")


def test_name_of_a_task_tool() -> None:
    assert names.server_of("add_task") is None
    assert names.for_people("add_task") == "add_task"
