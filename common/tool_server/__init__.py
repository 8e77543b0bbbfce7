"""What the services that offer tools over MCP have alike: HTTP edge, tokens, refusals, reports, first calls."""
