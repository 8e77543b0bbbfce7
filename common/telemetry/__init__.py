"""Log lines, request ids, metrics and traces of all services."""
