"""The parts of an MCP server: HTTP, tokens, tool calls, errors, and overrides of FastMCP."""
