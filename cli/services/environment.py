import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from cli import terminal
from cli.data_dir import CHECKOUT
from cli.errors import CliError
from common.child_environment import is_known, is_setting

OFFLINE = "offline"
SERVERS = CHECKOUT / "mcp.json"
OLLAMAS_OWN = {"OLLAMA_HOST"}
THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_LOCALTIME = Path("/etc/localtime")


def load(file: Path = CHECKOUT / ".env") -> dict[str, str]:
    """This process's environment over the file's, which need not be there; an empty value counts as none."""
    values: dict[str, str | None] = {}
    if file.exists():
        from dotenv import dotenv_values

        try:
            values.update(dotenv_values(file))
        except (OSError, UnicodeDecodeError) as error:
            raise CliError(f"{file} is not UTF-8 text. Save it as UTF-8.") from error
    found = {name: value for name, value in {**values, **os.environ}.items() if value}
    if wrong := [name for name, value in found.items() if is_known(name) and not terminal.is_text(value)]:
        raise CliError(f"{wrong[0]} is not UTF-8 text. Set it again.")
    if SERVERS.exists():
        found.setdefault("MCP_SERVERS_FILE", str(SERVERS))
    for name in sorted(values.keys() - OLLAMAS_OWN - list_server_variables(found).keys()):
        if not is_known(name):
            terminal.warn(f".env: {name} is not a setting of this program; see .env.example.")
    return found


def list_server_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What other MCP servers are given of the environment: the variables that mcp.json refers to, and no setting."""
    try:
        text = Path(environment["MCP_SERVERS_FILE"]).read_text()
    except (KeyError, OSError, UnicodeDecodeError):  # the backend says what is wrong with it
        return {}
    names = set(re.findall(r"\$\{env:(\w+)\}", text))
    return {name: environment[name] for name in names & environment.keys() if not is_setting(name)}


def port(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, str(default))
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise CliError(f"{name} must be a port from 1 to 65535, not {text!r}.")
    return int(text)


def get_mcp_url(environment: Mapping[str, str], port: int) -> str:
    """By which clients know what `./todo up` serves there: MCP_URL if it is for others than this machine."""
    given = environment.get("MCP_URL", "")
    try:
        host = urlsplit(given).hostname
    except ValueError:
        host = None
    return f"http://127.0.0.1:{port}/mcp" if host in (None, *THIS_MACHINE) else given


def needs_offline_model(environment: Mapping[str, str]) -> bool:
    if "LLM_BASE_URL" in environment:
        return False
    has_key = "CEREBRAS_API_KEY" in environment or "LLM_API_KEY" in environment
    return environment.get("LLM_PROVIDER", "cerebras" if has_key else OFFLINE) == OFFLINE


def find_time_zone(environment: Mapping[str, str]) -> str | None:
    """Returns the name of this machine's time zone, as `TZ` or its own settings have it; None if they name none."""
    from common.clock import find_zone

    link = os.readlink(_LOCALTIME) if _LOCALTIME.is_symlink() else ""
    for named in (environment.get("TZ", "").removeprefix(":"), link):
        name = named.rpartition("zoneinfo/")[2]
        if find_zone(name) is not None:
            return name
    return None
