"""Which tables a statement reads or changes without naming whose rows it means, as PostgreSQL plans it."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import psycopg

from tests.plans import nodes

SHARED = ("alembic_version", "approved_tools")  # of nobody: the schema's revision, and what the operator allowed
TABLES = """
    SELECT relname FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relname <> ALL (%s) ORDER BY 1
"""
_IS_PERSON = re.compile(r"(\w+)\.user_id")
_PARAMETER = re.compile(r"%\((\w+)\)s|%s")


def tables_of(connection: psycopg.Connection[Any]) -> set[str]:
    """Those with people's rows."""
    return {name for (name,) in connection.execute(TABLES, [list(SHARED)]).fetchall()}


def numbered(text: str) -> str:
    """The statement with its parameters as PostgreSQL counts them."""
    names: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        name = found[1] or f"{len(names)}"
        return f"${names.setdefault(name, len(names) + 1)}"

    return _PARAMETER.sub(number, text).replace("%%", "%")


def _plan_for_any(connection: psycopg.Connection[Any], text: str) -> dict[str, Any]:
    """Made for any parameters, by a login that nothing is hidden from: what is left out the statement leaves out."""
    text = re.sub(r"(\$\d+) ->>", r"\1::jsonb ->>", text)  # of this operator there are two, and nobody gives the type
    with connection.transaction(force_rollback=True):
        explain = f"EXPLAIN (VERBOSE, GENERIC_PLAN, FORMAT JSON) {text}"
        [[[explained]]] = connection.execute(explain.encode()).fetchall()
    return explained["Plan"]


def problems(connection: psycopg.Connection[Any], statements: Iterable[str], tables: set[str]) -> Iterator[str]:
    """A sentence for each table in each statement of which rows are looked for by something else."""
    for text in statements:
        for table in _unnamed(_plan_for_any(connection, text), tables):
            yield f"{table} without its person: {' '.join(text.split())}"


def _unnamed(plan: dict[str, Any], tables: set[str]) -> Iterator[str]:
    """The tables of which rows are looked for, and not by an equality with their person."""
    conditions = [
        value
        for node in nodes(plan)
        if node["Node Type"] != "Bitmap Index Scan"  # which may be one side of an OR; what is above it has all of it
        for name, value in node.items()
        if name.endswith((" Cond", "Filter"))
    ]
    named = {name for condition in conditions for term in _parts(str(condition), " AND ") for name in _people(term)}
    for node in nodes(plan):
        if "Scan" in node["Node Type"] and node.get("Relation Name") in tables and node["Alias"] not in named:
            yield node["Relation Name"]


def _people(term: str) -> Iterator[str]:
    """The tables whose person must be something that is one value, where the term is true."""
    sides = [*_parts(term, " = ")]
    if len(sides) == 2 and not any(side.startswith("ANY ") for side in sides):
        yield from (found[1] for side in sides if (found := _IS_PERSON.fullmatch(side)))


def _parts(condition: str, sign: str) -> Iterator[str]:
    """What stands between the signs, outside of brackets that are not around all of it."""
    while condition.startswith("(") and _end_of_bracket(condition) == len(condition):
        condition = condition[1:-1]
    depth, begin = 0, 0
    for place, letter in enumerate(condition):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and condition.startswith(sign, place):
            yield condition[begin:place]
            begin = place + len(sign)
    yield condition[begin:]


def _end_of_bracket(text: str) -> int:
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return place + 1
    return len(text)
