"""Serves HTTP with one or several processes on one port, and limits what clients may send."""
