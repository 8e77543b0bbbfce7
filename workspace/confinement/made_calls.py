"""System calls of a command that are made for it: the mode and the times of files, within the folder only.

Landlock does not look at them, and everything of an account is that account's to change. Whoever calls waits meanwhile,
and what it had written in its memory is read once.
"""

import ctypes
import errno
import fcntl
import os
import struct

from workspace.confinement.restricting import called, libc

_OPENAT2 = 437
_CHMOD, _FCHMODAT2, _UTIMENSAT = {"x86_64": (90, 452, 280), "aarch64": (-1, 452, 88)}.get(os.uname().machine, (-1,) * 3)
_NOTIFIED = struct.Struct("=QIIiIQ6Q")  # id, pid, flags, number, architecture, instruction, arguments
_ANSWER = struct.Struct("=QqiI")  # id, value, error, flags
_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_AT_FDCWD, _NO_FOLLOW = -100, 0x100
_BENEATH_WITHOUT_MAGIC = 0x08 | 0x02
_LONGEST_PATH = 4096


def make(listener: int, place: int, folder: str) -> None:
    notified = bytearray(_NOTIFIED.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, notified)
        identifier, pid, _, number, _, _, *arguments = _NOTIFIED.unpack(notified)
        try:
            memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.ioctl(listener, _IS_VALID, struct.pack("=Q", identifier))  # it still is who called
                _change(number, memory, pid, place, folder, arguments)
                error = 0
            finally:
                os.close(memory)
        except OSError as problem:
            error = errno.EPERM if problem.errno in (None, errno.EXDEV) else problem.errno
        fcntl.ioctl(listener, _SEND, _ANSWER.pack(identifier, 0, -error, 0))
    except OSError:  # the caller is gone
        return


def _change(number: int, memory: int, pid: int, place: int, folder: str, arguments: list[int]) -> None:
    directory = _AT_FDCWD if number == _CHMOD else ctypes.c_int(arguments.pop(0) & 0xFFFFFFFF).value
    path = os.pread(memory, _LONGEST_PATH, arguments[0]).partition(b"\0")[0]
    flags = arguments[2] if number in (_FCHMODAT2, _UTIMENSAT) else 0
    if not path.startswith(b"/"):
        path = _directory(pid, directory) + (b"/" + path if path else b"")
    file = _opened(place, _within(path, folder), follow=not flags & _NO_FOLLOW)
    try:
        if number != _UTIMENSAT:
            os.chmod(f"/proc/self/fd/{file}", arguments[1] & 0o777)
        else:
            times = os.pread(memory, 32, arguments[1]) if arguments[1] else None
            called(libc.utimensat(_AT_FDCWD, f"/proc/self/fd/{file}".encode(), times, 0))
    finally:
        os.close(file)


def _directory(pid: int, directory: int) -> bytes:
    """What a path of the caller's is relative to."""
    link = f"/proc/{pid}/cwd" if directory == _AT_FDCWD else f"/proc/{pid}/fd/{directory}"
    return os.readlink(os.fsencode(link))


def _within(path: bytes, folder: str) -> bytes:
    """A path from the root as one from the folder; its names are looked up by the kernel, which keeps them within."""
    above = os.fsencode(folder)
    if path != above and not path.startswith(above + b"/"):
        raise PermissionError(errno.EPERM, "outside of the folder")
    return path[len(above) + 1 :] or b"."


def _opened(place: int, relative: bytes, *, follow: bool) -> int:
    flags = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    how = struct.pack("=QQQ", flags, 0, _BENEATH_WITHOUT_MAGIC)
    return called(libc.syscall(_OPENAT2, place, relative, how, len(how)))
