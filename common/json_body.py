"""What a JSON body would cost whoever parses it, told from its bytes before that."""

MOST_VALUES = 1_000  # ten times what the largest request of a client holds; each costs as much as a hundred letters
_MOST_DIGITS = 100  # of one number: reading and writing it takes the square of their number
_AS_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_LONG_NUMBER = b"0" * (_MOST_DIGITS + 1)


def problem(body: bytes, most: int = MOST_VALUES) -> str | None:
    """The sentence for a body that is not to be parsed; None for one that may be, though it may be no JSON.

    Texts may hold any number of brackets, commas and digits, and lists and objects `most` values in all. Takes a
    millisecond for 128 KiB, whatever they are.
    """
    if b"\0" in body:  # some parsers would read it as UTF-16, whose quotes are not found here
        return "The body must be JSON in UTF-8, but it has a NUL byte."
    if _values(body) <= most and _LONG_NUMBER not in body.translate(_AS_ZEROS):
        return None
    unescaped = body.replace(rb"\\", b"").replace(rb"\"", b"")
    too_many = f"The body has more than {most:,} values. Send less at once."
    if unescaped.count(b'"') > 2 * 2 * most:  # a value has one text, or a name and a text
        return too_many
    outside = b'"'.join(unescaped.split(b'"')[::2])
    if _values(outside) > most:
        return too_many
    if _LONG_NUMBER in outside.translate(_AS_ZEROS):
        return f"The body has a number of more than {_MOST_DIGITS} digits. Send a shorter number."
    return None


def _values(json: bytes) -> int:
    """Of lists, objects and what is in them, but for the first: each begins with a bracket or comes after a comma."""
    return json.count(b"[") + json.count(b"{") + json.count(b",")
