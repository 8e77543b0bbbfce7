"""Keep a user's time zone in `profiles` alone, add a display name, and make foreign keys deferrable."""

from alembic import op

revision = "0035"
down_revision = "0034"

# The tool server stored what its callers named, also of users whose client never named one to the backend.
_MOVE_ZONES = """
INSERT INTO profiles (user_id, time_zone) SELECT user_id, time_zone FROM people WHERE time_zone IS NOT NULL
ON CONFLICT (user_id) DO UPDATE SET time_zone = coalesce(profiles.time_zone, excluded.time_zone)
"""
_ADD_NAME = """
ALTER TABLE profiles ADD COLUMN name text,
    ADD CONSTRAINT profiles_name CHECK (char_length(name) <= 100)
"""
# `./todo user adopt` changes the user of rows and of those that they refer to in one transaction. Nothing is read or
# rewritten by this.
_DEFER_KEYS = """
DO $$ DECLARE
    key record;
BEGIN
    FOR key IN
        SELECT conrelid::regclass AS of_table, conname FROM pg_constraint
        WHERE contype = 'f' AND connamespace = 'public'::regnamespace AND NOT condeferrable
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER CONSTRAINT %I DEFERRABLE', key.of_table, key.conname);
    END LOOP;
END $$
"""


def upgrade() -> None:
    op.execute(_MOVE_ZONES)
    op.execute("ALTER TABLE people DROP COLUMN time_zone")
    op.execute(_ADD_NAME)
    op.execute(_DEFER_KEYS)
