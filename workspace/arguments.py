"""The types of the tools' arguments: what is published, and what is refused."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

_PATH = "text, a path in the folder such as notes/plan.md"

# What each argument may be, to complete the sentence "<name> must be …"; of one tool, where it differs there.
RULES = {
    "path": _PATH,
    "depth": "a whole number from 1 to 3",
    "offset": "the whole number of a line, from 1 on",
    "limit": "a whole number of lines from 1 to 2000",
    "content": "text",
    "old_text": "text",
    "new_text": "text",
    "pattern": "text, an extended regular expression",
    "glob": "text, such as *.md, or left out",
    "command": "text",
    "code": "text",
    "timeout_s": "a whole number of seconds from 1 to 600",
    "message": "text",
}


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a truth value is no number")
    return value


def _text(value: str) -> str:
    value.encode()  # raises for what is no text, such as half of a pair
    return value


_Text = Annotated[str, AfterValidator(_text)]
Path = Annotated[_Text, Field(description="In the folder, such as notes/plan.md.")]
Depth = Annotated[int, Field(ge=1, le=3, description="How many levels of directories."), BeforeValidator(_number)]
Offset = Annotated[int, Field(ge=1, description="The number of the first line."), BeforeValidator(_number)]
Limit = Annotated[int, Field(ge=1, le=2000, description="How many lines."), BeforeValidator(_number)]
Content = Annotated[_Text, Field(description="All of the file.")]
OldText = Annotated[_Text, Field(description="What is replaced, exactly as in the file, where it must be only once.")]
NewText = Annotated[_Text, Field(description="What comes in its place.")]
Pattern = Annotated[_Text, Field(description="An extended regular expression, as grep -E takes it.")]
Glob = Annotated[_Text | None, Field(description="Only in files with such a name, as *.md.")]
Command = Annotated[_Text, Field(description="For bash.")]
Code = Annotated[_Text, Field(description="A Python program.")]
Timeout = Annotated[int, Field(ge=1, le=600, description="It is ended after these seconds."), BeforeValidator(_number)]
Message = Annotated[_Text, Field(description="What was done.")]
