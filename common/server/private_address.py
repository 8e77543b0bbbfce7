"""The private address of this machine, at which others of the local network reach it."""

import fcntl
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

_PRIVATE = tuple(
    ip_network(network)
    # RFC 1918, RFC 3927 and RFC 4193. An IPv6 link-local address needs a zone, which no URL can name.
    for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7")
)
_OUTSIDE = ("192.0.2.1", 9)  # of documentation (RFC 5737): to choose a route, nothing is sent
_SIOCGIFADDR = 0xC0206921 if sys.platform == "darwin" else 0x8915


def is_private(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return any(address in network for network in _PRIVATE if network.version == address.version)


def find_private_address() -> str | None:
    """Returns the IPv4 address of the default route, else of the first interface that has a private one."""
    return next((host for host in (*_find_route(), *_list_interfaces()) if is_private(host)), None)


def _find_route() -> Iterator[str]:
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(_OUTSIDE)
        yield probe.getsockname()[0]


def _list_interfaces() -> Iterator[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # it has no address
                answer = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                yield socket.inet_ntoa(answer[20:24])


def render_host(host: str) -> str:
    """Returns an address as a URL has it."""
    return f"[{host}]" if isinstance(ip_address(host), IPv6Address) else str(IPv4Address(host))
