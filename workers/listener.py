import socket


class CannotListen(Exception):
    """The address cannot be listened on; the text says why, in the operating system's words."""


def bind(host: str, port: int) -> socket.socket:
    """A socket that does not listen yet: connections are refused until a worker is warm."""
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
        listener.bind(place)
    except OSError as error:
        raise CannotListen(error.strerror) from None
    return listener


def address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
