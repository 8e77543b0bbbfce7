"""Count the model tokens of a user's day, and limit them."""

from alembic import op
from sqlalchemy import BigInteger, Column, Date, MetaData, Table, Text

from migrations.database import protect_table

revision = "0027"
down_revision = "0026"

_TABLE = Table(
    "token_usage",
    MetaData(),
    Column("user_id", Text, primary_key=True),
    Column("day", Date, primary_key=True),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
)
_DROP = "DROP FUNCTION count_request(text, integer, integer, integer, integer, boolean)"
_COUNT_REQUEST = """
-- Counts a message or command of the user, and the run and conversation that this transaction has made for it.
CREATE FUNCTION count_request(
    request text, per_minute integer, running integer, per_day integer, conversations integer, tokens_per_day bigint,
    is_new boolean
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    me text := current_setting('todo.user_id');
    counted bigint;
    seconds integer := 0;
    reached text;
    most bigint;
BEGIN
    -- One transaction at a time for each user, or two would both see the last free place.
    PERFORM pg_advisory_xact_lock(hashtextextended(me, 0));
    DELETE FROM requests WHERE user_id = me AND created_at < now() - interval '1 day';
    IF running IS NOT NULL THEN
        SELECT count(*) INTO counted FROM runs
        WHERE user_id = me AND status = 'running' AND parent_call_id IS NULL;
        IF counted > running THEN reached := 'running'; most := running; END IF;
    END IF;
    IF reached IS NULL AND per_minute IS NOT NULL THEN
        SELECT count(*), ceil(60 - extract(epoch FROM now() - min(created_at))) INTO counted, seconds
        FROM requests WHERE user_id = me AND created_at > now() - interval '1 minute';
        IF counted >= per_minute THEN reached := 'per_minute'; most := per_minute; END IF;
    END IF;
    IF reached IS NULL AND per_day IS NOT NULL THEN
        SELECT count(*) INTO counted FROM requests WHERE user_id = me;
        IF counted >= per_day THEN reached := 'per_day'; most := per_day; END IF;
    END IF;
    IF reached IS NULL AND tokens_per_day IS NOT NULL THEN
        SELECT input_tokens + output_tokens,
            ceil(extract(epoch FROM day + 1 - (now() AT TIME ZONE 'UTC'))) INTO counted, seconds
        FROM token_usage WHERE user_id = me AND day = (now() AT TIME ZONE 'UTC')::date;
        IF counted >= tokens_per_day THEN reached := 'tokens_per_day'; most := tokens_per_day; END IF;
    END IF;
    IF reached IS NULL AND conversations IS NOT NULL AND is_new THEN
        SELECT count(*) INTO counted FROM conversations WHERE user_id = me;
        IF counted > conversations THEN reached := 'conversations'; most := conversations; END IF;
    END IF;
    IF reached IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'TD002',
            MESSAGE = jsonb_build_object('limit', reached, 'most', most, 'seconds', seconds)::text;
    END IF;
    INSERT INTO requests (user_id, id) VALUES (me, request);
END $$;
"""


def upgrade() -> None:
    connection = op.get_bind()
    _TABLE.create(connection)
    protect_table(connection.connection.driver_connection, _TABLE)
    op.execute(_DROP)
    op.execute(_COUNT_REQUEST)
