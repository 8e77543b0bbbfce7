"""The room's view of both services' tables."""

from pathlib import Path

from alembic.config import Config
from sqlmodel import SQLModel

import backend.conversation.models
import mcp_server.models

__all__ = ["METADATA", "alembic_config"]

METADATA = SQLModel.metadata
OWNED = (backend.conversation.models, mcp_server.models)


def alembic_config(url: str) -> Config:
    """Alembic's configuration for one database URL, with nothing read from a file."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["url"] = url
    return config
