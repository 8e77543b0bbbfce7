"""The first revision: `migrations/database.py` creates databases at the newest, and converts those of version 0.1.0."""

revision = "0022"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass
