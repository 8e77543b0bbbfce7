"""The first revision, that of version 0.2.0. `migrations/database.py` creates new databases at the newest."""

revision = "0022"
down_revision = None


def upgrade() -> None:
    pass
