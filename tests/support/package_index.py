"""A package index (PEP 503) on loopback, and small wheels for it."""

import base64
import hashlib
import http.server
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class PackageIndex:
    directory: Path
    login: str = ""  # `user:password`, if one is wanted
    rejected: str = "nobody"  # the start of a user agent that gets 403
    port: int = 0
    agents: list[str] = field(default_factory=list)  # of all requests, in their order

    @property
    def url(self) -> str:
        login = self.login + "@" if self.login else ""
        return f"http://{login}127.0.0.1:{self.port}/simple"

    def add(self, name: str, files: dict[str, str] | None = None) -> str:
        """Adds version 1 of a package, and returns its line of a lock."""
        wheel = self.directory / f"{name}-1-py3-none-any.whl"
        information = f"{name}-1.dist-info"
        contents = {
            f"{name}.py": "",
            f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
            f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            **(files or {}),
        }
        contents[f"{information}/RECORD"] = "".join(f"{path},,\n" for path in [*contents, f"{information}/RECORD"])
        with zipfile.ZipFile(wheel, "w") as archive:
            for path, text in contents.items():
                entry = zipfile.ZipInfo(path)
                entry.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
                archive.writestr(entry, text)
        return f"{name}==1 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"

    def answer(self, path: str, agent: str, authorization: str) -> tuple[int, bytes]:
        self.agents.append(agent.partition("/")[0])
        if agent.startswith(self.rejected):
            return 403, b""
        if self.login and authorization != f"Basic {base64.b64encode(self.login.encode()).decode()}":
            return 401, b""
        _, place, name, *_ = [*path.split("/"), ""]
        if place == "simple":
            names = [wheel.name for wheel in self.directory.glob(f"{name}-*.whl")]
            return (
                (200, "".join(f'<a href="/files/{name}">{name}</a>' for name in names).encode())
                if names
                else (404, b"")
            )
        return 200, (self.directory / name).read_bytes()


@contextmanager
def serve(index: PackageIndex) -> Iterator[PackageIndex]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = self.headers
            status, body = index.answer(self.path, headers.get("User-Agent", ""), headers.get("Authorization", ""))
            self.send_response(status)
            if status == 401:
                self.send_header("WWW-Authenticate", 'Basic realm="index"')
            self.send_header("Content-Type", "text/html" if "/simple/" in self.path else "application/zip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        index.port = server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield index
        server.shutdown()
