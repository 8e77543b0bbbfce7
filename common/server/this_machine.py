"""Tells requests of programs and browsers on this machine from those of other machines."""

from starlette.datastructures import Headers
from starlette.types import Scope

from common.server.edge import remove_port
from common.settings import is_loopback

_BY_PROXIES = ("forwarded", "x-real-ip", "via")


def is_from_this_machine(scope: Scope) -> bool:
    """Whether both ends of the connection and Host are loopback addresses, and no header is of a proxy.

    A program that forwards bytes, such as `ssh -L` or socat, adds no header: its requests count as this machine's.
    """
    headers, client, server = Headers(scope=scope), scope.get("client"), scope.get("server")
    if client is None or server is None or not (is_loopback(client[0]) and is_loopback(server[0])):
        return False
    if any(name in _BY_PROXIES or name.startswith("x-forwarded-") for name in headers):
        return False
    return is_loopback(remove_port(headers.get("host", "").lower()).strip("[]"))
