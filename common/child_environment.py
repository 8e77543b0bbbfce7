"""Which environment variables each part reads. `./todo up` gives each part these, and no others of the user's.

Standard library only: `./todo` answers before packages.
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
_OF_LIBRARIES = {
    "backend": (_DATABASE, _REQUESTS, r"OPENAI_\w+"),
    "mcp_server": (_DATABASE, _REQUESTS),
    "migrations": (_DATABASE, "BACKUP_DIR", "DUMP_MADE"),
}
_PLAIN = re.compile(_PROCESS, re.IGNORECASE)  # of every program's
_PATTERNS = {
    part: re.compile("|".join([*names, _PROCESS, *_OF_LIBRARIES.get(part, ())]), re.IGNORECASE)
    for part, names in _SETTINGS.items()
}


def to(part: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of the environment that a part reads, whether by itself or by what it is made of."""
    return {name: value for name, value in environment.items() if _PATTERNS[part].fullmatch(name)}


def is_setting(name: str) -> bool:
    """Whether it is one of a part's own variables, secrets among them."""
    return not _PLAIN.fullmatch(name) and any(pattern.fullmatch(name) for pattern in _PATTERNS.values())


def is_known(name: str) -> bool:
    """Whether a part has a setting of this name."""
    return any(name in names for names in _SETTINGS.values())
