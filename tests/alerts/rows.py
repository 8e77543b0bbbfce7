"""The SQL of the tests of notifications, as a superuser; every statement commits."""

from datetime import datetime
from typing import Any, Self

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from tests.logins import as_admin


class AlertRows:
    def __init__(self, database_url: str) -> None:
        self._connection = psycopg.Connection[dict[str, Any]].connect(
            as_admin(database_url), autocommit=True, application_name="test", row_factory=dict_row
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def all(self, statement: str, **values: Any) -> list[dict[str, Any]]:
        return self._connection.execute(statement.encode(), values).fetchall()

    def execute(self, statement: str, **values: Any) -> None:
        self._connection.execute(statement.encode(), values)

    def set_zone(self, user: str, zone: str | None) -> None:
        self.execute(
            "INSERT INTO profiles (user_id, time_zone) VALUES (%(user)s, %(zone)s)"
            " ON CONFLICT (user_id) DO UPDATE SET time_zone = excluded.time_zone",
            user=user,
            zone=zone,
        )

    def set_settings(self, user: str, **settings: Any) -> None:
        """Sets columns of the user's settings; those of a new row are off where they are not given."""
        self.execute(
            "INSERT INTO alert_settings (user_id, digest_time) VALUES (%(user)s, NULL) ON CONFLICT DO NOTHING",
            user=user,
        )
        if settings:
            setters = ", ".join(f"{name} = %({name})s" for name in settings)
            self.execute(f"UPDATE alert_settings SET {setters} WHERE user_id = %(user)s", user=user, **settings)

    def add_task(self, user: str, number: int, due: str | None, **columns: Any) -> None:
        """Adds a task that is due at "2026-03-29 02:30", or on a day."""
        day, _, clock = (due or "").partition(" ")
        values = {"user_id": user, "id": number, "title": f"task {number}", "due_on": day or None}
        values |= {"due_time": clock or None, **columns}
        names = ", ".join(values)
        places = ", ".join(f"%({name})s" for name in values)
        self.execute(f"INSERT INTO tasks ({names}) VALUES ({places})", **values)

    def set_task(self, user: str, number: int, **columns: Any) -> None:
        for name, value in columns.items():
            self.execute(
                f"UPDATE tasks SET {name} = %(value)s WHERE user_id = %(user)s AND id = %(id)s",
                user=user,
                id=number,
                value=value,
            )

    def alert_at(self, user: str, number: int) -> datetime | None:
        statement = "SELECT alert_at FROM tasks WHERE user_id = %(user)s AND id = %(id)s"
        [row] = self.all(statement, user=user, id=number)
        return row["alert_at"]

    def alerts(self, user: str) -> list[dict[str, Any]]:
        return self.all("SELECT *, task_dues AS tasks FROM alerts WHERE user_id = %(user)s ORDER BY id", user=user)

    def deliveries(self, user: str) -> list[dict[str, Any]]:
        statement = "SELECT * FROM alert_deliveries WHERE user_id = %(user)s ORDER BY alert_id, channel_id"
        return self.all(statement, user=user)

    def channels(self, user: str) -> list[dict[str, Any]]:
        return self.all("SELECT * FROM alert_channels WHERE user_id = %(user)s ORDER BY position, id", user=user)

    def add_channel(self, user: str, kind: str, target: dict[str, Any], **columns: Any) -> int:
        values = {"kind": kind, "name": kind, "position": 0, "confirmed_at": None, "session_id": None, **columns}
        [row] = self.all(
            "INSERT INTO alert_channels"
            " (user_id, kind, name, target, target_hash, position, confirmed_at, session_id)"
            " VALUES (%(user)s, %(kind)s, %(name)s, %(target)s, sha256(%(target)s::text::bytea), %(position)s,"
            " %(confirmed_at)s, %(session_id)s) RETURNING id",
            user=user,
            target=Jsonb(target),
            **{name: value for name, value in values.items() if name != "kind"},
            kind=kind,
        )
        return row["id"]
