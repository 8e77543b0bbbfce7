"""The tables of both services, for Alembic."""

from pathlib import Path

from alembic.config import Config

from backend.conversations import schema
from mcp_server.models import TaskRow

__all__ = ["METADATA", "alembic_config"]

METADATA = [schema.METADATA, TaskRow.metadata]


def alembic_config(url: str) -> Config:
    """Alembic's configuration for one database URL, with nothing read from a file."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["url"] = url
    return config
