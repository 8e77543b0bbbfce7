"""How the services can be watched: log lines, request ids, metrics, traces. Knows nothing of what they do."""
