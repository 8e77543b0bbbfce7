"""The three logins of a test's database, each made of any of the others' address."""

import hashlib
import os
from urllib.parse import quote, urlsplit, urlunsplit

from cli.database import postgres

DIRECT_URLS: dict[
    str, str
] = {}  # by a pooler's place: the address of its database itself, to which all go but the services
_GIVEN = os.environ.get("DATABASE_URL")  # before a test sets another


def as_admin(url: str) -> str:
    """As a superuser, for what a test must see or do past everything that is tested."""
    given = urlsplit(_GIVEN or f"postgresql://{postgres.ADMIN}@")
    return _as(url, given.netloc.rpartition("@")[0])


def as_owner(url: str) -> str:
    return _as(url, f"{postgres.OWNER}{_password()}")


def as_service(url: str) -> str:
    return _as(url, f"{postgres.SERVICE}{_password()}")


def password() -> str | None:
    """What the roles get on a server of somebody else's; who enters our own cluster's socket needs none."""
    return hashlib.sha256(_GIVEN.encode()).hexdigest() if _GIVEN else None


def _password() -> str:
    return f":{quote(found)}" if (found := password()) else ""


def host_of(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _as(url: str, login: str) -> str:
    parts = urlsplit(DIRECT_URLS.get(host_of(url), url))
    place = host_of(parts.geturl())
    return urlunsplit(parts._replace(netloc=f"{login}@{place}"))
