"""Reads addresses of e-mail and of mail servers. Standard library only: every command waits for the settings."""

import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import parse_qs, unquote, urlsplit

_PORTS = {"smtp": 587, "smtps": 465}
# What all mail servers accept of RFC 5321: no quoted local parts, no address literals, ASCII only.
_ATOM, _LABEL = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+", "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"(?=[^@]{{1,64}}@){_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*")
_NAMED = re.compile(r"(?:([^<>@,;:\"\\()]*[^<>@,;:\"\\()\s]) )?<([^<>]+)>")
_MAX_ADDRESS_CHARS = 254


@dataclass(frozen=True)
class SmtpServer:
    host: str
    port: int
    from_start: bool
    """Whether TLS begins with the connection; else STARTTLS is demanded, unless `plain`."""
    plain: bool
    user: str | None = None
    password: str | None = field(default=None, repr=False)


def is_email_address(text: str) -> bool:
    return len(text) <= _MAX_ADDRESS_CHARS and _ADDRESS.fullmatch(text) is not None


def read_sender(text: str) -> tuple[str, str]:
    """Returns name and address of `todo@example.com` or `To-dos <todo@example.com>`; raises `ValueError`."""
    named = _NAMED.fullmatch(text)
    name, address = (named[1] or "", named[2]) if named else ("", text)
    if not is_email_address(address) or not name.isprintable():
        raise ValueError("this is no sender of e-mail")
    return name, address


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
