"""What PostgreSQL does for each statement the services send, read from its own log and its own plans."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.sql import SQL, Literal

_ENTRY = re.compile(r"^<(\d+)> ([A-Z]+): +(.*?)(?=^<\d+> |\Z)", re.MULTILINE | re.DOTALL)
_STATEMENT = re.compile(r"(?:statement|execute [^:]*): (.*)", re.DOTALL)
_PARAMETER = re.compile(r"\$(\d+) = (NULL|'(?:[^']|'')*')", re.DOTALL)
_PLANNED = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


@dataclass(frozen=True)
class Sent:
    """A statement as it was sent."""

    text: str
    parameters: tuple[str, ...]  # as SQL literals
    person: str | None  # whose transaction it was in, under row-level security; None in one of the login itself

    @property
    def short(self) -> str:
        return " ".join(self.text.split())


def log_all(url: str) -> None:
    """Have the cluster log each statement of the services with its process and its parameters."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET log_line_prefix = '<%p> '")
        connection.execute("ALTER ROLE todo_service SET log_statement = 'all'")
        connection.execute("SELECT pg_reload_conf()")


def read_log(log: Path, offset: int) -> list[Sent]:
    """The different statements in a log from an offset on, with all parameters they were sent with."""
    return list(dict.fromkeys(_sent(log.read_text()[offset:])))


def _sent(log: str) -> Iterator[Sent]:
    person: dict[str, str | None] = {}
    asking: set[str] = set()
    waiting: dict[str, str] = {}

    def sent(process: str, *parameters: str) -> Sent:
        return Sent(waiting.pop(process), parameters, person.get(process))

    for process, level, said in _ENTRY.findall(log):
        if level == "LOG" and (statement := _STATEMENT.match(said)):
            if process in waiting:
                yield sent(process)
            text = statement[1].replace("\n\t", "\n").strip()
            if text.startswith("BEGIN"):
                person[process] = None
            if "'todo_app'" in text or "ROLE todo_app" in text:
                named = re.search(r"todo\.user_id = '([^']*)'", text)
                person[process] = named[1] if named else ""
                asking.add(process)  # the name may be a parameter
            elif text.startswith(_PLANNED):
                waiting[process] = text
        elif level == "DETAIL" and (process in waiting or process in asking):
            values = {int(number): value for number, value in _PARAMETER.findall(said.replace("\n\t", "\n"))}
            if process in waiting:
                yield sent(process, *(values[number] for number in sorted(values)))
            else:
                person[process] = values[1].strip("'")
                asking.discard(process)
    for process in list(waiting):
        yield sent(process)


def plan_of(connection: psycopg.Connection[Any], sent: Sent) -> dict[str, Any]:
    """The plan as it ran, made for any parameters, with the settings of the services' login, whose connection it is.

    What the statement did is rolled back.
    """
    with connection.transaction(force_rollback=True):
        if sent.person is not None:
            connection.execute("SET LOCAL ROLE todo_app")
            connection.execute(SQL("SET LOCAL todo.user_id = {}").format(Literal(sent.person)))
        connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        name = _prepare(connection, sent)
        arguments = f"({', '.join(sent.parameters)})" if sent.parameters else ""
        run = f"EXECUTE {name}{arguments}"
        try:
            with connection.transaction():
                [[[explained]]] = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {run}".encode()).fetchall()
        except psycopg.IntegrityError:  # a row that is there since: its plan reads nothing
            [[[explained]]] = connection.execute(f"EXPLAIN (FORMAT JSON) {run}".encode()).fetchall()
        connection.execute(f"DEALLOCATE {name}".encode())
        return explained["Plan"]


def _prepare(connection: psycopg.Connection[Any], sent: Sent) -> str:
    """Types as PostgreSQL infers them, else, where a number stands for itself, as the driver sends it."""
    numbers = ["bigint" if re.fullmatch(r"'-?\d+'", value) else "unknown" for value in sent.parameters]
    for types in ([], numbers):
        given = f" ({', '.join(types)})" if types else ""
        try:
            with connection.transaction():
                connection.execute(f"PREPARE read{given} AS {sent.text}".encode())
            return "read"
        except psycopg.errors.Error:
            if types == numbers:
                raise
    raise AssertionError


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", []):
        yield from nodes(part)


def rows_read(node: dict[str, Any]) -> float:
    """What a scan looked at, those rows included that it then left out."""
    left_out = sum(node.get(f"Rows Removed by {why}", 0) for why in ("Filter", "Index Recheck"))
    return (node.get("Actual Rows", 0) + left_out) * node.get("Actual Loops", 0)
