"""Converts the URL of a test's database to that of another of its three logins."""

import hashlib
import os
from urllib.parse import quote, urlsplit, urlunsplit

from cli.database import postgres

DIRECT_URLS: dict[str, str] = {}  # by the host of a pooler; only the services connect through it
_SERVER_URL = os.environ.get("DATABASE_URL")  # before a test changes it


def as_admin(url: str) -> str:
    """Returns the URL of a superuser, for checks that bypass the product."""
    server = urlsplit(_SERVER_URL or f"postgresql://{postgres.ADMIN}@")
    return _as(url, server.netloc.rpartition("@")[0])


def as_owner(url: str) -> str:
    return _as(url, f"{postgres.OWNER}{_password()}")


def as_service(url: str) -> str:
    return _as(url, f"{postgres.SERVICE}{_password()}")


def password() -> str | None:
    """Returns the password of the roles on the server in DATABASE_URL; the embedded server needs none."""
    return hashlib.sha256(_SERVER_URL.encode()).hexdigest() if _SERVER_URL else None


def _password() -> str:
    return f":{quote(secret)}" if (secret := password()) else ""


def host_of(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _as(url: str, login: str) -> str:
    parts = urlsplit(DIRECT_URLS.get(host_of(url), url))
    return urlunsplit(parts._replace(netloc=f"{login}@{host_of(parts.geturl())}"))
