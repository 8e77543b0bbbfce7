"""Code that the services share. It has no tables and imports no service."""
