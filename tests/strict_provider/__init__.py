"""A scripted chat-completions endpoint with the request rules and the response format of a given provider."""
