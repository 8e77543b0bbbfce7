import hashlib
import os
import secrets
import tempfile
from pathlib import Path

from cli.errors import CliError

CHECKOUT = Path(__file__).resolve().parent.parent
ROOT_HOME = Path("/var/lib/todo-assistant")
_WORKSPACE_ACCOUNT = 61_003  # in the range that systemd's documentation lists as unused


def default() -> Path:
    """`.data` in the checkout, or below `ROOT_HOME` if root uses a checkout that PostgreSQL's user cannot enter."""
    if os.getuid() != 0 or traversable(CHECKOUT):
        return CHECKOUT / ".data"
    return ROOT_HOME / f"data-{hashlib.sha256(os.fsencode(CHECKOUT)).hexdigest()[:8]}"


def prepare(data_dir: Path) -> None:
    """Creates it and its `logs`. PostgreSQL's user may enter root's, because it owns a directory inside."""
    try:
        if not data_dir.exists():
            data_dir.mkdir(parents=True)
            data_dir.chmod(0o711 if os.getuid() == 0 else 0o700)
        logs(data_dir).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise not_writable(data_dir, error) from error


def token_secret(data_dir: Path) -> str:
    """Returns the secret of the MCP server's tokens without MCP_TOKEN_SECRET; creates it the first time."""
    return _read_or_create(_secret(data_dir), secrets.token_hex(32))


def workspace_secret(data_dir: Path) -> str:
    """The same for the workspace's tokens and WORKSPACE_TOKEN_SECRET."""
    return _read_or_create(data_dir / "workspace_token_secret", secrets.token_hex(32))


def owner_secret(data_dir: Path) -> str:
    """Returns the secret by which the backend knows the user who runs it; creates it the first time."""
    return _read_or_create(data_dir / "owner_secret", secrets.token_hex(32))


def known_owner_secret(data_dir: Path) -> str | None:
    """Returns that secret if it exists and this user may read it."""
    try:
        return (data_dir / "owner_secret").read_text()
    except OSError:
        return None


def known_token_secret(data_dir: Path) -> str | None:
    """Returns the secret of the MCP server's tokens if it exists."""
    path = _secret(data_dir)
    return path.read_text() if path.exists() else None


def _secret(data_dir: Path) -> Path:
    return data_dir / "mcp_token_secret"


def _read_or_create(path: Path, text: str) -> str:
    """Returns the content of a file; if there is none, it gets this text, which only its owner can read."""
    try:
        if not path.exists():
            with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as fresh:
                fresh.write(text)
            Path(fresh.name).replace(path)
        return path.read_text()
    except OSError as error:
        raise not_writable(path.parent, error) from error


def workspaces_of(data_dir: Path) -> Path:
    return data_dir / "workspaces"


def workspace_account() -> int | None:
    """What the workspace runs as, if root starts it."""
    return _WORKSPACE_ACCOUNT if os.geteuid() == 0 else None


def workspaces(data_dir: Path) -> Path:
    """Creates the directory of users' files, which only the workspace's account can enter."""
    path = workspaces_of(data_dir)
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        if account := workspace_account():
            os.chown(path, account, account)
    except OSError as error:
        raise not_writable(data_dir, error) from error
    return path


def chat_history(data_dir: Path) -> Path:
    """The file with what was typed in `./todo chat`."""
    return data_dir / "chat_history"


def logs(data_dir: Path) -> Path:
    return data_dir / "logs"


def not_writable(data_dir: Path, error: OSError) -> CliError:
    return CliError(f"The data directory {data_dir} cannot be written: {error.strerror}.")


def traversable(path: Path) -> bool:
    """Whether everybody may enter `path` and all directories above it."""
    return all(directory.stat().st_mode & 0o001 for directory in (path, *path.parents))
