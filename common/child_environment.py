"""The environment variables that each service reads; `./todo up` passes no others to it.

Standard library only, because `./todo` imports it before the packages are installed.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

_SETTINGS: Mapping[str, list[str]] = json.loads((Path(__file__).parent / "setting_names.json").read_text())
PARTS = (*_SETTINGS,)

_PROCESS = r"PATH|HOME|USER|LOGNAME|TMPDIR|TZ|LANG|LANGUAGE|LC_\w+|PYTHON\w+|LD_\w+|DYLD_\w+|MALLOC_\w+"
_DATABASE = r"PG\w+|PSYCOPG_\w+|KRB5\w+"
_REQUESTS = r"(HTTP|HTTPS|ALL|NO)_PROXY|SSL_CERT_\w+|\w+_CA_BUNDLE|OTEL_\w+"
_LIBRARIES = {
    "backend": (_DATABASE, _REQUESTS, r"OPENAI_\w+"),
    "mcp_server": (_DATABASE, _REQUESTS),
    "migrations": (_DATABASE,),
}
_COMMON = re.compile(_PROCESS, re.IGNORECASE)
_PATTERNS = {
    part: re.compile("|".join([*names, _PROCESS, *_LIBRARIES.get(part, ())]), re.IGNORECASE)
    for part, names in _SETTINGS.items()
}


def select_variables(part: str, environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if _PATTERNS[part].fullmatch(name)}


def is_setting(name: str) -> bool:
    """Whether a service or its libraries read this variable, while other programs do not; it may be a secret."""
    return not _COMMON.fullmatch(name) and any(pattern.fullmatch(name) for pattern in _PATTERNS.values())


def is_known(name: str) -> bool:
    return any(name in names for names in _SETTINGS.values())
