"""One person's connection to one backend, whatever is spoken over it, and what can go wrong with it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import httpx2


class ApiError(Exception):
    """The server's sentence about why it does not answer, and HTTP's status."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class ConnectionLost(Exception):
    """No answer, or one that broke off: nobody knows what the server has done."""

    def __init__(self) -> None:
        super().__init__("The connection to the server is lost.")


class Client:
    """Whatever is spoken over it. `timeout` is in seconds, of each silence; `over` is one whose connection it shares.

    `http` is there for what no operation is for, as `/ready`.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 120,
        over: "Client | None" = None,
    ) -> None:
        self.base_url = base_url
        self.http = over.http if over else open_http(base_url, token=token, headers=headers, timeout=timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """The answer, where it is what was asked for."""
        with connected():
            response = await self.http.request(method, path, json=body, params=params, headers=headers)
        if not response.is_success:
            raise ApiError(response.status_code, sentence(response))
        return response


def open_http(
    base_url: str, *, token: str | None, headers: Mapping[str, str] | None, timeout: float
) -> httpx2.AsyncClient:
    """`timeout` is in seconds, of each silence."""
    sent = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
    encrypted = httpx2.URL(base_url).scheme == "https"  # else neither certificates nor proxies are looked for
    return httpx2.AsyncClient(
        base_url=base_url,
        headers=sent,
        timeout=httpx2.Timeout(timeout, connect=5),
        trust_env=encrypted,
        verify=encrypted,
    )


@contextmanager
def connected() -> Iterator[None]:
    """What is no answer at all, or cannot be read, is none."""
    try:
        yield
    except (httpx2.TransportError, ValueError) as error:
        raise ConnectionLost from error


def sentence(response: httpx2.Response) -> str:
    """Why a request was refused."""
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"The server answered with status {response.status_code}, and not as the assistant does."
