"""What the services that offer tools over MCP share: HTTP, tokens, tool calls, errors, overrides of FastMCP."""
