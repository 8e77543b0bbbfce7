"""People and programs go on while the backend, the MCP server and PostgreSQL are killed: nothing is lost or done twice.

`python -m tests.chaos --kills 1000` runs it by hand, and with `--agents` while agents work, the workspace killed, too;
`--scaled` does it to the set-up of docs/deployment.md. `--seed` repeats the choices of a run, though not its timing.
"""
