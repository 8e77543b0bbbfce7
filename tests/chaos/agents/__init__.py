"""Agents at work while everything is killed, the workspace too: what they do, and what must hold of it."""
