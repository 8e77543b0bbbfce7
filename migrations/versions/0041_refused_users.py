"""Store that an identity provider has refused a user, who then has no notifications and no scheduled runs."""

from alembic import op

revision = "0041"
down_revision = "0040"

_REASONS = "'running', 'waiting', 'limit', 'account', 'provider'"


def upgrade() -> None:
    op.execute("ALTER TABLE accounts ADD COLUMN provider_refused_at timestamptz")
    op.execute("ALTER TABLE schedules DROP CONSTRAINT schedules_skip_reason")
    op.execute(f"ALTER TABLE schedules ADD CONSTRAINT schedules_skip_reason CHECK (skip_reason IN ({_REASONS}))")
