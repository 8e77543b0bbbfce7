"""The tools and arguments that a model reads, in the order of the list."""

from functools import partial
from typing import Annotated, Any

from fastmcp.tools import Tool, ToolResult
from mcp_types import ToolAnnotations
from pydantic import AfterValidator, BeforeValidator, Field

from workspace.caller import CALLER, CallContext
from workspace.commands.tools import DEFAULT_S
from workspace.files import listing, reading, writing

_PATH = "text, a path in the folder such as notes/plan.md"

# These complete the sentence "<name> must be …".
RULES = {
    "path": _PATH,
    "depth": "a whole number from 1 to 3",
    "offset": "the number of a line, a whole number of at least 1",
    "limit": "a whole number of lines from 1 to 2000",
    "content": "text",
    "append": "true or false",
    "old_text": "text",
    "new_text": "text",
    "pattern": "text, an extended regular expression",
    "glob": "text, such as *.md, or left out",
    "command": "text",
    "code": "text",
    "timeout_s": "a whole number of seconds from 1 to 600",
    "message": "text",
}


def _check_number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    return value


def _check_text(value: str) -> str:
    value.encode()  # raises for unpaired surrogates
    return value


_Text = Annotated[str, AfterValidator(_check_text)]
Path = Annotated[_Text, Field(description="A path in your folder, such as notes/plan.md.")]
Depth = Annotated[
    int, Field(ge=1, le=3, description="How many levels of directories to list."), BeforeValidator(_check_number)
]
Offset = Annotated[
    int, Field(ge=1, description="The number of the first line to read."), BeforeValidator(_check_number)
]
Limit = Annotated[int, Field(ge=1, le=2000, description="The most lines to read."), BeforeValidator(_check_number)]
Content = Annotated[_Text, Field(description="The whole file, or with append the text to add.")]
Append = Annotated[
    bool,
    Field(description="true: add content to the end of the file. false: replace the file."),
    BeforeValidator(lambda value: False if value is None else value),
]
OldText = Annotated[_Text, Field(description="The text to replace, exactly as in the file. It must occur once.")]
NewText = Annotated[_Text, Field(description="The new text.")]
Pattern = Annotated[_Text, Field(description="An extended regular expression, as for grep -E.")]
Glob = Annotated[_Text | None, Field(description="Search only files with such names, for example *.md.")]
Command = Annotated[_Text, Field(description="A bash command.")]
Code = Annotated[_Text, Field(description="A Python program.")]
Timeout = Annotated[int, Field(ge=1, le=600, description="The time limit in seconds."), BeforeValidator(_check_number)]
Message = Annotated[_Text, Field(description="A short summary of the changes.")]


async def list_files(path: Path = ".", depth: Depth = 1, caller: CallContext = CALLER) -> ToolResult:
    """List the files in your folder, or in a directory of it. Names of directories end with a slash."""
    return await caller.inspect(partial(listing.list_directory, path=path, depth=depth))


async def read_file(path: Path, offset: Offset = 1, limit: Limit = 2000, caller: CallContext = CALLER) -> ToolResult:
    """Read a text file, or some of its lines. Each line is shown after its number and a colon, which the file lacks."""
    return await caller.inspect(partial(reading.read_lines, path=path, offset=offset, limit=limit))


async def search_files(
    pattern: Pattern, path: Path = ".", glob: Glob = None, caller: CallContext = CALLER
) -> ToolResult:
    """Find the lines of files that match a pattern."""
    return await caller.search(pattern=pattern, path=path, glob=glob)


async def write_file(path: Path, content: Content, append: Append = False, caller: CallContext = CALLER) -> ToolResult:
    """Write a whole file, replacing it if it exists. With append, add the content to the end of the file instead."""
    arguments = {"path": path, "content": content, "append": append}
    return await caller.change("write_file", arguments, partial(writing.write, **arguments))


async def edit_file(path: Path, old_text: OldText, new_text: NewText, caller: CallContext = CALLER) -> ToolResult:
    """Replace old_text, which must occur exactly once in the file, with new_text."""
    arguments = {"path": path, "old_text": old_text, "new_text": new_text}
    return await caller.change("edit_file", arguments, partial(writing.edit, **arguments))


async def run_command(command: Command, timeout_s: Timeout = DEFAULT_S, caller: CallContext = CALLER) -> ToolResult:
    """Run a command in your folder. It cannot access other files or the network. Any exit code is a valid result."""
    return await caller.run("run_command", command=command, timeout_s=timeout_s)


async def run_python(code: Code, timeout_s: Timeout = DEFAULT_S, caller: CallContext = CALLER) -> ToolResult:
    """Run a Python program in your folder, with the same limits as run_command. The result is what it prints."""
    return await caller.run("run_python", code=code, timeout_s=timeout_s)


async def commit(message: Message, caller: CallContext = CALLER) -> ToolResult:
    """Commit all files of the folder to its git repository. The repository is created if there is none."""
    return await caller.run("commit", message=message)


def _create_tool(function: Any, title: str, annotations: ToolAnnotations) -> Tool:
    return Tool.from_function(function, title=title, annotations=annotations, output_schema=None)


def _create_hints(*, reads: bool = False, destroys: bool = False, idempotent: bool = True) -> ToolAnnotations:
    return ToolAnnotations(
        read_only_hint=reads, destructive_hint=destroys, idempotent_hint=idempotent, open_world_hint=False
    )


TOOLS = (
    _create_tool(list_files, "List files", _create_hints(reads=True)),
    _create_tool(read_file, "Read a file", _create_hints(reads=True)),
    _create_tool(search_files, "Search files", _create_hints(reads=True)),
    _create_tool(write_file, "Write a file", _create_hints(destroys=True, idempotent=False)),
    _create_tool(edit_file, "Edit a file", _create_hints(destroys=True, idempotent=False)),
    _create_tool(run_command, "Run a command", _create_hints(destroys=True, idempotent=False)),
    _create_tool(run_python, "Run Python", _create_hints(destroys=True, idempotent=False)),
    _create_tool(commit, "Commit", _create_hints(idempotent=False)),
)
