"""Serves HTTP with one or several processes on one port, and limits what clients may send."""

from common.workers.limits import THIS_MACHINE, ClientLimits, Proxies
from common.workers.server import ServedApplication, create_config, serve

__all__ = ["THIS_MACHINE", "ClientLimits", "Proxies", "ServedApplication", "create_config", "serve"]
