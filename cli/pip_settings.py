"""Translates what pip is set to into options and variables of uv, which does not read it."""

import ast
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

# `pip config list` prints `section.name='value'`. Of the sections, `install` comes first; before both come variables.
_LINE = re.compile(r"^(global|install)\.([\w-]+)=(.+)$", re.MULTILINE)
_UV_INDEXES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")
_UV_FILE_INDEXES = {"index", "index-url", "extra-index-url", "find-links", "no-index"}
_FALSE = ("", "0", "false", "no", "off", "n", "f")


def create_uv_settings(configuration: str, variables: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Returns options and variables. What the user has set for uv itself stays; its indexes replace all of pip's."""
    pip = _read_settings(configuration, variables)
    options: list[str] = []
    created = {"UV_HTTP_RETRIES": "2"}
    if not any(map(variables.get, _UV_INDEXES)) and not _has_indexes_of_its_own(variables):
        created |= _create_index_settings(pip)
        if _is_true(pip.get("no-index")):
            options.append("--no-index")
    if certificate := pip.get("cert") or variables.get("REQUESTS_CA_BUNDLE") or variables.get("CURL_CA_BUNDLE"):
        created["SSL_CERT_DIR" if os.path.isdir(certificate) else "SSL_CERT_FILE"] = certificate
    if certificate := pip.get("client-cert"):
        created["SSL_CLIENT_CERT"] = certificate
    if hosts := pip.get("trusted-host"):
        created["UV_INSECURE_HOST"] = " ".join(hosts.split())
    if seconds := pip.get("timeout"):
        created["UV_HTTP_TIMEOUT"] = seconds.partition(".")[0]
    if _is_true(pip.get("no-cache-dir")):
        created["UV_NO_CACHE"] = "1"
    created = {name: value for name, value in created.items() if not variables.get(name)}
    if proxy := pip.get("proxy"):  # pip prefers it to the variables, which both programs read
        created |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), proxy)
    return options, created


def _create_index_settings(pip: Mapping[str, str]) -> dict[str, str]:
    created = {}
    if index := pip.get("index-url"):
        created["UV_DEFAULT_INDEX"] = index
    if more := pip.get("extra-index-url", "").split():
        created["UV_INDEX"] = " ".join(more)
        created["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # as pip searches; each file must have its hash in any case
    if links := list(filter(_may_exist, map(os.path.expanduser, pip.get("find-links", "").split()))):
        created["UV_FIND_LINKS"] = ",".join(links)
    return created


def _may_exist(link: str) -> bool:
    """Returns False for a file or directory that is gone: pip ignores it, uv would fail."""
    path = link.removeprefix("file://")
    return "://" in path or os.path.exists(unquote(path))


def _read_settings(configuration: str, variables: Mapping[str, str]) -> dict[str, str]:
    configured = [(name, str(ast.literal_eval(value))) for _, name, value in sorted(_LINE.findall(configuration))]
    set_here = [
        (name.removeprefix("PIP_").lower().replace("_", "-"), value)
        for name, value in variables.items()
        if name.startswith("PIP_") and value
    ]
    return {name.removeprefix("default-"): value for name, value in configured + set_here}  # of `--default-timeout`


def _has_indexes_of_its_own(variables: Mapping[str, str]) -> bool:
    home = variables.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    system = (variables.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")
    files = [f"{directory}/uv/uv.toml" for directory in (home, *system, "/etc")]
    for file in [variables["UV_CONFIG_FILE"]] if variables.get("UV_CONFIG_FILE") else files:
        try:
            settings = tomllib.loads(Path(file).read_text())
        except (OSError, ValueError):
            continue
        if _UV_FILE_INDEXES & (settings.keys() | settings.get("pip", {}).keys()):
            return True
    return False


def _is_true(value: str | None) -> bool:
    return value is not None and value.lower() not in _FALSE
