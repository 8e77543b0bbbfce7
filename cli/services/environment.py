import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from cli import terminal
from cli.data_dir import CHECKOUT
from cli.services import env_file
from common.child_environment import is_known, is_setting

OFFLINE = "offline"
SERVERS = CHECKOUT / "mcp.json"
OLLAMAS_OWN = {"OLLAMA_HOST"}
THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
NO_PORT = "{} must be a port from 1 to 65535."
_LOCALTIME = Path("/etc/localtime")


def load() -> dict[str, str]:
    """Returns this process's environment over the entries of `.env`; an empty value counts as none."""
    entries = env_file.read()
    values = {name: entry.value for name, entry in entries.items()}
    found = {name: value for name, value in {**values, **os.environ}.items() if value}
    if wrong := [name for name, value in found.items() if is_known(name) and not terminal.is_text(value)]:
        raise env_file.create_error(env_file.add_origins(f"{name} is not UTF-8 text." for name in wrong))
    if SERVERS.exists():
        found.setdefault("MCP_SERVERS_FILE", str(SERVERS))
    references = list_server_variables(found)
    for name, entry in sorted(entries.items()):
        if not (is_known(name) or name in OLLAMAS_OWN or name in references):
            terminal.warn(f".env: {name} is not a setting of this program; see .env.example.")
        if entry.replaced_line is not None:
            terminal.warn(f".env: {name} has two values; line {entry.line} counts, and not line {entry.replaced_line}.")
    return found


def list_server_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What other MCP servers are given of the environment: the variables that mcp.json refers to, and no setting."""
    try:
        text = Path(environment["MCP_SERVERS_FILE"]).read_text()
    except (KeyError, OSError, UnicodeDecodeError):  # the backend says what is wrong with it
        return {}
    names = set(re.findall(r"\$\{env:(\w+)\}", text))
    return {name: environment[name] for name in names & environment.keys() if not is_setting(name)}


def find_port(environment: Mapping[str, str], name: str, default: int) -> int | None:
    """Returns None if the setting is no port; `NO_PORT` is the sentence about that."""
    text = environment.get(name, str(default))
    return int(text) if re.fullmatch("[0-9]{1,5}", text) and 0 < int(text) < 65536 else None


def port(environment: Mapping[str, str], name: str, default: int) -> int:
    found = find_port(environment, name, default)
    if found is None:
        raise env_file.create_error(env_file.add_origins([NO_PORT.format(name)]))
    return found


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
