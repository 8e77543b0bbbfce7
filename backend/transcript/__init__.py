"""A conversation as lines of JSON, made of its rows: what was said, called and answered, and what went wrong."""
