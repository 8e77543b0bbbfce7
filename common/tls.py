import ssl
from functools import cache


@cache
def tls_context() -> ssl.SSLContext:
    """Returns the TLS context of this process. It is shared, because creating one takes 20 to 40 ms."""
    return ssl.create_default_context()
