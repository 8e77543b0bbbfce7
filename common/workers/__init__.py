"""One service behind one port, in one process or in several, and what clients may cost it."""

from common.workers import json_body
from common.workers.limits import ClientLimits
from common.workers.listener import address, bind
from common.workers.pace import Pace
from common.workers.proxies import THIS_MACHINE, Proxies
from common.workers.server import Server
from common.workers.supervisor import Work, run

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
