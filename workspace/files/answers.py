"""What was answered to calls that change something, so that one that is sent again is not made again."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from workspace.files.folder import Answer
from workspace.refusals import KeyUsedOtherwise

_MOST = 200  # of a folder
_MOST_BYTES = 20_000_000  # of a folder, whose commands may have written much each


def find(answers: Path, key: str, asked: dict[str, Any]) -> Answer | None:
    """What this call was answered before; raises `KeyUsedOtherwise` where another one was."""
    try:
        kept = json.loads(_file(answers, key).read_text())
    except FileNotFoundError:
        return None
    if kept["asked"] != _hash(asked):
        raise KeyUsedOtherwise
    return Answer(kept["text"], kept["details"])


def keep(answers: Path, key: str, asked: dict[str, Any], answer: Answer) -> None:
    file = _file(answers, key)
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps({"asked": _hash(asked), "text": answer.text, "details": answer.details}))
    fresh.replace(file)
    _drop_oldest(answers)


def _drop_oldest(answers: Path) -> None:
    found = sorted(((entry.stat(), entry.path) for entry in os.scandir(answers)), key=lambda one: -one[0].st_mtime_ns)
    size = 0
    for place, (status, path) in enumerate(found):
        size += status.st_size
        if place >= _MOST or (place and size > _MOST_BYTES):
            os.unlink(path)


def _file(answers: Path, key: str) -> Path:
    return answers / f"{hashlib.sha256(key.encode()).hexdigest()}.json"


def _hash(asked: dict[str, Any]) -> str:
    """Of the arguments, which may be long and stand in the folder already."""
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
