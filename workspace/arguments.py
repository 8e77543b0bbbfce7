"""The types of the tools' arguments: what is published, and what is refused."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

_PATH = "text, a path in the folder such as notes/plan.md"

# What each argument may be, to complete the sentence "<name> must be …"; of one tool, where it differs there.
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


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    return value


def _text(value: str) -> str:
    value.encode()  # raises for what is no text, such as half of a pair
    return value


_Text = Annotated[str, AfterValidator(_text)]
Path = Annotated[_Text, Field(description="A path in your folder, such as notes/plan.md.")]
Depth = Annotated[
    int, Field(ge=1, le=3, description="How many levels of directories to list."), BeforeValidator(_number)
]
Offset = Annotated[int, Field(ge=1, description="The number of the first line to read."), BeforeValidator(_number)]
Limit = Annotated[int, Field(ge=1, le=2000, description="The most lines to read."), BeforeValidator(_number)]
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
Timeout = Annotated[int, Field(ge=1, le=600, description="The time limit in seconds."), BeforeValidator(_number)]
Message = Annotated[_Text, Field(description="A short summary of the changes.")]
