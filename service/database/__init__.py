"""Ids and time, texts, and what a database must be like for the services. No tables."""

from service.database.clock import to_utc, utc_now
from service.database.ids import new_id

__all__ = ["new_id", "to_utc", "utc_now"]
