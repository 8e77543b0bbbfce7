"""Kills the backend, the MCP server and PostgreSQL under load, and checks that nothing is lost or done twice.

Run it with `python -m tests.chaos --kills 1000`. With `--agents` the users start agents, and the workspace is killed,
too; with `--scaled` the system is the one of docs/deployment.md. `--seed` repeats the random choices, not the timing.
"""
