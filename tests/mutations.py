"""Spoils requests that are valid."""

import copy
import random
from typing import Any

NAMES = ("extra", "type", "id", "user_id", "thread_id", "_meta")
ODD: list[Any] = [
    *(None, True, 0, -1, 2**63, 1e308, [], {}, [[]], {"a": {}}, "", " ", "\x00", "a" * 9_000),
    *("\ud800", "ⓤ🎉\u202e", "thr_0", "__proto__", "'; DROP TABLE tasks; --", "../../etc/passwd"),
]


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Returns the ways to every place in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, child in inner for found in paths(child, (*path, key)))]


def mutated(body: dict[str, Any], chance: random.Random) -> Any:
    """Returns the body with one to three places made odd, left out or put into a list, or something odd instead."""
    body = copy.deepcopy(body)
    for _ in range(chance.randint(1, 3)):
        path = chance.choice(paths(body))
        if not path:
            return copy.deepcopy(chance.choice([*ODD, [body]]))
        parent = body
        for key in path[:-1]:
            parent = parent[key]
        match chance.randrange(4):
            case 0:
                parent[path[-1]] = copy.deepcopy(chance.choice(ODD))
            case 1:
                del parent[path[-1]]
            case 2 if isinstance(parent, dict):
                parent[chance.choice(NAMES)] = copy.deepcopy(chance.choice(ODD))
            case _:
                parent[path[-1]] = [parent[path[-1]]]
    return body


def spoiled(text: bytes, chance: random.Random) -> bytes:
    """Now and then returns JSON that is none: some bytes are added, or the end is cut off."""
    if chance.random() > 0.1:
        return text
    position = chance.randrange(len(text) + 1)
    return text[:position] + chance.choice([chance.randbytes(3) + text[position:], b""])
