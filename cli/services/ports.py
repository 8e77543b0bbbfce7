"""The ports of `./todo up`, checked before anything is started."""

import errno
import socket
from typing import NamedTuple

from cli.errors import CliError

HOST = "127.0.0.1"
WORKSPACE_PORT = 8003
_LOOPBACK = ((socket.AF_INET, HOST), (socket.AF_INET6, "::1"))  # the services listen at both, as localhost means either


class Ports(NamedTuple):
    page: int
    mcp: int
    workspace: int | None


def choose_ports(wanted: Ports, *, has_workspace: bool) -> Ports:
    """Raises `CliError` if a port that somebody chose is taken. The workspace's is free to change: nobody types it."""
    if not has_workspace:
        wanted = wanted._replace(workspace=None)
    numbers = [number for number in wanted if number is not None]
    if shared := next((number for number in numbers if numbers.count(number) > 1), None):
        raise CliError(
            f"Page, MCP server and workspace cannot share port {shared}: choose another --port, --mcp-port or "
            "--workspace-port."
        )
    for option, number in zip(("--port", "--mcp-port", "--workspace-port"), wanted, strict=True):
        if number is not None and (problem := _find_port_problem(number)):
            raise CliError(f"Port {number} of {problem}: choose another port with {option}.")
    if not has_workspace or wanted.workspace is not None:
        return wanted
    is_usable = WORKSPACE_PORT not in wanted and not _find_port_problem(WORKSPACE_PORT)
    return wanted._replace(workspace=WORKSPACE_PORT if is_usable else find_free_port())


def _find_port_problem(number: int) -> str | None:
    for family, address in _LOOPBACK:
        try:
            with socket.socket(family) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do
                probe.bind((address, number))
                probe.listen()
        except OSError as error:
            if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):  # a machine without IPv6
                return f"{address} cannot be used ({error.strerror})"
    return None


def find_free_port() -> int:
    while True:
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            number: int = probe.getsockname()[1]
        if not _find_port_problem(number):
            return number
