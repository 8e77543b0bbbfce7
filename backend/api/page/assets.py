"""The files of the page, compressed ahead, under addresses that change with their content."""

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fastapi import Request, Response

WEB = Path(__file__).parents[3] / "web"
_TEXTS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_MEDIA_TYPES = {**_TEXTS, ".png": "image/png"}
_IMPORT = re.compile(r"""(?:^|;)(?:import|export)\b(?:[^"'();]*\bfrom)?\s*["'](\.{1,2}/[^"']+)["']""", re.MULTILINE)

# A quarter of what a first visit loads: comments that have lines of their own. Their lines stay, as numbers in errors.
_COMMENTS = re.compile(r"^[ \t]*/\*\*(?:[^*]|\*(?!/))*\*/[ \t]*$|^[ \t]*//.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Asset:
    body: bytes
    compressed: bytes | None
    media_type: str

    def respond(self, request: Request, headers: Mapping[str, str], status: int = 200) -> Response:
        if self.compressed is None:
            return Response(self.body, status, headers, self.media_type)
        headers = {**headers, "Vary": "Accept-Encoding"}
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(self.body, status, headers, self.media_type)
        return Response(self.compressed, status, {**headers, "Content-Encoding": "gzip"}, self.media_type)


class Assets:
    """All files of the page as they were when the process began, or when one of them was changed."""

    def __init__(self, folder: Path = WEB) -> None:
        self._folder = folder
        self.changed_at = _find_last_change(folder)
        contents = {str(path.relative_to(folder)): path.read_bytes() for path in _list_files(folder)}
        digest = hashlib.sha256()
        for name, content in sorted(contents.items()):
            digest.update(b"%s %d " % (name.encode(), len(content)) + content)
        self.hash = digest.hexdigest()[:16]
        self.html = self.place(contents["index.html"].decode())
        self.authorization_html = self.place(contents["authorize.html"].decode())
        self.manifest = self.place(contents["manifest.json"].decode())
        self._worker = contents["service-worker.js"].decode()
        self.files = {
            name: _create_asset(name, content)
            for name, content in contents.items()
            if Path(name).suffix in _MEDIA_TYPES and name != "service-worker.js"
        }

    def is_outdated(self) -> bool:
        """Whether somebody works on the page: a changed file is seen after a reload, a second later at the latest."""
        return _find_last_change(self._folder) != self.changed_at

    def place(self, text: str) -> str:
        """Puts the hash into the addresses of assets in a text."""
        return text.replace('"assets/', f'"assets/{self.hash}/')

    @cached_property
    def worker(self) -> Asset:
        """The service worker, which knows all files: it changes whenever one of them does."""
        files = ", ".join(f'"assets/{self.hash}/{name}"' for name in sorted(self.files))
        text = self._worker.replace('"HASH"', f'"{self.hash}"').replace("/* FILES */", files)
        return compress(text, "text/javascript")

    @cached_property
    def page_modules(self) -> list[str]:
        return self.list_modules("page.js")

    def list_modules(self, name: str) -> list[str]:
        """Lists a module and those that it imports, without what is imported later by `import()`."""
        found, queue = {name: None}, [name]
        for module in queue:
            for imported in _IMPORT.findall(self.files[module].body.decode()):
                path = str((self._folder / module).parent.joinpath(imported).resolve().relative_to(self._folder))
                if path not in found:
                    found[path] = None
                    queue.append(path)
        return list(found)


def compress(text: str, media_type: str) -> Asset:
    body = text.encode()
    return Asset(body, gzip.compress(body, mtime=0), media_type)


def _list_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _find_last_change(folder: Path) -> tuple[int, int]:
    files = _list_files(folder)
    return len(files), max(path.stat().st_mtime_ns for path in files)


def _create_asset(name: str, content: bytes) -> Asset:
    suffix = Path(name).suffix
    if suffix == ".js" and not name.startswith("vendor/"):  # their comments have licences
        content = _COMMENTS.sub(lambda comment: "\n" * comment[0].count("\n"), content.decode()).encode()
    compressed = gzip.compress(content, mtime=0) if suffix in _TEXTS else None
    return Asset(content, compressed, _MEDIA_TYPES[suffix])
