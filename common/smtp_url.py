"""Reads the address of a mail server. Standard library only: the settings are what every command waits for."""

from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import parse_qs, unquote, urlsplit

_PORTS = {"smtp": 587, "smtps": 465}


@dataclass(frozen=True)
class SmtpServer:
    host: str
    port: int
    from_start: bool
    """Whether TLS begins with the connection; else STARTTLS is demanded, unless `plain`."""
    plain: bool
    user: str | None = None
    password: str | None = field(default=None, repr=False)


def read_smtp_url(url: str) -> SmtpServer:
    """Reads `smtps://USER:PASSWORD@HOST`, or `smtp://…` for STARTTLS; raises `ValueError`.

    Without TLS are servers of this machine, and others with `?tls=off`.
    """
    parts = urlsplit(url)
    query = parse_qs(parts.query, strict_parsing=bool(parts.query))
    host, user, password = parts.hostname, parts.username, parts.password
    is_known = parts.scheme in _PORTS and parts.path in ("", "/") and query in ({}, {"tls": ["off"]})
    if not host or not is_known or parts.fragment or not url.isprintable() or " " in url:
        raise ValueError("this is no address of a mail server")
    if bool(user) != bool(password):
        raise ValueError("a login has a user and a password")
    from_start = parts.scheme == "smtps"
    if query and from_start:
        raise ValueError("smtps is TLS")
    return SmtpServer(
        host,
        parts.port or _PORTS[parts.scheme],
        from_start,
        plain=not from_start and (bool(query) or _is_this_machine(host)),
        user=unquote(user) if user else None,
        password=unquote(password) if password else None,
    )


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
