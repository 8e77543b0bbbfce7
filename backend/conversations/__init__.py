"""Conversations in PostgreSQL: tables and their SQL. Rows record what happened; what is shown is rendered from them."""

SEARCH_PATH = "core, public"
"""Where their statements find the tables."""
