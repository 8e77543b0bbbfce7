"""Measures how long each request holds the event loop of a service."""
