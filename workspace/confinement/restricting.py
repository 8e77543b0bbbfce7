"""What the command does to itself before it becomes the program it was asked to be (Linux only).

Nothing is imported that takes long: this is paid for by every command.
"""

import ctypes
import os
import struct

libc = ctypes.CDLL(None, use_errno=True)
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_SECCOMP, _CAPSET = {"x86_64": (317, 126), "aarch64": (277, 91)}.get(os.uname().machine, (-1, -1))

_EXECUTE, _WRITE, _READ, _READ_DIRECTORY = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_DEVICES, _MAKE_SOCKET = 1 << 6 | 1 << 11, 1 << 9
_TRUNCATE, _DEVICE_CONTROL = 1 << 14, 1 << 15
_OF_A_FILE = _EXECUTE | _WRITE | _READ | _TRUNCATE | _DEVICE_CONTROL
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""By version of Landlock, how many rights of files it knows; later ones know 16."""
_BIND_AND_CONNECT, _SOCKETS_AND_SIGNALS = 3, 3  # TCP, from version 4; abstract sockets and signals, from version 6


def called(result: int) -> int:
    """Raises what the call left in errno."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def drop_capabilities() -> None:
    """Root has some; nothing here needs them."""
    for capability in range(64):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    libc.syscall(_CAPSET, struct.pack("=Ii", 0x20080522, 0), bytes(24))


def restrict(version: int, folder: str, readable: list[str], devices: list[str]) -> None:
    """From here on files are what is named here, and nothing can be gained by a program that has more rights."""
    called(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    known = (1 << _RIGHTS.get(version, 16)) - 1
    network, scopes = _BIND_AND_CONNECT if version >= 4 else 0, _SOCKETS_AND_SIGNALS if version >= 6 else 0
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = called(libc.syscall(_CREATE_RULESET, struct.pack("=QQQ", known, network, scopes), size, 0))
    for path in readable:
        _allow(rules, path, known & (_EXECUTE | _READ | _READ_DIRECTORY))
    for path in devices:
        _allow(rules, path, known & (_READ | _WRITE | _TRUNCATE | _DEVICE_CONTROL))
    _allow(rules, folder, known & ~(_MAKE_DEVICES | _MAKE_SOCKET | _DEVICE_CONTROL))
    called(libc.syscall(_RESTRICT_SELF, rules, 0))
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not os.path.isdir(path):
        rights &= _OF_A_FILE
    called(libc.syscall(_ADD_RULE, rules, 1, struct.pack("=Qi", rights, place), 0))
    os.close(place)


def install_filter(program: bytes) -> int:
    """The descriptor at which system calls are handed over."""
    code = ctypes.create_string_buffer(program)
    pointed = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    return called(libc.syscall(_SECCOMP, 1, 1 << 3, pointed))
