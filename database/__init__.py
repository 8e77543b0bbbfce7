"""The floor both services stand on: engine, transactions, ids and time. No tables."""

from database.clock import to_utc, utc_now
from database.engine import can_read, create_engine
from database.ids import new_id
from database.pipeline import Pipeline, Statement, pipelined
from database.transactions import system_transaction, transaction

__all__ = [
    "Pipeline",
    "Statement",
    "can_read",
    "create_engine",
    "new_id",
    "pipelined",
    "system_transaction",
    "to_utc",
    "transaction",
    "utc_now",
]
