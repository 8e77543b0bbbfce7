from typing import Annotated, Literal

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from common.server.limits import EdgeSettings


class OfflineSettings(EdgeSettings):
    model_config = SettingsConfigDict(env_ignore_empty=True)

    offline_host: str = "127.0.0.1"
    """The offline model runs as a separate process. ./todo up starts it at a free port and does not read these two."""
    offline_port: Annotated[int, Field(ge=0, le=65535)] = 8002
    offline_token_delay: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0
    """Seconds between tokens, to see what streaming looks like."""
    date_order: Literal["day-first", "month-first"] | None = None  # as `english.DateOrder`, without its grammar
