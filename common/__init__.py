"""Code that the services share. It has no tables and imports no service."""

VERSION = "0.2.0"
"""The version of the program; pyproject.toml has the same."""
ISSUER = "todo-assistant"
"""The issuer (`iss`) of the tokens that the backend creates. Here, as reading the settings needs no cryptography."""
