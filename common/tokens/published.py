"""What an identity provider publishes: the entries of its key set that can be used, and those that cannot."""

import json
from collections import Counter
from typing import Any

import jwt

ALGORITHMS = ("RS256", "ES256", "EdDSA")
MOST_ENTRIES = 100
_RSA_BITS = range(2048, 8192 + 1)
_LONGEST_NUMBER = 2_000  # characters of base64; a modulus of 8,192 bits has 1,366
_NUMBERS = ("n", "e", "x", "y")


class _Unusable(Exception):
    """Why an entry is left out, in a few words."""


def read(document: bytes) -> tuple[list[jwt.PyJWK], list[str]]:
    """The keys of a JWKS document that may check tokens, each for one algorithm, and what was left out and why.

    Entries for something else are no fault and are not named (RFC 7517, section 5). Raises ValueError, TypeError,
    KeyError or RecursionError for what is no key set.
    """
    entries = json.loads(document)["keys"]
    if not isinstance(entries, list):
        raise TypeError
    keys: dict[tuple[Any, ...], jwt.PyJWK] = {}
    left_out: list[str] = []
    for entry in entries[:MOST_ENTRIES]:
        try:
            if (key := _key(entry)) is not None:
                keys[key.key_id, key.algorithm_name, *map(entry.get, ("kty", "crv", *_NUMBERS))] = key
        except _Unusable as reason:
            left_out.append(f"{_named(entry)}: {reason}")
    if len(entries) > MOST_ENTRIES:
        left_out.append(f"all after the first {MOST_ENTRIES}")
    times = Counter((kid, key.algorithm_name) for key in keys.values() if (kid := key.key_id))
    left_out += [f"kid {_shown(kid)}: {number} different keys" for (kid, _), number in times.items() if number > 1]
    return [key for key in keys.values() if times[key.key_id or "", key.algorithm_name] <= 1], left_out


def _key(entry: Any) -> jwt.PyJWK | None:
    """The key of an entry, or None for one that is not for checking signatures."""
    if not isinstance(entry, dict):
        raise _Unusable("not an object")
    if entry.get("use", "sig") != "sig":
        return None
    if "key_ops" in entry and not (isinstance(entry["key_ops"], list) and "verify" in entry["key_ops"]):
        return None
    if "d" in entry:
        raise _Unusable("its private part is published")
    if any(len(entry[name]) > _LONGEST_NUMBER for name in _NUMBERS if isinstance(entry.get(name), str)):
        raise _Unusable("too long")
    try:
        key = jwt.PyJWK.from_dict(entry)
    except Exception as error:  # noqa: BLE001 - somebody else's entry: whatever libraries raise, the others are read
        raise _Unusable(type(error).__name__) from None
    if key.algorithm_name not in ALGORITHMS:
        raise _Unusable(f"not for {', '.join(ALGORITHMS)}")
    if key.algorithm_name == "RS256" and key.key.key_size not in _RSA_BITS:
        raise _Unusable(f"{key.key.key_size} bits")
    return key


def _named(entry: Any) -> str:
    kid = entry.get("kid") if isinstance(entry, dict) else None
    return f"kid {_shown(kid)}" if isinstance(kid, str) else "a key without kid"


def _shown(kid: str) -> str:
    """A stranger's text, fit for one line."""
    return ascii(kid[:40])
