from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from english import DateOrder


class OfflineSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="OFFLINE_", env_ignore_empty=True, use_attribute_docstrings=True)

    host: str = "127.0.0.1"
    """The offline model runs as a separate process. ./todo up starts it at a free port and does not read these two."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8002
    token_delay: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0
    """Seconds between tokens, to see what streaming looks like."""


class DateSettings(BaseSettings):
    """How dates are read, as in the list of tasks."""

    model_config = SettingsConfigDict(env_ignore_empty=True)

    date_order: DateOrder | None = None
