"""What a container engine takes from a process by default, as far as it matters to a confinement."""

import ctypes
import struct

from workspace.confinement import call_filter
from workspace.confinement.restricting import called, drop_capabilities, libc

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38


def enter() -> None:
    """For this process: no new privileges, no capabilities, and a filter that allows neither namespaces nor mounts.

    The engine's own filter refuses more; that these are among it is what bubblewrap fails of.
    """
    called(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    drop_capabilities()
    program = call_filter.with_namespaces()
    assert program, "this type of processor is not supported"
    code = ctypes.create_string_buffer(program)
    pointed = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    called(libc.prctl(_PR_SET_SECCOMP, 2, pointed, 0, 0))
