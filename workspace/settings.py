import os
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pydantic_settings import BaseSettings

from common.environment import CONFIG, CommaSeparated, require
from common.settings import ProcessSettings, Secret, is_http, limit_per_user

_CHECKOUT = Path(__file__).parents[1]
MAX_CALL_BYTES = 4 * 1024 * 1024  # bytes of a request to the tools, which may hold a whole file as JSON


_AbsolutePath = Annotated[
    Path, require(Path.is_absolute, "must be the full path of a directory, such as /var/lib/workspace")
]
# The backend has the same text, which is the audience of its tokens.
_ToolsUrl = Annotated[
    str,
    require(
        lambda url: is_http(url) and url.endswith("/mcp") and "?" not in url,
        "must be the address at which the backend reaches the workspace, such as http://127.0.0.1:8003/mcp",
    ),
]


class StoreSettings(BaseSettings):
    """Where the files are, for the commands that work on them."""

    model_config = CONFIG

    workspace_dir: _AbsolutePath


class Settings(StoreSettings, ProcessSettings):
    prefix: ClassVar[str] = "WORKSPACE"

    workspace_host: str = "127.0.0.1"
    workspace_url: _ToolsUrl = "http://127.0.0.1:8003/mcp"
    workspace_token_secret: Secret
    workspace_port: int = Field(default=8003, ge=0, le=65535)
    workspace_confinement: Literal["auto", "bubblewrap", "landlock", "sandbox-exec", "none"] = "auto"
    """The sandbox for the agents' commands. auto: the first that works of bubblewrap, landlock and sandbox-exec; if
    none works, agents cannot run commands. none: no sandbox; this needs AUTH_MODE=none.
    """
    workspace_data_dir: _AbsolutePath | None = None
    """The data directory of ./todo up, which sets this. With it conversations can work in directories of the account
    that runs the workspace (./todo chat --here), but not in this one; this needs AUTH_MODE=none.
    """
    workspace_read: CommaSeparated = ()
    """Directories that commands may read beside /usr and its like, with full paths, separated by commas, such as
    /opt/node,/home/me/.pyenv. Default: none.
    """
    limit_file_bytes: int = Field(default=10_000_000, ge=1)
    limit_folder_bytes: int = Field(default=200_000_000, ge=1)
    limit_folder_files: int = Field(default=20_000, ge=1)
    limit_person_bytes: int | None = limit_per_user(1_000_000_000)
    limit_person_files: int | None = limit_per_user(100_000)
    limit_commands: int = Field(default=4, ge=1)
    keep_folders_days: int | None = limit_per_user(30)
    """Unused folders are deleted after so many days. Default with sign-in: 30; without: never."""

    def max_body_bytes(self, method: str, path: str) -> int:
        if path == "/mcp":
            return max(MAX_CALL_BYTES, self.limit_request_bytes)
        # Twice the limit, so that clients that read no answer before the end of the file learn that it is too large.
        return 2 * self.limit_file_bytes if method == "PUT" and path.startswith("/files/") else self.limit_request_bytes

    def find_problem(self) -> str | None:
        if self.workspace_confinement == "none" and self.signs_in:
            return (
                "WORKSPACE_CONFINEMENT=none runs commands without a sandbox, so it is allowed only with AUTH_MODE=none."
            )
        if self.workspace_data_dir and self.signs_in:
            return "WORKSPACE_DATA_DIR is allowed only with AUTH_MODE=none."
        return next(filter(None, map(self._problem_with_readable, self.workspace_read)), None)

    def _problem_with_readable(self, path: str) -> str | None:
        """Commands must not read stored files, the data directory or this program's settings."""
        real = Path(os.path.realpath(path))
        if not path.startswith("/") or not real.is_dir():
            return f"WORKSPACE_READ must list full paths of directories, and {path} is none."
        for private in filter(None, (self.workspace_dir, self.workspace_data_dir, _CHECKOUT)):
            if Path(os.path.realpath(private)).is_relative_to(real) or real.is_relative_to(os.path.realpath(private)):
                return f"WORKSPACE_READ must not list {path}, which contains {private} or is inside."
        return None
