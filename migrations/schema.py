"""The tables of the backend and the task server, for Alembic."""

from pathlib import Path

from alembic.config import Config

from backend.conversations import schema
from mcp_server.models import TaskRow

__all__ = ["METADATA", "alembic_config"]

METADATA = [schema.METADATA, TaskRow.metadata]


def alembic_config(url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["url"] = url
    return config
