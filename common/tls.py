import ssl
from functools import cache


@cache
def get_tls_context() -> ssl.SSLContext:
    """Returns the context of all clients of a process: each would read the system's 150 root certificates again."""
    return ssl.create_default_context()
