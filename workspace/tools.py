"""The tools: what a model reads of them, and nothing else. Their order is the order they are listed in."""

from functools import partial
from typing import Any

from fastmcp.tools import Tool, ToolResult
from mcp_types import ToolAnnotations

from workspace import arguments as given
from workspace.caller import CALLER, Caller
from workspace.commands.tools import DEFAULT_S
from workspace.files import listing, reading, writing


async def list_files(path: given.Path = ".", depth: given.Depth = 1, caller: Caller = CALLER) -> ToolResult:
    """List the files in your folder, or in a directory of it. Names of directories end with a slash."""
    return await caller.read(partial(listing.names, path=path, depth=depth))


async def read_file(
    path: given.Path, offset: given.Offset = 1, limit: given.Limit = 2000, caller: Caller = CALLER
) -> ToolResult:
    """Read a text file, or some of its lines. Each line is shown after its number and a colon, which the file lacks."""
    return await caller.read(partial(reading.read, path=path, offset=offset, limit=limit))


async def search_files(
    pattern: given.Pattern, path: given.Path = ".", glob: given.Glob = None, caller: Caller = CALLER
) -> ToolResult:
    """Find the lines of files that match a pattern."""
    return await caller.search(pattern=pattern, path=path, glob=glob)


async def write_file(
    path: given.Path, content: given.Content, append: given.Append = False, caller: Caller = CALLER
) -> ToolResult:
    """Write a whole file, replacing it if it exists. With append, add the content to the end of the file instead."""
    wanted = {"path": path, "content": content, "append": append}
    return await caller.change("write_file", wanted, partial(writing.write, **wanted))


async def edit_file(
    path: given.Path, old_text: given.OldText, new_text: given.NewText, caller: Caller = CALLER
) -> ToolResult:
    """Replace old_text, which must occur exactly once in the file, with new_text."""
    wanted = {"path": path, "old_text": old_text, "new_text": new_text}
    return await caller.change("edit_file", wanted, partial(writing.edit, **wanted))


async def run_command(
    command: given.Command, timeout_s: given.Timeout = DEFAULT_S, caller: Caller = CALLER
) -> ToolResult:
    """Run a command in your folder. It cannot access other files or the network. Any exit code is a valid result."""
    return await caller.run("run_command", command=command, timeout_s=timeout_s)


async def run_python(code: given.Code, timeout_s: given.Timeout = DEFAULT_S, caller: Caller = CALLER) -> ToolResult:
    """Run a Python program in your folder, with the same limits as run_command. The result is what it prints."""
    return await caller.run("run_python", code=code, timeout_s=timeout_s)


async def commit(message: given.Message, caller: Caller = CALLER) -> ToolResult:
    """Commit all files of the folder to its git repository. The repository is created if there is none."""
    return await caller.run("commit", message=message)


def _tool(function: Any, title: str, annotations: ToolAnnotations) -> Tool:
    return Tool.from_function(function, title=title, annotations=annotations, output_schema=None)


def _hints(*, reads: bool = False, destroys: bool = False, idempotent: bool = True) -> ToolAnnotations:
    return ToolAnnotations(
        read_only_hint=reads, destructive_hint=destroys, idempotent_hint=idempotent, open_world_hint=False
    )


TOOLS = (
    _tool(list_files, "List files", _hints(reads=True)),
    _tool(read_file, "Read a file", _hints(reads=True)),
    _tool(search_files, "Search files", _hints(reads=True)),
    _tool(write_file, "Write a file", _hints(destroys=True, idempotent=False)),
    _tool(edit_file, "Edit a file", _hints(destroys=True, idempotent=False)),
    _tool(run_command, "Run a command", _hints(destroys=True, idempotent=False)),
    _tool(run_python, "Run Python", _hints(destroys=True, idempotent=False)),
    _tool(commit, "Commit", _hints(idempotent=False)),
)
