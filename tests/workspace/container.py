"""What a container engine takes from a process by default, as far as it matters to a confinement."""

import ctypes
import struct

from workspace.confinement import call_filter
from workspace.confinement.launcher import check_call, drop_capabilities

_libc = ctypes.CDLL(None, use_errno=True)
_RETURN, _NOTIFY, _ALLOW = 0x06, 0x7FC00000, 0x7FFF0000
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38


def enter() -> None:
    """For this process: no new privileges, no capabilities, and a filter that allows neither namespaces nor mounts.

    The engine's own filter refuses more; that these are among it is what bubblewrap fails of.
    """
    check_call(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    drop_capabilities()
    program = call_filter.create_namespace_filter()
    # An engine has no launcher that answers.
    notify, allow = (struct.pack("=HBBI", _RETURN, 0, 0, value) for value in (_NOTIFY, _ALLOW))
    program = program.replace(notify, allow)
    code = ctypes.create_string_buffer(program)
    pointed = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    check_call(_libc.prctl(_PR_SET_SECCOMP, 2, pointed, 0, 0))
