import secrets
import threading
import time

_lock = threading.Lock()
_last_ms = 0
_counter = 0


def new_id(prefix: str) -> str:
    """Returns `prefix_` and a UUIDv7 in hex (RFC 9562, section 5.7).

    The ids of one process sort in the order of their creation: the 12 bits after the time count within a millisecond.
    """
    global _last_ms, _counter
    with _lock:
        now_ms = time.time_ns() // 1_000_000
        if now_ms > _last_ms:
            _last_ms, _counter = now_ms, secrets.randbits(11)
        else:
            _counter += 1
            if _counter > 0xFFF:
                _last_ms, _counter = _last_ms + 1, 0
        milliseconds, counter = _last_ms, _counter
    value = milliseconds << 80 | 0x7 << 76 | counter << 64 | 0b10 << 62 | secrets.randbits(62)
    return f"{prefix}_{value:032x}"
