"""Runs the workspace as a process."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.processes import ServiceProcess

WORKSPACE_TOKEN_SECRET = "a secret of the workspace's own: 7c1f0d5e9b2a4c6d"
ACCOUNT = 61_000 + (os.getpid() + 2_000) % 4_000  # processes are counted by account


@contextmanager
def run_workspace(**environment: str) -> Iterator[tuple[ServiceProcess, Path]]:
    """Yields the service and the directory of its folders."""
    root = Path(tempfile.mkdtemp(prefix="todo-workspace-test-"))
    service, directory = create_workspace_service(root, **environment)
    service.start()
    try:
        service.wait_until_ready()
        yield service, directory
    finally:
        service.end()
        shutil.rmtree(root)


def create_workspace_service(root: Path, **environment: str) -> tuple[ServiceProcess, Path]:
    """Returns the service, which is not started, and the directory of its folders below `root`."""
    as_root = os.geteuid() == 0
    directory = root / "workspaces"
    directory.mkdir(mode=0o700, exist_ok=True)
    if as_root:  # the account of the service needs access
        root.chmod(0o711)
        os.chown(directory, ACCOUNT, ACCOUNT)
    settings = {"WORKSPACE_DIR": str(directory), "WORKSPACE_TOKEN_SECRET": WORKSPACE_TOKEN_SECRET, **environment}
    options = [f"--account={ACCOUNT}"] if as_root else []
    service = ServiceProcess("workspace", "WORKSPACE_PORT", root / "workspace.log", *options, **settings)
    service.environment["WORKSPACE_URL"] = f"{service.url}/mcp"
    return service, directory
