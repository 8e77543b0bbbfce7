"""Count failed sign-ins, and make the first account for a one-time code."""

from alembic import op
from sqlalchemy import TIMESTAMP, Column, Index, Integer, LargeBinary, MetaData, Table

from migrations.database import create_function, protect_table

revision = "0032"
down_revision = "0031"

_FAILED_SIGN_INS = Table(
    "failed_sign_ins",
    MetaData(),
    Column("key", LargeBinary, primary_key=True),
    Column("count", Integer, nullable=False),
    Column("longest_seconds", Integer, nullable=False),
    Column("at", TIMESTAMP(timezone=True), nullable=False),
    Column("allowed_at", TIMESTAMP(timezone=True), nullable=False),
    Index("failed_sign_ins_by_time", "at"),
)
_FUNCTIONS = {
    "count_sign_in(keys bytea[], longest integer[])": (
        "TABLE (seconds double precision)",
        """
        SELECT pg_advisory_xact_lock(hashtextextended(encode(keys[1], 'hex'), 2));
        DELETE FROM failed_sign_ins WHERE key IN (
            SELECT old.key FROM failed_sign_ins AS old WHERE old.at < now() - interval '1 day'
            LIMIT 100 FOR UPDATE SKIP LOCKED
        );
        WITH waiting AS MATERIALIZED (
            SELECT max(extract(epoch FROM failed.allowed_at - clock_timestamp()))::double precision AS rest
            FROM failed_sign_ins AS failed WHERE failed.key = ANY (keys) AND failed.allowed_at > clock_timestamp()
        ), counted AS (
            INSERT INTO failed_sign_ins AS failed (key, count, longest_seconds, at, allowed_at)
            SELECT attempt.key, 1, attempt.longest, clock_timestamp(), clock_timestamp()
            FROM unnest(keys, longest) AS attempt (key, longest), waiting WHERE waiting.rest IS NULL
            ON CONFLICT (key) DO UPDATE SET count = failed.count + 1, at = excluded.at,
                allowed_at = excluded.at + make_interval(secs => CASE WHEN failed.count < 4 THEN 0
                    ELSE least(excluded.longest_seconds, power(2, least(failed.count - 4, 20))) END)
        )
        SELECT coalesce(rest, 0) FROM waiting
        """,
    ),
    "user_of_calendar(hash bytea)": (
        "TABLE (user_id text)",
        """
        SELECT profiles.user_id FROM profiles WHERE calendar_hash = hash AND NOT EXISTS (
            SELECT FROM accounts WHERE accounts.user_id = profiles.user_id AND accounts.disabled_at IS NOT NULL
        )
        """,
    ),
    "reset_sign_ins(keys bytea[])": ("void", "DELETE FROM failed_sign_ins WHERE key = ANY (keys)"),
    "add_first_account(code_hash bytea, id text, account_name text, new_hash text)": (
        "TABLE (user_id text)",
        """
        LOCK TABLE accounts IN SHARE ROW EXCLUSIVE MODE;
        WITH taken AS (
            DELETE FROM one_time_codes AS code WHERE code.hash = code_hash AND code.kind = 'setup'
                AND code.user_id = '' AND code.expires_at > now() AND NOT EXISTS (SELECT FROM accounts)
            RETURNING code.hash
        ), added AS (
            INSERT INTO accounts (user_id, name, password_hash) SELECT id, account_name, new_hash FROM taken
            RETURNING accounts.user_id
        ), logged AS (
            INSERT INTO account_events (user_id, kind, details)
            SELECT added.user_id, 'account_made', '{"by": "setup"}' FROM added
        )
        SELECT added.user_id FROM added
        """,
    ),
}


def upgrade() -> None:
    connection = op.get_bind()
    driver = connection.connection.driver_connection
    _FAILED_SIGN_INS.create(connection)
    protect_table(driver, _FAILED_SIGN_INS)
    op.execute("DROP FUNCTION user_of_calendar(bytea)")
    for signature, (returned, statement) in _FUNCTIONS.items():
        create_function(driver, signature, returned, statement)
