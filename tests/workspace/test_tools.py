"""The tools of the workspace as MCP clients see them."""

from tests.workspace.running import Person

TOOLS = ["list_files", "read_file", "search_files", "write_file", "edit_file", "run_command", "run_python", "commit"]


async def test_the_eight_tools_and_what_they_take(alice: Person) -> None:
    tools = {tool.name: tool for tool in await alice.client.list_tools()}
    assert list(tools) == TOOLS
    taken = {name: list(tool.input_schema["properties"]) for name, tool in tools.items()}
    assert taken == {
        "list_files": ["path", "depth"],
        "read_file": ["path", "offset", "limit"],
        "search_files": ["pattern", "path", "glob"],
        "write_file": ["path", "content", "append"],
        "edit_file": ["path", "old_text", "new_text"],
        "run_command": ["command", "timeout_s"],
        "run_python": ["code", "timeout_s"],
        "commit": ["message"],
    }
    hints = {name: tool.annotations for name, tool in tools.items() if tool.annotations}
    assert hints.keys() == tools.keys()
    reads = {name for name, hint in hints.items() if hint.read_only_hint}
    assert reads == {"list_files", "read_file", "search_files"}
    assert not any(hint.open_world_hint for hint in hints.values())
