"""Rejects JSON that would be costly to parse, by looking at its bytes."""

MAX_VALUES = 1_000  # ten times what the largest request has; each value takes as much memory as a hundred letters
_MAX_DIGITS = 100  # of one number: the time to parse it grows with the square of its length
_DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"0" * 9)
_LONG_NUMBER = b"0" * (_MAX_DIGITS + 1)


def find_problem(body: bytes, max_values: int = MAX_VALUES) -> str | None:
    """Returns why a body must not be parsed, as a sentence; it does not check whether the body is JSON.

    Counts the values of all lists and objects; brackets, commas and digits within strings do not count. Takes a
    millisecond for 128 KiB.
    """
    if b"\0" in body:  # some parsers would read it as UTF-16, in which quotes are not found here
        return "The body must be JSON in UTF-8, but it has a NUL byte."
    if _count_values(body) <= max_values and _LONG_NUMBER not in body.translate(_DIGITS_TO_ZERO):
        return None
    unescaped = body.replace(rb"\\", b"").replace(rb"\"", b"")
    too_many = f"The body has more than {max_values:,} values. Send less at once."
    if unescaped.count(b'"') > 2 * 2 * max_values:  # a value is one string, or a name and a string
        return too_many
    outside_strings = b'"'.join(unescaped.split(b'"')[::2])
    if _count_values(outside_strings) > max_values:
        return too_many
    if _LONG_NUMBER in outside_strings.translate(_DIGITS_TO_ZERO):
        return f"The body has a number of more than {_MAX_DIGITS} digits. Send a shorter number."
    return None


def _count_values(json: bytes) -> int:
    """Each value but the outermost follows a bracket or a comma."""
    return json.count(b"[") + json.count(b"{") + json.count(b",")
