"""Access to PostgreSQL: transactions of one user, and the connection that holds the lock of a process."""

from common.database.process import PoolerFound, ProcessConnection, require_direct_address
from common.database.sweep import CONFIRMATION_SECONDS, Confirmation, run_sweeps
from common.database.transactions import NO_USER, Database, DatabaseUnavailable, Transaction

__all__ = [
    "CONFIRMATION_SECONDS",
    "NO_USER",
    "Confirmation",
    "Database",
    "DatabaseUnavailable",
    "PoolerFound",
    "ProcessConnection",
    "Transaction",
    "require_direct_address",
    "run_sweeps",
]
