"""Results of tools; those of calls that change something are stored for repeated calls."""

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from common.tool_server.errors import IdempotencyKeyReused

_MAX_RECORDS = 200  # of a folder
_MAX_RECORD_BYTES = 20_000_000  # of a folder


class CallResult(NamedTuple):
    text: str
    """For the model."""
    details: Mapping[str, Any]
    """For the user."""


def find_result(directory: Path, key: str | None, call: dict[str, Any]) -> CallResult | None:
    """Returns the stored result of a call; raises `IdempotencyKeyReused` if its key belongs to another call."""
    if key is None:
        return None
    try:
        stored = json.loads(_get_path(directory, key).read_text())
    except FileNotFoundError:
        return None
    if stored["asked"] != _hash_call(call):
        raise IdempotencyKeyReused
    return CallResult(stored["text"], stored["details"])


def store_result(directory: Path, key: str | None, call: dict[str, Any], result: CallResult) -> None:
    if key is not None:
        stored = {"asked": _hash_call(call), "text": result.text, "details": result.details}
        store_record(directory, key, stored, most=_MAX_RECORDS, most_bytes=_MAX_RECORD_BYTES)


def store_record(directory: Path, key: str, record: dict[str, Any], *, most: int, most_bytes: int) -> None:
    """Removes the oldest records beyond the limits. Is safe in several threads at once."""
    fresh = directory / f"{secrets.token_hex(16)}.new"
    fresh.write_text(json.dumps(record))
    fresh.replace(_get_path(directory, key))
    found: list[tuple[os.stat_result, Path]] = []
    for name in os.listdir(directory):
        with suppress(FileNotFoundError):  # another thread has renamed or removed it
            found.append(((directory / name).stat(), directory / name))
    size = 0
    for number, (status, path) in enumerate(sorted(found, key=lambda one: -one[0].st_mtime_ns)):
        size += status.st_size
        if number >= most or (number and size > most_bytes):
            path.unlink(missing_ok=True)


def _get_path(directory: Path, key: str) -> Path:
    return directory / f"{hashlib.sha256(key.encode()).hexdigest()}.json"


def _hash_call(call: dict[str, Any]) -> str:
    """The arguments may be long, so only their hash is stored."""
    return hashlib.sha256(json.dumps(call, sort_keys=True).encode()).hexdigest()
