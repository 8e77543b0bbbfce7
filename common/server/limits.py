"""Settings of every service: its known hosts and origins, the limits of clients, and the trusted proxies."""

from ipaddress import ip_network
from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings

from common.environment import CONFIG, CommaSeparated, require

THIS_MACHINE = ("127.0.0.1", "::1")


def _are_networks(texts: tuple[str, ...]) -> bool:
    try:
        return all(text == "*" or ip_network(text) for text in texts)
    except ValueError:
        return False


Proxies = Annotated[
    CommaSeparated,
    require(_are_networks, "must be addresses or networks, such as 10.0.0.7 or 172.16.0.0/12, separated by commas"),
]
"""Addresses and networks; `*` is every address."""


class EdgeSettings(BaseSettings):
    """What `common.server.edge` accepts of every request."""

    model_config = CONFIG

    allowed_hosts: CommaSeparated = ()
    """Host names other than localhost at which the services are reached, such as todo.example; and origins of other web
    pages that may call them, such as https://app.example. Separate several with commas.
    """
    allowed_origins: CommaSeparated = ()


class ClientLimits(BaseSettings):
    model_config = CONFIG

    limit_connections: int = Field(default=500, ge=1)
    """Limits for each process of each service, the offline model included: open connections (at the limit, a new one
    replaces a waiting one of the user who has most), headers of a request, bytes of its headers and address, bytes
    of its body. The body may be four times as large at /chat and for the offline model, which receive whole
    conversations. A higher body limit lets clients use more memory: with 1 MiB on all connections the MCP server needs
    over 1 GB.
    """
    limit_headers: int = Field(default=100, ge=1)
    limit_header_bytes: int = Field(default=32_768, ge=1)
    limit_request_bytes: int = Field(default=131_072, ge=1)
    read_timeout_seconds: float = Field(default=20.0, gt=0)
    """Time limits in seconds: to receive a whole request; until an answer that the client does not read is dropped;
    until a connection without requests is closed. The last must be longer than your reverse proxy keeps its connections
    open.
    """
    write_timeout_seconds: float = Field(default=30.0, gt=0)
    idle_timeout_seconds: float = Field(default=75.0, gt=0)
    min_read_bytes_per_second: int = Field(default=1_000, ge=1)
    """How fast a client must read an answer that is waiting for it. A slower one is dropped after
    WRITE_TIMEOUT_SECONDS, or later if the client was faster at times. Event streams in which nothing happens have
    nothing to read, and stay open.
    """

    def max_body_bytes(self, method: str, path: str) -> int:
        """Returns the limit of a request's body in bytes; services override it for paths that take files."""
        return self.limit_request_bytes
