"""Access to PostgreSQL: transactions of one user, and repeated work."""

from common.database.sweep import run_sweeps
from common.database.transactions import (
    CONNECTION_OPTIONS,
    NO_USER,
    Database,
    DatabaseUnavailable,
    StatementTimeout,
    Transaction,
    UserShareExceeded,
    fetch_rows,
)

__all__ = [
    "CONNECTION_OPTIONS",
    "NO_USER",
    "Database",
    "DatabaseUnavailable",
    "StatementTimeout",
    "Transaction",
    "UserShareExceeded",
    "fetch_rows",
    "run_sweeps",
]
