"""Serving over HTTP: the processes behind one port, and the limits on what clients may send."""

from common.workers.limits import THIS_MACHINE, ClientLimits, Proxies
from common.workers.server import Application, configure, serve

__all__ = ["THIS_MACHINE", "Application", "ClientLimits", "Proxies", "configure", "serve"]
