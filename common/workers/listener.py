import socket
import sys

_UNREAD_BYTES = 65_536  # the system keeps no more of what a client sends, and we read no more at once


def bind(prefix: str, host: str, port: int) -> socket.socket:
    """A socket that does not listen yet: connections are refused until a worker is warm.

    Where there can be none, the process ends with a sentence; `prefix` is that of the two settings' names.
    """
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host,
            port,
            type=socket.SOCK_STREAM,
            proto=socket.IPPROTO_TCP,  # asyncio turns Nagle's delay off only for a socket that names it
            flags=socket.AI_PASSIVE,
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _UNREAD_BYTES)  # every connection inherits it
        listener.bind(place)
    except OSError as error:
        sys.exit(
            f"Cannot listen on {host} port {port} ({error.strerror}): "
            f"set {prefix}_HOST and {prefix}_PORT to an address of this machine and a free port."
        )
    return listener


def address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
