"""What a call says of itself beside its arguments."""

import unicodedata
from collections.abc import Mapping
from typing import Any

from common.tool_server.refusals import MetaInvalid


def is_plain(text: str, allowed: str = "") -> bool:
    """Whether PostgreSQL can store it and a line can show it: no control characters, no lone surrogates."""
    return not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") and c not in allowed for c in text)


def label(meta: Mapping[str, Any], name: str, *, longest: int) -> str | None:
    """A text of one line, or None where there is none; raises `MetaInvalid`."""
    given = meta.get(name)
    if given is None:
        return None
    if not isinstance(given, str) or not 1 <= len(given) <= longest or not is_plain(given):
        raise MetaInvalid(name=name, longest=longest)
    return given
