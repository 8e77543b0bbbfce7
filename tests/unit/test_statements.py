"""Every statement names the user: row-level security is the second lock, not the only one."""

import importlib
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import product
from types import ModuleType
from typing import Any, get_args

import pytest

from backend import alerts, conversations, users
from mcp_server import commands, imports, tasks
from mcp_server.tasks import lists
from mcp_server.tasks.lists import statements as list_statements
from mcp_server.tasks.lists.query import Sorting
from migrations.database import METADATA

TABLES = "|".join(name for metadata in METADATA for name in metadata.tables if "user_id" in metadata.tables[name].c)
PART = re.compile(r"\s*(?!\(?(?:WITH|SELECT|INSERT|UPDATE|DELETE)\b)")
READ = re.compile(rf"(?:\b(?:FROM|JOIN|USING|UPDATE)|,)\s+(?:{TABLES})\b(?!\.)")
WORDS = "WHERE|ON|SET|ORDER|GROUP|LIMIT|FOR|AND|OR|LEFT|JOIN|CROSS|UNION|RETURNING"
ALIAS = re.compile(rf"{READ.pattern}\s+(?:AS\s+)?(?!(?:{WORDS})\b)(\w+)")
READ_OF_USER = re.compile(r"\buser_id = ")
WRITTEN = re.compile(rf"\bINSERT INTO\s+(?:{TABLES})\b")
WRITTEN_OF_USER = re.compile(rf"{WRITTEN.pattern}(?: AS \w+)?\s*\(\s*user_id\b")
USER = re.compile(r"user_id = %\(user\)s|(?:VALUES \(|SELECT )%\(user\)")


def texts_in(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for one in value.values():
                yield from texts_in(one)
        case _ if is_dataclass(value) and not isinstance(value, type):
            for field in fields(value):
                yield from texts_in(getattr(value, field.name))
        case _:
            pass


def values_of(package: ModuleType) -> Iterator[tuple[str, Any]]:
    """The values of a package's modules by their names."""
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        for name, value in vars(importlib.import_module(found.name)).items():
            if not name.startswith("__"):
                yield f"{found.name}.{name}", value


def values() -> Iterator[tuple[str, Any]]:
    for package in (alerts, conversations, users, commands, imports, lists, tasks):
        yield from values_of(package)
    for deleted in (False, True):
        yield f"count, {deleted=}", list_statements.count_tasks([], deleted=deleted)
        yield f"titles, {deleted=}", list_statements.select_titles([], deleted=deleted)
    for sorting, continues in product(get_args(Sorting), (False, True)):
        page = list_statements.select_page([], sorting, deleted=sorting == "deleted", continues=continues)
        yield f"page, {sorting=}, {continues=}", page


# Those that read or write a table of users' rows, and parts of such statements.
STATEMENTS = {
    f"{name} {number}": text
    for name, value in values()
    for number, text in enumerate(texts_in(value))
    if READ.search(text) or WRITTEN.search(text)
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statement_names_the_user(name: str) -> None:
    """It has a condition for each table that it reads, and a value for each row that it writes."""
    text = STATEMENTS[name]
    assert len(READ_OF_USER.findall(text)) >= len(READ.findall(text)), text
    for alias, count in Counter(ALIAS.findall(text)).items():
        assert len(re.findall(rf"\b{alias}\.user_id = |= {alias}\.user_id\b", text)) >= count, (alias, text)
    assert len(WRITTEN_OF_USER.findall(text)) == len(WRITTEN.findall(text)), text
    assert USER.search(text) or PART.match(text), text


def test_statements_are_found() -> None:
    found = " ".join(STATEMENTS)
    assert len(STATEMENTS) > 150
    for module in ("conversations.runs", "users.data", "tasks.changes", "tasks.undo", "lists.reads"):
        assert module in found
