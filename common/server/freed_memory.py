"""Gives freed memory back to the system.

glibc keeps free blocks between others that are in use. A process that serves large responses for minutes would have a
gigabyte of them, of which it needs nothing.
"""

import ctypes
import threading
import time
from collections.abc import Callable

_SECONDS = 10.0


def give_back_freed_memory(*, every_seconds: float = _SECONDS) -> None:
    """Starts a thread that does so for as long as the process runs, if its C library is glibc."""
    trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        threading.Thread(target=_trim_again_and_again, args=(trim, every_seconds), daemon=True).start()


def _trim_again_and_again(trim: Callable[[int], int], every_seconds: float) -> None:
    while True:
        time.sleep(every_seconds)
        trim(0)
