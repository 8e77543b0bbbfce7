"""Reads and changes the database: the only SQL of the tests that use the product from outside."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import psycopg
from psycopg.rows import dict_row
from psycopg.sql import SQL, Identifier

from tests.logins import as_admin
from tests.waiting import until


@dataclass(frozen=True)
class StoredRun:
    """A run of the assistant; `status` is running, waiting or one of the four outcomes."""

    id: str
    conversation_id: str | None
    status: str


@dataclass(frozen=True)
class StoredTask:
    title: str
    status: str
    due: str | None


class Stored:
    """Reads, and for a few tests changes, the database as a superuser; every statement commits."""

    def __init__(self, database_url: str) -> None:
        self._connection = psycopg.Connection[dict[str, Any]].connect(
            as_admin(database_url), autocommit=True, application_name="test", row_factory=dict_row
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def runs(self, user: str) -> list[StoredRun]:
        """Returns the runs of the assistant, without sub-agent runs, oldest first."""
        statement = (
            "SELECT id, conversation_id, status FROM runs WHERE user_id = %s AND conversation_id IS NOT NULL"
            " AND parent_call_id IS NULL ORDER BY seq"
        )
        return [StoredRun(**row) for row in self._rows(statement, user)]

    def run_statuses(self, user: str) -> list[str]:
        return [run.status for run in self.runs(user)]

    def count_lock_waits(self) -> int:
        """Returns how many statements wait for a lock."""
        [row] = self._rows(
            "SELECT count(*) AS waiting FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND datname = current_database()"
        )
        return row["waiting"]

    def is_run_running(self) -> bool:
        """Returns whether a run of any user is executed."""
        return bool(self._rows("SELECT 1 FROM runs WHERE status = 'running' AND parent_call_id IS NULL LIMIT 1"))

    async def run_with_status(self, user: str, status: str, *, seconds: float = 120) -> StoredRun:
        """Waits for a run with this status; returns the newest one."""

        def find() -> StoredRun | None:
            return next((run for run in reversed(self.runs(user)) if run.status == status), None)

        return await until(find, seconds=seconds)

    def conversations(self, user: str) -> list[str]:
        return [row["id"] for row in self._rows("SELECT id FROM conversations WHERE user_id = %s ORDER BY 1", user)]

    def conversation_title(self, user: str, conversation: str) -> str | None:
        [row] = self._rows("SELECT title FROM conversations WHERE user_id = %s AND id = %s", user, conversation)
        return row["title"]

    def has_summary(self, user: str, conversation: str) -> bool:
        statement = "SELECT 1 FROM entries WHERE user_id = %s AND conversation_id = %s AND kind = 'summary'"
        return bool(self._rows(statement, user, conversation))

    def pending_approvals(self, user: str) -> int:
        statement = "SELECT 1 FROM tool_calls WHERE user_id = %s AND state = 'awaiting_approval'"
        return len(self._rows(statement, user))

    def set_call_seconds(self, user: str, tool: str, seconds: float) -> None:
        """Stores that the user's calls of a tool took so long."""
        statement = "UPDATE tool_calls SET seconds = %s WHERE user_id = %s AND tool = %s"
        self._connection.execute(statement, [seconds, user, tool])

    def queued_messages(self, user: str) -> int:
        """Returns the number of steering messages and follow-ups that no model has read."""
        return len(self._rows("SELECT 1 FROM entries WHERE user_id = %s AND seq IS NULL", user))

    def reverse_queue(self, user: str) -> None:
        """Stores the queued messages as if they had been sent in the opposite order."""
        statement = "UPDATE entries SET created_at = now() + (now() - created_at) WHERE user_id = %s AND seq IS NULL"
        self._connection.execute(statement, [user])

    def consents(self, user: str) -> list[str]:
        """Returns the tools that the user has allowed for later calls."""
        return [row["tool"] for row in self._rows("SELECT tool FROM consents WHERE user_id = %s ORDER BY 1", user)]

    def tasks(self, user: str) -> list[StoredTask]:
        statement = "SELECT title, status, due_on::text AS due FROM tasks WHERE user_id = %s ORDER BY id"
        return [StoredTask(**row) for row in self._rows(statement, user)]

    def titles(self, user: str) -> list[str]:
        return [task.title for task in self.tasks(user)]

    def task_calls(self, user: str) -> list[tuple[str, str | None]]:
        """Returns the operation and actor of each change of the task list, oldest first."""
        statement = "SELECT operation, actor FROM task_calls WHERE user_id = %s ORDER BY id"
        return [(row["operation"], row["actor"]) for row in self._rows(statement, user)]

    def row_counts(self, user: str) -> dict[str, int]:
        """Returns the number of the user's rows for each table that has any."""
        counts: dict[str, int] = {}
        for table in self.user_tables():
            statement = SQL("SELECT count(*) AS rows FROM {} WHERE user_id = %s").format(Identifier(table))
            row = self._connection.execute(statement, [user]).fetchone()
            if row and row["rows"]:
                counts[table] = row["rows"]
        return counts

    def user_tables(self) -> list[str]:
        tables = self._rows(
            "SELECT DISTINCT table_name AS name FROM information_schema.columns"
            " WHERE table_schema = ANY (current_schemas(false)) AND column_name = 'user_id' ORDER BY 1"
        )
        return [table["name"] for table in tables]

    def rows_of(self, user: str, table: str) -> list[dict[str, Any]]:
        """Returns the user's rows of a table as JSON."""
        statement = SQL("SELECT to_jsonb(r) AS row FROM {} r WHERE user_id = %s").format(Identifier(table))
        return [row["row"] for row in self._connection.execute(statement, [user])]

    def add_password(self, user: str, password_hash: str) -> None:
        """Inserts an account with a password."""
        statement = "INSERT INTO accounts (user_id, name, password_hash) VALUES (%s, %s, %s)"
        self._connection.execute(statement, [user, user, password_hash])

    def delete_accounts(self) -> None:
        self._connection.execute("DELETE FROM accounts")

    def set_failures(self, count: int) -> None:
        """Stores that each name and address with failed sign-ins has so many, and may try again at once."""
        self._connection.execute("UPDATE failed_sign_ins SET count = %s, allowed_at = now()", [count])

    def add_account(self, user: str) -> None:
        """Inserts an account with a password, an open code, an event, an OAuth client and a session of a provider.

        It also has settings of notifications, a channel, and an alert that was sent there.
        """
        self.add_password(user, "a-hash")
        for statement in (
            "INSERT INTO one_time_codes (user_id, hash, kind, details, expires_at)"
            " VALUES (%(user)s, sha256(%(user)s::text::bytea), 'link', '{}', now() + interval '1 hour')",
            "INSERT INTO account_events (user_id, kind, details) VALUES (%(user)s, 'account_made', '{}')",
            "INSERT INTO sessions (user_id, id, kind, name, scopes, expires_at)"
            " VALUES (%(user)s, %(user)s || '-client', 'client', 'Client', '{tasks}', now() + interval '1 hour')",
            "INSERT INTO oauth_grants (user_id, session_id, address)"
            " VALUES (%(user)s, %(user)s || '-client', 'client.example')",
            "INSERT INTO schedules (user_id, id, text, repeat, at_time, next_on, next_at)"
            " VALUES (%(user)s, 'sch_one', 'sum up', 'FREQ=DAILY', '09:00', '2999-01-01', '2999-01-01T09:00Z')",
            "INSERT INTO provider_sessions (user_id, session_id, sealed, renew_at)"
            " VALUES (%(user)s, 'a-session', 'sealed', now() + interval '1 hour')",
            "INSERT INTO alert_settings (user_id, digest_time) VALUES (%(user)s, NULL)",  # so that no clock changes it
            "INSERT INTO alert_channels (user_id, kind, name, target, target_hash, position)"
            ' VALUES (%(user)s, \'webhook\', \'Webhook\', \'{"url": "https://example.com", "secret": "a-secret"}\','
            " sha256(%(user)s::text::bytea), 1)",
            "INSERT INTO alerts (user_id, key, kind, alert_at, created_at, state)"
            " VALUES (%(user)s, md5(%(user)s), 'digest', now(), now(), 'sent')",
            "INSERT INTO alert_deliveries (user_id, alert_id, channel_id, state, proof, first_at, at)"
            " SELECT %(user)s, alerts.id, alert_channels.id, 'accepted', %(user)s || '-proof', now(), now()"
            " FROM alerts, alert_channels WHERE alerts.user_id = %(user)s AND alert_channels.user_id = %(user)s",
        ):
            self._connection.execute(statement, {"user": user})

    def set_time_zone(self, user: str, zone: str) -> None:
        self._connection.execute(
            "INSERT INTO profiles (user_id, time_zone) VALUES (%s, %s)"
            " ON CONFLICT (user_id) DO UPDATE SET time_zone = excluded.time_zone",
            [user, zone],
        )

    def add_named_account(self, user: str) -> None:
        """Inserts only the account, so that the user can be signed in."""
        self._connection.execute("INSERT INTO accounts (user_id, name) VALUES (%(user)s, %(user)s)", {"user": user})

    def disable_account(self, user: str) -> None:
        self._connection.execute("UPDATE accounts SET disabled_at = now() WHERE user_id = %s", [user])

    def set_provider_refused(self, user: str, *, is_refused: bool) -> None:
        statement = "UPDATE accounts SET provider_refused_at = CASE WHEN %s THEN now() END WHERE user_id = %s"
        self._connection.execute(statement, [is_refused, user])

    def add_session(self, user: str, session_id: str) -> None:
        """Inserts an open session of the page."""
        statement = """
            INSERT INTO sessions (user_id, id, kind, name, scopes, expires_at)
            VALUES (%s, %s, 'session', 'Test', '{all}', now() + interval '1 hour')
        """
        self._connection.execute(statement, [user, session_id])

    def age_refresh(self, user: str, seconds: float) -> None:
        """Stores that the user's OAuth clients refreshed their tokens earlier than they did."""
        statement = "UPDATE oauth_grants SET refreshed_at = refreshed_at - make_interval(secs => %s) WHERE user_id = %s"
        self._connection.execute(statement, [seconds, user])

    def expire_codes(self, user: str) -> None:
        self._connection.execute("UPDATE one_time_codes SET expires_at = now() WHERE user_id = %s", [user])

    def add_daily_tasks(self, user: str, count: int, *, long_descriptions: int = 0) -> None:
        """Inserts tasks with consecutive due days; the first `long_descriptions` have long descriptions."""
        statement = """
            INSERT INTO tasks (user_id, id, title, due_on, description)
            SELECT %s, n, 'task ' || n, date '2027-01-01' + n, repeat('long ', CASE WHEN n <= %s THEN 800 ELSE 0 END)
            FROM generate_series(1, %s) n"""
        self._connection.execute(statement, [user, long_descriptions, count])

    def add_overdue_tasks(self, user: str, count: int) -> None:
        """Inserts tasks of long ago, numbered from 2 on."""
        statement = """
            INSERT INTO tasks (user_id, id, title, due_on)
            SELECT %s, n, 'task ' || n, date '2020-01-01' FROM generate_series(2, %s + 1) n"""
        self._connection.execute(statement, [user, count])

    def add_long_tasks(self, user: str, count: int) -> None:
        """Inserts tasks with descriptions of 4,000 characters, all different, in some of which each digit occurs."""
        self._connection.execute("INSERT INTO people (user_id, last_task_id) VALUES (%s, %s)", [user, count])
        statement = """
            INSERT INTO tasks (user_id, id, title, description)
            SELECT %s, n, repeat('task ' || n || ' ', 15), (
                SELECT left(string_agg(md5(n::text || i::text), ' '), 4000) FROM generate_series(1, 125) i)
            FROM generate_series(1, %s) n"""
        self._connection.execute(statement, [user, count])

    def age_task_changes(self, user: str, *, days: float) -> None:
        """Makes all changes of the task list older."""
        for table in ("task_calls", "task_changes"):
            statement = SQL("UPDATE {} SET created_at = created_at - make_interval(secs => %s) WHERE user_id = %s")
            self._connection.execute(statement.format(Identifier(table)), [days * 86_400, user])

    def spread_completions(self, user: str, *, days: int) -> None:
        """Makes each completed task this many days older than the one with the previous id."""
        statement = (
            "UPDATE tasks SET completed_at = completed_at - make_interval(days => id::int * %s) WHERE user_id = %s"
        )
        self._connection.execute(statement, [days, user])

    def set_completion(self, user: str, task: int, moment: str) -> None:
        self._connection.execute(
            "UPDATE tasks SET completed_at = %s WHERE user_id = %s AND id = %s", [moment, user, task]
        )

    def add_idempotency_keys(self, user: str, count: int) -> None:
        """Inserts rows as if the user had sent requests with different keys."""
        self._connection.execute(
            "INSERT INTO kept_requests (user_id, key, request)"
            " SELECT %s, 'key-' || n, '' FROM generate_series(1, %s) n",
            [user, count],
        )

    def add_stored_responses(self, user: str, count: int, *, characters: int) -> None:
        """Inserts responses, each of so many characters that cannot be compressed much."""
        statement = """
            INSERT INTO kept_requests (user_id, key, request, status, answer)
            SELECT %s, 'response-' || n, '', 200, jsonb_build_object('text', (
                SELECT left(string_agg(encode(sha256((n || '-' || i)::bytea), 'base64'), ''), %s)
                FROM generate_series(1, %s / 40) i))
            FROM generate_series(1, %s) n"""
        self._connection.execute(statement, [user, characters, characters, count])

    def age_idempotency_keys(self, user: str, *, hours: float) -> None:
        """Makes the user's requests with keys older."""
        self._connection.execute(
            "UPDATE kept_requests SET created_at = created_at - make_interval(secs => %s) WHERE user_id = %s",
            [hours * 3600, user],
        )

    def make_schedules_due(self, user: str, *, days: int) -> None:
        """Lets the next times of the user's schedules be so many days earlier."""
        statement = (
            "UPDATE schedules SET next_on = next_on - %s, next_at = next_at - make_interval(days => %s)"
            " WHERE user_id = %s"
        )
        self._connection.execute(statement, [days, days, user])

    def set_repeat(self, user: str, repeat: str) -> None:
        """Sets the rule of the user's schedules, whatever it is."""
        self._connection.execute("UPDATE schedules SET repeat = %s WHERE user_id = %s", [repeat, user])

    def delete_schedules(self) -> None:
        self._connection.execute("DELETE FROM schedules")

    def age_token_usage(self, user: str, *, days: int) -> None:
        """Makes the model tokens that the user has used those of earlier days."""
        self._connection.execute("UPDATE token_usage SET day = day - %s WHERE user_id = %s", [days, user])

    @contextmanager
    def lock_table(self, table: str) -> Iterator[None]:
        """Locks the table during the block; statements that need it wait."""
        with self._connection.transaction():
            self._connection.execute(SQL("LOCK TABLE {}").format(Identifier(table)))
            yield

    def has_waiting_statements(self, *, count: int = 1) -> bool:
        """Returns whether at least `count` statements wait for a lock."""
        self._rows("SELECT pg_stat_clear_snapshot()")  # otherwise a transaction does not see later connections
        statement = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        return len(self._rows(statement)) >= count

    @contextmanager
    def hide_table(self, table: str) -> Iterator[None]:
        """Renames the table during the block, so that statements fail."""
        hidden = Identifier(f"{table}_hidden")
        self._connection.execute(SQL("ALTER TABLE {} RENAME TO {}").format(Identifier(table), hidden))
        try:
            yield
        finally:
            self._connection.execute(SQL("ALTER TABLE {} RENAME TO {}").format(hidden, Identifier(table)))

    def delete_rows(self, table: str, user: str) -> None:
        self._connection.execute(SQL("DELETE FROM {} WHERE user_id = %s").format(Identifier(table)), [user])

    def make_sessions_older(self, user: str, *, days: int) -> None:
        self._connection.execute(
            "UPDATE sessions SET created_at = created_at - make_interval(days => %(days)s),"
            " last_used_at = last_used_at - make_interval(days => %(days)s) WHERE user_id = %(user)s",
            {"days": days, "user": user},
        )

    @contextmanager
    def reject_new_messages(self) -> Iterator[None]:
        """Makes the database reject new entries of conversations during the block."""
        self._connection.execute("REVOKE INSERT ON entries FROM todo_app")
        try:
            yield
        finally:
            self._connection.execute("GRANT INSERT ON entries TO todo_app")

    def _rows(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        return self._connection.execute(statement.encode(), values).fetchall()
