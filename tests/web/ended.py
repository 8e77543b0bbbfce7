import psycopg

from tests.logins import as_admin
from tests.waiting import until


async def all_turns(database_url: str) -> None:
    """Wait until no turn runs, whatever the page knows of it."""
    with psycopg.connect(as_admin(database_url), autocommit=True) as database:
        await until(lambda: not database.execute("SELECT 1 FROM runs WHERE status = 'running'").fetchall())
