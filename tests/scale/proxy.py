"""Runs HAProxy with `deploy/haproxy.cfg` in front of the services of a test."""

import datetime
import re
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import httpx2
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.conftest import ROOT, find_free_port
from tests.processes import Program

PROGRAM = shutil.which("haproxy") or "/usr/sbin/haproxy"
FILE = ROOT / "deploy" / "haproxy.cfg"
_STATUS = re.compile(r" [-+\d]+(?:/[-+\d]+){4} (\d{3}) ")  # after the durations in a line of the log


class HaProxy(Program):
    """Keeps its ports when it is restarted. `servers` are the ports of the services by their addresses in the file."""

    def __init__(self, servers: Mapping[str, int], directory: Path) -> None:
        super().__init__(directory / "haproxy.log")
        self.port, self.tools_port = find_free_port(), find_free_port()
        self.url, self.tools_url = f"https://localhost:{self.port}", f"http://127.0.0.1:{self.tools_port}"
        self._configuration = directory / "haproxy.cfg"
        self.certificate = directory / "todo.pem"
        self.certificate.write_bytes(_create_certificate())
        replacements = {
            "/dev/log local0": "stderr format raw local0",
            "bind :80\n": f"bind 127.0.0.1:{find_free_port()}\n",
            "bind :443": f"bind 127.0.0.1:{self.port}",
            "/etc/haproxy/todo.pem": str(self.certificate),
            "10.0.0.30:8001": f"127.0.0.1:{self.tools_port}",
            **{address: f"127.0.0.1:{port}" for address, port in servers.items()},
        }
        text = FILE.read_text()
        for example, value in replacements.items():
            assert example in text, example
            text = text.replace(example, value)
        assert not re.search(r"^ +(?:bind|server) .*\b10\.0\.0\.", text, re.MULTILINE)
        self._configuration.write_text(text)

    def start(self) -> None:
        self.launch([PROGRAM, "-db", "-f", str(self._configuration)])
        self._wait(lambda _: True)

    def wait_until_ready(self) -> None:
        """Waits until HAProxy reaches a backend and an MCP server."""
        self._wait(lambda status: status == 200)

    def _wait(self, is_good: Callable[[int], bool]) -> None:
        for url in (self.url, self.tools_url):
            self.wait_until(partial(_is_ready, url, is_good))

    @property
    def statuses(self) -> Counter[int]:
        """The responses by status, from the log."""
        return Counter(int(status) for status in _STATUS.findall(self.log_text))

    def count_up(self, name: str) -> int:
        """Returns how often the log says that a server became ready."""
        return len(re.findall(rf"Server (?:backends|tools)/{name} is UP", self.log_text))


def _is_ready(url: str, is_good: Callable[[int], bool]) -> bool:
    try:
        return is_good(httpx2.get(f"{url}/ready", timeout=5, trust_env=False, verify=False).status_code)
    except httpx2.TransportError:
        return False


def _create_certificate() -> bytes:
    """Creates a self-signed certificate of localhost; returns it with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private_key = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem) + private_key
