import secrets
import time


def new_id(prefix: str) -> str:
    """Returns `prefix_` and a UUIDv7 in hex, whose time has a fraction of 12 bits (RFC 9562, section 6.2, method 3)."""
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    fraction = nanoseconds * 0x1000 // 1_000_000
    value = milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | secrets.randbits(62)
    return f"{prefix}_{value:032x}"
