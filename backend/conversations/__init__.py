"""Conversations in PostgreSQL: tables and their SQL. Rows record what happened; what is shown is rendered from them."""
