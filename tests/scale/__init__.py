"""Several backends and MCP servers behind HAProxy, and PostgreSQL behind PgBouncer, as in docs/deployment.md."""
