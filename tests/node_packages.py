"""Locked npm packages that only tests use, installed into the person's cache."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "todo-assistant"
MCP_CLIENTS = Path(__file__).resolve().parent / "mcp_clients"


def install_packages(packages: Path) -> Path:
    """The `node_modules` of a folder's package-lock.json; installed once for each state of the lock."""
    lock = hashlib.sha256((packages / "package-lock.json").read_bytes()).hexdigest()[:12]
    place = _CACHE / f"{packages.name}-{lock}"
    if not place.is_dir():
        npm = shutil.which("npm")
        assert npm, "npm is needed: install Node.js 20 or newer."
        _CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_CACHE) as directory:
            half = Path(directory) / "packages"
            half.mkdir()
            for name in ("package.json", "package-lock.json"):
                shutil.copy(packages / name, half)
            subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=half, check=True, timeout=300)
            try:
                half.rename(place)
            except OSError:  # another process of the tests was quicker
                if not place.is_dir():
                    raise
    return place / "node_modules"
