"""The event log of a conversation: lines of JSON, rendered from what is stored of its runs."""
