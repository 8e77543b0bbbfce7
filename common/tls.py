import ssl
from functools import cache


@cache
def tls_context() -> ssl.SSLContext:
    """The one TLS context of this process: building one reads every root certificate, 20 to 40 ms."""
    return ssl.create_default_context()
