"""One service behind one port, in one process or in several, and what clients may cost it."""

from service.workers import json_body
from service.workers.limits import ClientLimits
from service.workers.listener import address, bind
from service.workers.pace import Pace
from service.workers.proxies import THIS_MACHINE, Proxies
from service.workers.server import Server
from service.workers.supervisor import Work, run

__all__ = [
    "THIS_MACHINE",
    "ClientLimits",
    "Pace",
    "Proxies",
    "Server",
    "Work",
    "address",
    "bind",
    "json_body",
    "run",
]
