"""A chat-completions endpoint that refuses what a provider refuses, and sends answers as that one does.

What it answers is scripted.
"""
