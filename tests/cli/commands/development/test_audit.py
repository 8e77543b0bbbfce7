"""`./todo audit` with the real tools, and a stand-in for the lists that they ask."""

import gzip
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from cli.commands.development import audit
from cli.packages import install

REQUIREMENTS = f"idna==3.20 --hash=sha256:{'0' * 64}\nh11==0.16.0 --hash=sha256:{'0' * 64}\n"
NPM_LOCK = {
    "name": "some",
    "lockfileVersion": 3,
    "packages": {
        "": {"name": "some", "dependencies": {"marked": "18.2.1"}},
        "node_modules/marked": {"version": "18.2.1"},
    },
}
PYTHON_FOUND = "idna 3.20: it is slow (PYSEC-1, fixed in 99)"
NPM_FOUND = "marked <99: it is slow, too (high, https://advisories.example/1)"


class Lists(ThreadingHTTPServer):
    """Both lists of vulnerabilities, on one port."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Lists)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.asked: set[str] = set()
        self.known: set[str] = set()
        self.status = 200

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if "package" in asked:
            self.asked.add(asked["package"]["name"])
            return {"vulns": [_of_osv(asked["package"])]} if asked["package"]["name"] in self.known else {}
        self.asked |= set(asked)
        return {name: [_of_npm()] for name in asked if name in self.known}


class _Lists(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        lists = self.server
        assert isinstance(lists, Lists)
        body = self.rfile.read(int(self.headers["content-length"]))
        plain = gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body
        self._send(lists.status, json.dumps(lists.answer(json.loads(plain))).encode())

    def do_GET(self) -> None:
        self._send(404, b"{}")

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _of_osv(package: dict[str, str]) -> dict[str, Any]:
    ranges = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99"}]}]
    return {"id": "PYSEC-1", "summary": "it is slow", "affected": [{"package": package, "ranges": ranges}]}


def _of_npm() -> dict[str, Any]:
    return {"id": 1, "url": "https://advisories.example/1", "title": "it is slow, too"} | {
        "severity": "high",
        "vulnerable_versions": "<99",
    }


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lists]:
    with Lists() as server:
        monkeypatch.setenv("PIP_AUDIT_OSV_URL", f"{server.url}/v1/query")
        monkeypatch.setenv("npm_config_registry", server.url)
        monkeypatch.setenv("npm_config_fetch_retries", "0")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def audit_tools() -> None:
    """The first time in a checkout they are installed."""
    install.ensure(install.AUDIT)


@pytest.fixture
def look_up(audit_tools, lists, tmp_path, monkeypatch, capfd):
    """The exit status, the output and the complaints."""
    (tmp_path / "requirements.lock").write_text(REQUIREMENTS)
    (tmp_path / "package.json").write_text('{"name": "some", "dependencies": {"marked": "18.2.1"}}')
    (tmp_path / "package-lock.json").write_text(json.dumps(NPM_LOCK))
    for variable in ("XDG_CACHE_HOME", "npm_config_cache"):
        monkeypatch.setenv(variable, str(tmp_path / "cache"))

    def run() -> tuple[int, str, str]:
        locks = {"python_locks": (tmp_path / "requirements.lock",), "npm_locks": (tmp_path / "package-lock.json",)}
        return audit.run(**locks), *capfd.readouterr()

    return run


needs_npm = pytest.mark.skipif(not shutil.which("npm"), reason="npm is not there")


@needs_npm
@pytest.mark.long
@pytest.mark.parametrize("status", [404, 500, None], ids=["not found", "failing", "unreachable"])
def test_a_list_that_does_not_answer_is_not_taken_for_a_clean_one(look_up, lists, monkeypatch, free_port, status):
    if status is None:
        monkeypatch.setenv("PIP_AUDIT_OSV_URL", f"http://127.0.0.1:{free_port()}/")
        monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{free_port()}/")
    else:
        lists.status = status
    result, output, complaints = look_up()
    assert result == 1
    assert complaints.count("was not looked up, so nothing is known of its packages: check the network") == 2
    assert "Traceback" not in complaints
    assert "packages;" not in output


@needs_npm
@pytest.mark.long
@pytest.mark.parametrize(("known", "line"), [("idna", PYTHON_FOUND), ("marked", NPM_FOUND)])
def test_a_known_vulnerability_is_named_and_fails(look_up, lists, known, line):
    lists.known = {known}
    result, output, complaints = look_up()
    assert (result, complaints) == (1, "")
    assert line in output.splitlines()
    assert "known vulnerabilities: 1\n" in output
    assert "known vulnerabilities: none\n" in output


@needs_npm
@pytest.mark.long
def test_nothing_known_of_any_locked_package(look_up, lists):
    result, output, complaints = look_up()
    assert (result, complaints) == (0, "")
    assert lists.asked == {"idna", "h11", "marked"}
    lines = output.splitlines()
    assert lines[1::2] == ["2 packages; known vulnerabilities: none", "1 packages; known vulnerabilities: none"]


@pytest.mark.long
def test_without_npm_only_python_packages_are_looked_up_and_it_is_said(look_up, lists, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    result, _, complaints = look_up()
    assert result == 0
    assert complaints == "note: npm is not there: only the Python packages were looked up.\n"
    assert lists.asked == {"idna", "h11"}


@pytest.mark.long
def test_a_lock_without_hashes_is_no_lock(look_up, lists, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "requirements.lock").write_text("idna==3.20\n")
    assert look_up()[0] == 1
    assert lists.asked == set()


def test_every_lock_of_the_checkout_is_looked_up():
    assert all(lock.is_file() for lock in audit.NPM_LOCKS)
    assert set(audit.PYTHON_LOCKS) == set(audit.CHECKOUT.glob("requirements*.lock")) - {install.RUNTIME_LOCK}
    assert set(audit.NPM_LOCKS) == set((audit.CHECKOUT / "tests").glob("*/package-lock.json"))
