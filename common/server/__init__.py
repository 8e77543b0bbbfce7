"""Serves HTTP with one or several processes on one port, and limits what clients may send."""

from common.server.limits import THIS_MACHINE, ClientLimits, Proxies
from common.server.serving import ServedApplication, create_config, serve

__all__ = ["THIS_MACHINE", "ClientLimits", "Proxies", "ServedApplication", "create_config", "serve"]
