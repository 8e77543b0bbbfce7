"""Reads the addresses of other servers in one way, and compares them with those that are allowed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True)
class Origin:
    scheme: str
    host: str
    """In lower case, in its ASCII form, without a dot at its end; an IPv6 address without brackets."""
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")

    @property
    def names_address(self) -> bool:
        """Whether it is an IP address or localhost, and not a name in the DNS."""
        return self.host == "localhost" or read_address(self.host) is not None


def parse_url(url: str) -> tuple[Origin, str]:
    """Returns the origin of a URL and the URL in its normal form; raises `ValueError`.

    The normal form is what requests use, so that nothing is read in two ways.
    """
    import httpx2  # settings that list no address are checked without it

    if not url.isprintable() or " " in url:
        raise ValueError("it has a character that no address has")
    try:
        parsed = httpx2.URL(url)
        host = parsed.raw_host.decode("ascii").lower().removesuffix(".")
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise ValueError("it is no address") from error
    if address := read_address(host):
        host = str(address)
    if parsed.scheme not in _PORTS or not (address or _HOST.fullmatch(host)):
        raise ValueError("it is no address of a server, https://…")
    if "@" in parsed.netloc.decode("ascii", "replace") or parsed.userinfo:
        raise ValueError("it contains a login")
    port = parsed.port or _PORTS[parsed.scheme]
    if parsed.port == 0 or port > 65_535:
        raise ValueError("its port is not valid")
    normal = parsed.copy_with(host=host, fragment=None)
    return Origin(parsed.scheme, host, port), str(normal)


def read_address(host: str) -> IPv4Address | IPv6Address | None:
    """Returns None for names, and for addresses with a zone, which no URL can name."""
    try:
        return None if "%" in host else ip_address(host)
    except ValueError:
        return None


def parse_origin(listed: str) -> Origin:
    """Reads an entry such as `ntfy.sh`, which means https, or `http://192.168.1.5:8080`; raises `ValueError`."""
    url = listed if "://" in listed else f"https://{listed}"
    origin, normal = parse_url(url)
    if re.search("[/?]", normal.removeprefix(f"{origin.scheme}://").removesuffix("/")):
        raise ValueError("it has a path")
    return origin


class AllowedOrigins:
    """The origins that are listed, and nothing else. An entry `*.example.com` stands for all hosts below that name."""

    def __init__(self, listed: Sequence[str], *, scheme: str = "https", port: int | None = None) -> None:
        """Entries without a scheme have the given one and port."""
        self._exact = set[Origin]()
        self._below = set[Origin]()
        for entry in listed:
            is_below = entry.startswith("*.")
            text = entry.removeprefix("*.")
            url = text if "://" in text else f"{scheme}://{text}" + (f":{port}" if port else "")
            (self._below if is_below else self._exact).add(parse_origin(url))

    def allows(self, origin: Origin) -> bool:
        if origin in self._exact:
            return True
        _, *above = origin.host.split(".")
        return any(
            Origin(origin.scheme, ".".join(above[start:]), origin.port) in self._below for start in range(len(above))
        )
