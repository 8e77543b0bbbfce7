"""What is text, and how much of it a model is shown."""

import codecs
import mimetypes

MOST_LINES = 2_000
MOST_BYTES = 50_000
_LOOKED_AT = 8_192  # bytes at a file's beginning in which text has no NUL


def is_text(content: bytes) -> bool:
    """Whether a whole file is text."""
    if b"\0" in content[:_LOOKED_AT]:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def may_be_text(beginning: bytes) -> bool:
    """Whether a file that begins so can be text; its end may be in the middle of a character."""
    if b"\0" in beginning:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(beginning)
    except UnicodeDecodeError:
        return False
    return True


def type_of(name: str) -> str:
    """What a file is by its name."""
    return mimetypes.guess_type(name)[0] or "of unknown type"


def cut(text: str, most: int) -> str:
    """At most so many bytes of UTF-8, between two characters."""
    return text.encode()[:most].decode(errors="ignore")
