"""Installs locked npm packages that only tests use into the user's cache."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "todo-assistant"
MCP_CLIENTS = Path(__file__).resolve().parent / "mcp_clients"


def install_packages(packages: Path) -> Path:
    """Returns the `node_modules` of a folder's package-lock.json, installed once for each content of that file."""
    lock = hashlib.sha256((packages / "package-lock.json").read_bytes()).hexdigest()[:12]
    target = _CACHE / f"{packages.name}-{lock}"
    if not target.is_dir():
        npm = shutil.which("npm")
        assert npm, "npm is needed: install Node.js 20 or newer."
        _CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_CACHE) as directory:
            folder = Path(directory) / "packages"
            folder.mkdir()
            for name in ("package.json", "package-lock.json"):
                shutil.copy(packages / name, folder)
            subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=folder, check=True, timeout=300)
            try:
                folder.rename(target)
            except OSError:  # another process has installed them
                if not target.is_dir():
                    raise
    return target / "node_modules"
