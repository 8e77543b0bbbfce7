"""Several backends and MCP servers as separate processes, behind what distributes requests and database connections."""
