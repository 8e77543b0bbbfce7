"""Updates the files that repeat the settings classes: `python -m tests.settings`.

Each file keeps its order and the values that it sets. Names, defaults and descriptions come from the classes: a new
setting is added after the previous one of its class, and a removed one is removed.
"""

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from itertools import pairwise
from pathlib import Path

from pydantic import AliasChoices
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefinedType
from pydantic_settings import BaseSettings

from backend.settings import BackendSettings
from common.server.limits import ClientLimits
from common.settings import OwnerSettings, ProcessSettings, ServiceSettings
from mcp_server.settings import McpSettings
from offline_model.settings import OfflineSettings
from tests.conftest import ROOT
from workspace.settings import Settings as WorkspaceSettings

Classes = tuple[type[BaseSettings], ...]

WIDTH = 125
PARTS: Mapping[str, Classes] = {
    "backend": (BackendSettings,),
    "mcp_server": (McpSettings,),
    "workspace": (WorkspaceSettings,),
    "migrations": (OwnerSettings,),
    "offline_model": (OfflineSettings, ClientLimits),
}
COMPOSE_BLOCKS: Mapping[str, Classes] = {
    "limits": (ClientLimits,),
    "process": (ProcessSettings,),
    "settings": (ServiceSettings,),
    "offline-model": PARTS["offline_model"],
    "mcp": PARTS["mcp_server"],
    "workspace": PARTS["workspace"],
    "backend": PARTS["backend"],
}
# A file has the first; the second needs loopback addresses.
NOT_IN_COMPOSE = {"DATABASE_URL", "TEST_CLOCK_OFFSET_SECONDS"}
EXAMPLE = ROOT / ".env.example"
MANIFESTS = ROOT / "deploy" / "kubernetes"


def fields(*classes: type[BaseSettings]) -> dict[str, FieldInfo]:
    """Returns the fields of these classes; a name that several have is taken from the first."""
    known: dict[str, FieldInfo] = {}
    for each in classes:
        described = {
            name: text
            for base in reversed(each.__mro__)
            if issubclass(base, BaseSettings) and base is not BaseSettings
            for name, text in read_docstrings(base).items()
        }
        for name, field in each.model_fields.items():
            first = known.setdefault(name.upper(), copy(field))
            first.description = first.description or described.get(name)
    return known


def read_docstrings(kind: type[BaseSettings]) -> dict[str, str]:
    """Returns the docstrings of the fields that a class defines itself, which are the strings below them."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for field, below in pairwise(definition.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
            case _:
                pass
    return found


def variables(*classes: type[BaseSettings]) -> Iterator[str]:
    """Returns the environment variables that these classes read, including former names."""
    for name, field in fields(*classes).items():
        aliases = field.validation_alias
        yield from [str(choice) for choice in aliases.choices] if isinstance(aliases, AliasChoices) else [name]


def read_example() -> dict[str, str]:
    return dict(re.findall(r"^([A-Z_]+)=(.*)$", EXAMPLE.read_text(), re.MULTILINE))


def render_example(text: str) -> str:
    known = fields(*(each for classes in PARTS.values() for each in classes))
    head, *sections = text.rstrip("\n").split("\n\n")
    names_by_section = [
        [name for name in re.findall(r"^([A-Z_]+)=", section, re.MULTILINE) if name in known] for section in sections
    ]
    before = ""
    for name in known:
        if not any(name in section for section in names_by_section):
            section = next((one for one in names_by_section if before in one), names_by_section[-1])
            section.insert(section.index(before) + 1 if before in section else 0, name)
        before = name
    rendered = ("\n".join(_describe(name, known[name]) for name in section) for section in names_by_section if section)
    return "\n\n".join([head, *rendered]) + "\n"


def _describe(name: str, field: FieldInfo) -> str:
    paragraphs = re.split(r"\n\s*\n", field.description or "")
    lines = [
        line
        for paragraph in paragraphs
        for line in textwrap.wrap(paragraph, WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    ]
    return "\n".join([*(f"# {line}" for line in lines), f"{name}={_default(field)}"])


def _default(field: FieldInfo) -> str:
    match field.get_default():
        case None | PydanticUndefinedType():
            return ""
        case bool(value):
            return str(value).lower()
        case float(value):
            return f"{value:g}"
        case tuple(values):
            return ",".join(values)
        case value:
            return str(value)


def render_compose(text: str) -> str:
    lines = text.splitlines()
    for anchor, classes in COMPOSE_BLOCKS.items():
        start = next(number for number, line in enumerate(lines, 1) if line.endswith(f": &{anchor}"))
        indent = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
        size = next(size for size, line in enumerate(lines[start:]) if not line.startswith(indent))
        lines[start : start + size] = _complete_block(lines[start : start + size], indent, classes)
    return "\n".join(lines) + "\n"


def _complete_block(lines: Sequence[str], indent: str, classes: Classes) -> list[str]:
    merged = re.findall(r"<<: \*([\w-]+)", "\n".join(lines))
    excluded = {name for anchor in merged for name in variables(*COMPOSE_BLOCKS[anchor])} | NOT_IN_COMPOSE
    expected = [name for name in variables(*classes) if name not in excluded]
    matches = [re.match(r" *([A-Z_]+):", line) for line in lines]
    present = {match[1] for match in matches if match}
    block = [line for line, match in zip(lines, matches, strict=True) if match is None or match[1] in expected]
    before = ""
    for name in expected:
        if name not in present:
            previous = next((at for at, line in enumerate(block) if line.startswith(f"{indent}{before}:")), -1)
            block.insert(previous + 1 or len(block), f"{indent}{name}:")
        before = name
    return block


def render_config_map(text: str) -> str:
    """Keeps the values of the file, and adds the other settings with their defaults as comments.

    Secrets and settings that another manifest sets are left out.
    """
    set_elsewhere = set(
        re.findall(r"name: ([A-Z_]+), value", "".join(path.read_text() for path in MANIFESTS.iterdir()))
    )
    known = {
        name: field
        for name, field in fields(BackendSettings, McpSettings, WorkspaceSettings).items()
        if "Secret" not in str(field.annotation) and name not in NOT_IN_COMPOSE
    }
    head, data = text.split("\ndata:\n")
    present = {match[1]: match[0] for match in re.finditer(r"  ([A-Z_]+): .*\n", data) if match[1] in known}
    others = [
        f'  # {name}: "{_default(field)}"\n'
        for name, field in known.items()
        if not (name in present or name in set_elsewhere or re.search("^OFFLINE_|_PORT$", name))
    ]
    return "".join([head, "\ndata:\n", *present.values(), "  # All others, with their defaults:\n", *others])


def render_names(_: str) -> str:
    """Renders the names for `./todo up`, which does not import the services."""
    return json.dumps({part: sorted(variables(*classes)) for part, classes in PARTS.items()}, indent=2) + "\n"


FILES: Mapping[Path, Callable[[str], str]] = {
    EXAMPLE: render_example,
    ROOT / "docker-compose.yml": render_compose,
    MANIFESTS / "settings.yaml": render_config_map,
    ROOT / "common" / "setting_names.json": render_names,
}


def main() -> None:
    for path, render in FILES.items():
        path.write_text(render(path.read_text()))


if __name__ == "__main__":
    main()
