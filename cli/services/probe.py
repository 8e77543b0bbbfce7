"""Asks a service of this machine, as its supervisor and `./todo status` do. Standard library only."""

import http.client

SECONDS = 5


def get(port: int, path: str) -> tuple[int, str]:
    """The status and the beginning of the answer; 0 where there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read(10_000).decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return 0, ""
    finally:
        connection.close()
