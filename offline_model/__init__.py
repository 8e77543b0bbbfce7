"""An OpenAI-compatible chat-completions endpoint that has rules instead of a model."""
