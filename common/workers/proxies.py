"""Which reverse proxies are believed when they say by which scheme a request came to them."""

from ipaddress import ip_network
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from common.environment import CommaSeparated

THIS_MACHINE = ("127.0.0.1", "::1")


def _addresses(given: tuple[str, ...]) -> tuple[str, ...]:
    try:
        for address in given:
            if address != "*":
                ip_network(address)
    except ValueError:
        sentence = "must be addresses or networks, such as 10.0.0.7 or 172.16.0.0/12, separated by commas"
        raise PydanticCustomError("setting", sentence) from None
    return given


Proxies = Annotated[CommaSeparated, AfterValidator(_addresses)]
"""Addresses and networks; `*` stands for everybody."""
