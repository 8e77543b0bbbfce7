import hashlib
import os
import secrets
import shlex
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path

from cli.errors import explain_os_error

CHECKOUT = Path(__file__).resolve().parent.parent
ROOT_HOME = Path("/var/lib/todo-assistant")
TOKEN_SECRET, WORKSPACE_SECRET = "mcp_token_secret", "workspace_token_secret"
OWNER_SECRET = "owner_secret"  # noqa: S105
"""By this the backend knows the user who runs it."""
_SECRET_BYTES = 32
_WORKSPACE_ACCOUNT = 61_003  # in the range that systemd's documentation lists as unused


def default() -> Path:
    """`.data` in the checkout, or below `ROOT_HOME` if root uses a checkout that PostgreSQL's user cannot enter."""
    if os.getuid() != 0 or is_traversable(CHECKOUT):
        return CHECKOUT / ".data"
    return ROOT_HOME / f"data-{hashlib.sha256(os.fsencode(CHECKOUT)).hexdigest()[:8]}"


def get_option(data_dir: Path) -> str:
    """Returns what a command in a message needs behind it to mean this directory; nothing for the default."""
    return "" if data_dir == default() else f" --data-dir {shlex.quote(str(data_dir))}"


def prepare(data_dir: Path) -> None:
    """Creates it and its `logs`. PostgreSQL's user may enter root's, because it owns a directory inside."""
    with explain_write_error(data_dir):
        if not data_dir.exists():
            data_dir.mkdir(parents=True)
            data_dir.chmod(0o711 if os.getuid() == 0 else 0o700)
        logs(data_dir).mkdir(mode=0o700, exist_ok=True)


def secret(data_dir: Path, name: str) -> str:
    """Returns the secret of this name, which only this user can read; creates it the first time.

    One that a power failure has left empty or damaged is replaced.
    """
    path = data_dir / name
    with explain_write_error(data_dir):
        if (found := _read_secret(path)) is not None:
            return found
        with tempfile.NamedTemporaryFile("w", dir=data_dir, prefix=f".{name}.", delete=False) as fresh:
            fresh.write(created := secrets.token_hex(_SECRET_BYTES))
            fresh.flush()
            os.fsync(fresh.fileno())
        Path(fresh.name).replace(path)
        return created


def read_secret(data_dir: Path, name: str) -> str | None:
    try:
        return _read_secret(data_dir / name)
    except OSError:
        return None


def _read_secret(path: Path) -> str | None:
    """Returns None if there is none, or no whole one. Raises `OSError`."""
    if not path.exists():
        return None
    text = path.read_bytes().decode("ascii", errors="replace")
    return text if len(text) >= 2 * _SECRET_BYTES and text.isascii() and text.isprintable() else None


def get_workspaces_path(data_dir: Path) -> Path:
    return data_dir / "workspaces"


def find_workspace_account() -> int | None:
    return _WORKSPACE_ACCOUNT if os.geteuid() == 0 else None


def workspaces(data_dir: Path) -> Path:
    """Creates the directory of users' files, which only the workspace's account can enter."""
    path = get_workspaces_path(data_dir)
    with explain_write_error(data_dir):
        path.mkdir(mode=0o700, exist_ok=True)
        if account := find_workspace_account():
            os.chown(path, account, account)
    return path


def chat_history(data_dir: Path) -> Path:
    return data_dir / "chat_history"


def logs(data_dir: Path) -> Path:
    return data_dir / "logs"


def explain_write_error(data_dir: Path) -> AbstractContextManager[None]:
    return explain_os_error(f"The data directory {data_dir} cannot be written")


def is_traversable(path: Path) -> bool:
    """Whether every account can enter it; what is not there yet will be made so by `prepare`."""
    return all(directory.stat().st_mode & 0o001 for directory in (path, *path.parents) if directory.is_dir())
