"""The tools and arguments that a model reads, in the order of the list."""

from typing import Annotated, Any

from fastmcp.tools import Tool, ToolResult
from mcp_types import ToolAnnotations
from pydantic import AfterValidator, BeforeValidator, Field

from workspace.caller import CALLER, CallContext
from workspace.commands import commits, search
from workspace.commands import tools as commands
from workspace.commands.tools import DEFAULT_SECONDS
from workspace.errors import GitReadOnly
from workspace.files import listing, reading, writing

_ARGUMENT_BYTES = 100_000  # a little less than the kernel takes
_ARGUMENT = f"text of at most {_ARGUMENT_BYTES:,} bytes without NUL characters"

# These complete the sentence "<name> must be …".
RULES = {
    "path": "text, a path in the folder such as notes/plan.md",
    "depth": "a whole number from 1 to 3",
    "offset": "the number of a line, a whole number of at least 1",
    "limit": "a whole number of lines from 1 to 2000",
    "content": "text",
    "append": "true or false",
    "old_text": "text",
    "new_text": "text",
    "pattern": f"{_ARGUMENT}, an extended regular expression",
    "glob": f"{_ARGUMENT}, such as *.md, or left out",
    "command": f"{_ARGUMENT}: write longer text to a file first",
    "code": "text",
    "timeout_s": "a whole number of seconds from 1 to 600",
    "message": _ARGUMENT,
}


def _check_number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    return value


def _check_text(value: str) -> str:
    value.encode()  # raises for unpaired surrogates
    return value


def _check_argument(value: str) -> str:
    if "\0" in value or len(value.encode()) > _ARGUMENT_BYTES:
        raise ValueError("must fit into an argument of a program")
    return value


_NOT_BOOL = BeforeValidator(_check_number)
_Text = Annotated[str, AfterValidator(_check_text)]
_Argument = Annotated[str, AfterValidator(_check_argument)]
Path = Annotated[_Text, Field(description="A path in your folder, such as notes/plan.md.")]
Depth = Annotated[int, Field(ge=1, le=3, description="How many levels of directories to list."), _NOT_BOOL]
Offset = Annotated[int, Field(ge=1, description="The number of the first line to read."), _NOT_BOOL]
Limit = Annotated[int, Field(ge=1, le=2000, description="The most lines to read."), _NOT_BOOL]
Content = Annotated[_Text, Field(description="The whole file, or with append the text to add.")]
Append = Annotated[
    bool,
    Field(description="true: add content to the end of the file. false: replace the file."),
    BeforeValidator(lambda value: False if value is None else value),
]
OldText = Annotated[_Text, Field(description="The text to replace, exactly as in the file. It must occur once.")]
NewText = Annotated[_Text, Field(description="The new text.")]
Pattern = Annotated[_Argument, Field(description="An extended regular expression, as for grep -E.")]
Glob = Annotated[_Argument | None, Field(description="Search only files with such names, for example *.md.")]
Command = Annotated[_Argument, Field(description="A bash command.")]
Code = Annotated[_Text, Field(description="A Python program.")]
Timeout = Annotated[int, Field(ge=1, le=600, description="The time limit in seconds."), _NOT_BOOL]
Message = Annotated[_Argument, Field(description="A short summary of the changes.")]


async def list_files(path: Path = ".", depth: Depth = 1, caller: CallContext = CALLER) -> ToolResult:
    """List the files in your folder, or in a directory of it. Names of directories end with a slash."""
    return await caller.run_reading(listing.list_directory, path=path, depth=depth)


async def read_file(path: Path, offset: Offset = 1, limit: Limit = 2000, caller: CallContext = CALLER) -> ToolResult:
    """Read a text file, or some of its lines. Each line is shown after its number and a colon, which the file lacks."""
    return await caller.run_reading(reading.read_lines, path=path, offset=offset, limit=limit)


async def search_files(
    pattern: Pattern, path: Path = ".", glob: Glob = None, caller: CallContext = CALLER
) -> ToolResult:
    """Find the lines of files that match a pattern."""
    return await caller.run_command(search.search_files, pattern=pattern, path=path, glob=glob)


async def write_file(path: Path, content: Content, append: Append = False, caller: CallContext = CALLER) -> ToolResult:
    """Write a whole file, replacing it if it exists. With append, add the content to the end of the file instead."""
    return await caller.run_writing(writing.write_file, path=path, content=content, append=append)


async def edit_file(path: Path, old_text: OldText, new_text: NewText, caller: CallContext = CALLER) -> ToolResult:
    """Replace old_text, which must occur exactly once in the file, with new_text."""
    return await caller.run_writing(writing.edit_file, path=path, old_text=old_text, new_text=new_text)


async def run_command(
    command: Command, timeout_s: Timeout = DEFAULT_SECONDS, caller: CallContext = CALLER
) -> ToolResult:
    """Run a command in your folder. It cannot access other files or the network. Any exit code is a valid result."""
    return await caller.run_command(commands.run_command, command=command, timeout_s=timeout_s)


async def run_python(code: Code, timeout_s: Timeout = DEFAULT_SECONDS, caller: CallContext = CALLER) -> ToolResult:
    """Run a Python program in your folder, with the same limits as run_command. The result is what it prints."""
    return await caller.run_command(commands.run_python, code=code, timeout_s=timeout_s)


async def commit(message: Message, caller: CallContext = CALLER) -> ToolResult:
    """Commit all files of the folder to its git repository. The repository is created if there is none."""
    if caller.directory is not None:
        raise GitReadOnly(path="The repository")
    return await caller.run_command(commits.commit, message=message)


_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)
_ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
TOOLS = [
    Tool.from_function(function, title=title, annotations=annotations, output_schema=None)
    for function, title, annotations in (
        (list_files, "List files", _READS),
        (read_file, "Read a file", _READS),
        (search_files, "Search files", _READS),
        (write_file, "Write a file", _CHANGES),
        (edit_file, "Edit a file", _CHANGES),
        (run_command, "Run a command", _CHANGES),
        (run_python, "Run Python", _CHANGES),
        (commit, "Commit", _ADDS),
    )
]
