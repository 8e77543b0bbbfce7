"""A chat-completions endpoint with scripted responses and failures, which logs its requests.

The offline model answers requests for which there is no scripted step.
"""
