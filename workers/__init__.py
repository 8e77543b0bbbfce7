"""One service behind one port, in one process or in several."""

from workers.listener import CannotListen, address, bind
from workers.server import Server
from workers.supervisor import run

__all__ = ["CannotListen", "Server", "address", "bind", "run"]
