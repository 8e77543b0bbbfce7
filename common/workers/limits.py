"""What clients may cost a service, whatever they send and however long they take."""

from pydantic import Field
from pydantic_settings import BaseSettings

from common.environment import CONFIG


class ClientLimits(BaseSettings):
    """Every field is an environment variable of the same name, for each process of each service."""

    model_config = CONFIG

    limit_connections: int = Field(default=500, ge=1)
    limit_headers: int = Field(default=100, ge=1)
    limit_header_bytes: int = Field(default=32_768, ge=1)
    limit_request_bytes: int = Field(default=131_072, ge=1)
    read_timeout_seconds: float = Field(default=20.0, gt=0)
    write_timeout_seconds: float = Field(default=30.0, gt=0)
    idle_timeout_seconds: float = Field(default=75.0, gt=0)

    def largest_body(self, method: str, path: str) -> int:
        """In bytes, of a request for this path as it was sent; services that take files say more for those."""
        return self.limit_request_bytes
