"""Databases of older versions."""

import gzip
from pathlib import Path

import psycopg

DATA = Path(__file__).parent / "data"
VERSION_0_1_0 = """
    CREATE TABLE alembic_version (version_num varchar(32) PRIMARY KEY);
    INSERT INTO alembic_version VALUES ('0021');
    CREATE TABLE conversations (user_id text, id text, title text, metadata jsonb, PRIMARY KEY (user_id, id));
    CREATE TABLE messages (user_id text, conversation_id text, seq bigint, kind text, item jsonb);
    INSERT INTO conversations (user_id, id) VALUES ('local', 'thr_1');
    GRANT SELECT ON alembic_version TO todo_app;
"""
"""As much of its tables as says what it is."""


def read_version_0_2_0(*, user: str = "ben") -> str:
    """Returns the statements that create its database, with this name of the user who imported a file."""
    return gzip.decompress((DATA / "version-0.2.0.sql.gz").read_bytes()).decode().replace("'ben'", f"'{user}'")


def create_tables(owner_url: str, statements: str) -> None:
    with psycopg.connect(owner_url) as connection:
        connection.execute(statements.encode())
