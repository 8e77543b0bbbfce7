"""Creates the roles, tables, policies and functions of a new database, as the models describe them."""

from pathlib import Path
from typing import Any

from alembic.config import Config
from sqlalchemy import Connection, Table

from backend.accounts import schema as accounts_schema
from backend.alerts import schema as alerts_schema
from backend.alerts.channels import schema as channels_schema
from backend.conversations import schema
from mcp_server.models import TaskRow
from migrations.alerts import ALERT_HELPERS, ALERT_TRIGGERS, ALERTS_ACROSS_USERS
from migrations.functions import ACROSS_USERS, OF_TRANSACTIONS

METADATA = [
    *(schema.METADATA, accounts_schema.METADATA, alerts_schema.METADATA, channels_schema.METADATA),
    TaskRow.metadata,
]
# Roles belong to the whole cluster: an administrator or another migration may have created it. The second block tries
# the role, because since PostgreSQL 16 the creator of a role is its member, but may not use SET ROLE.
_CREATE_ROLE = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'todo_app') THEN
        CREATE ROLE todo_app NOLOGIN NOSUPERUSER NOBYPASSRLS;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
DO $$ BEGIN
    SET LOCAL ROLE todo_app;
    RESET ROLE;
EXCEPTION WHEN insufficient_privilege THEN GRANT todo_app TO CURRENT_USER;
END $$
"""
# Shows the owner all rows in transactions that set `todo.all_people`.
_PROTECT_FROM_OWNER = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY all_people ON {table} TO CURRENT_USER
USING ((SELECT current_setting('todo.all_people', true)) = 'on')
"""
# Shows the services the rows of one user. The sub-select is evaluated once per statement, not once per row; an empty
# name matches no user.
_ISOLATE_USERS = """
GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO todo_app;
CREATE POLICY owner_only ON {table} TO todo_app
USING (user_id = (SELECT nullif(current_setting('todo.user_id', true), '')))
"""
# The services read these tables, which belong to no user, and only the owner writes them.
_OPEN_SHARED_TABLES = """
GRANT SELECT ON approved_tools, alembic_version TO todo_app;
CREATE POLICY readable ON approved_tools FOR SELECT TO todo_app USING (true)
"""
# They run as the owner of the tables. `todo.all_people` is set in the body: only a superuser may create a function with
# a SET clause for a setting that PostgreSQL does not know.
_CREATE_FUNCTION = """
CREATE FUNCTION {signature} RETURNS {returned} LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp SET enable_bitmapscan = 'on'
AS $$ SELECT set_config('todo.all_people', 'on', true); {statement} $$;
REVOKE ALL ON FUNCTION {signature} FROM PUBLIC;
GRANT EXECUTE ON FUNCTION {signature} TO todo_app
"""


def create_alembic_config(url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["url"] = url
    return config


def create_database(connection: Connection) -> None:
    driver: Any = connection.connection.driver_connection
    driver.execute(_CREATE_ROLE)
    driver.execute("CREATE SEQUENCE event_seq; GRANT USAGE ON SEQUENCE event_seq TO todo_app")
    for metadata in METADATA:
        metadata.create_all(connection)
        for table in metadata.tables.values():
            protect_table(driver, table)
    for functions in (OF_TRANSACTIONS, ALERT_HELPERS, ALERT_TRIGGERS):
        driver.execute(functions)
    for signature, (returned, statement) in (ACROSS_USERS | ALERTS_ACROSS_USERS).items():
        create_function(driver, signature, returned, statement)
    driver.execute(_OPEN_SHARED_TABLES)


def create_function(driver: Any, signature: str, returned: str, statement: str) -> None:
    """Creates a function by which the services work across users."""
    driver.execute(_CREATE_FUNCTION.format(signature=signature, returned=returned, statement=statement))


def protect_table(driver: Any, table: Table) -> None:
    """Isolates the users' rows in a new table by row-level security."""
    driver.execute(_PROTECT_FROM_OWNER.format(table=table.name))
    if "user_id" in table.columns:
        driver.execute(_ISOLATE_USERS.format(table=table.name))
