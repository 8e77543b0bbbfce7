"""What a poll costs PostgreSQL where much was changed: a page asks every 1.5 seconds for as long as it is open."""

import psycopg
import pytest

from mcp_server.tasks.lists import news
from tests import plans
from tests.logins import as_admin

pytestmark = pytest.mark.long

MANY = 100_000
SEED = """
    WITH calls AS (
        INSERT INTO task_calls (user_id, operation, arguments, actor)
        SELECT 'person-' || n %% 5, 'add', '{}', 'mcp' FROM generate_series(1, 2 * %(many)s) n RETURNING user_id, id
    )
    INSERT INTO task_changes (user_id, call_id, task_id)
    SELECT CASE WHEN id %% 2 = 0 THEN 'local' ELSE user_id END, id, id FROM calls ORDER BY id
"""


@pytest.mark.parametrize("missed", [0, 5])
def test_a_poll_takes_less_than_a_millisecond(database_url: str, missed: int) -> None:
    with psycopg.connect(as_admin(database_url), autocommit=True) as admin:
        admin.execute("ALTER TABLE task_changes DISABLE TRIGGER ALL")  # a change needs no call here
        admin.execute(SEED, {"many": MANY})
        admin.execute("ALTER TABLE task_changes ENABLE TRIGGER ALL")
        admin.execute("ANALYZE task_changes")
        found = admin.execute("SELECT count(*), max(id) FROM task_changes WHERE user_id = 'local'").fetchone()
    assert found is not None
    assert found[0] == MANY
    text, given = news.SINCE.with_parameters({"owner": "local", "after": found[1] - 2 * missed})
    times: list[float] = []
    with psycopg.connect(database_url, autocommit=True) as connection:
        for _ in range(20):
            with connection.transaction():
                connection.execute("SET LOCAL ROLE todo_app")
                connection.execute("SET LOCAL todo.user_id = 'local'")
                [[[explained]]] = connection.execute(b"EXPLAIN (ANALYZE, FORMAT JSON) " + text, given).fetchall()
            times.append(explained["Execution Time"])
            read = [plans.rows_read(node) for node in plans.nodes(explained["Plan"]) if "Index" in node["Node Type"]]
            assert len(read) == 2
            assert sum(read) == 1 + missed
    assert min(times) < 1, times
