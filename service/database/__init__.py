"""The floor both services stand on: engine, transactions, ids and time. No tables."""

from service.database.clock import to_utc, utc_now
from service.database.engine import can_read, connect, create_engine
from service.database.ids import new_id
from service.database.listening import listen
from service.database.pipeline import Pipeline, Statement, Undone, pipelined
from service.database.stepwise import Session, stepwise
from service.database.transactions import login_transaction, system_transaction, transaction

__all__ = [
    "Pipeline",
    "Session",
    "Statement",
    "Undone",
    "can_read",
    "connect",
    "create_engine",
    "listen",
    "login_transaction",
    "new_id",
    "pipelined",
    "stepwise",
    "system_transaction",
    "to_utc",
    "transaction",
    "utc_now",
]
