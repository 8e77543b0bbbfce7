"""The system call filter of commands, as a program for the kernel (seccomp, classic BPF).

It lists rejected calls, which fail with EPERM, and allows all others.
"""

import errno
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from workspace.confinement import system_calls as calls

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _NOTIFY, _KILL = 0x7FFF0000, 0x00050000, 0x7FC00000, 0x80000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000  # the x32 ABI has other numbers for the same calls

_UNIX, _INET, _INET6 = 1, 2, 10
_STREAM, _DATAGRAM, _PACKETS = 1, 2, 5  # types of sockets
_OPTIONS = (0, 0x800, 0x80000, 0x80800)  # SOCK_NONBLOCK and SOCK_CLOEXEC
_SETUID, _SETGID = 0o4000, 0o2000
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
Instruction = tuple[int, int, int, int]
_REJECT = ((_RETURN, 0, 0, _ERRNO | errno.EPERM),)


def create_namespace_filter(*, has_directory: bool = False) -> bytes:
    """A directory of the user may have sockets of other programs, so there only socket pairs are allowed."""
    more: list[Instruction] = []
    for numbers, mode in calls.CHANGE_MODE.values():
        more += _match_calls([numbers], _reject_setuid(mode))
    return _assemble((_INET, _INET6) if has_directory else (_UNIX, _INET, _INET6), more)


def create_landlock_filter(abi: int) -> bytes:
    """Rejects what the version `abi` of Landlock does not cover."""
    changes_mode = [numbers for numbers, _ in calls.CHANGE_MODE.values()]
    more = [
        *_match_calls([*changes_mode, calls.CHANGE_TIMES, *calls.CHANGE_GROUP.values()], [(_RETURN, 0, 0, _NOTIFY)]),
        *_match_calls(calls.REJECTED_WITHOUT_NAMESPACES.values(), _REJECT),
        *_match_calls(calls.EXTENDED_ATTRIBUTES.values(), [(_RETURN, 0, 0, _ERRNO | errno.EOPNOTSUPP)]),
    ]
    for numbers, allowed in calls.ONLY_OF_ONESELF.values():
        more += _match_calls([numbers], _allow_values(allowed))
    if abi < 3:
        more += _match_calls([calls.TRUNCATE], _REJECT)
    of_descriptor = calls.CHANGE_FILE_BY_IOCTL
    if abi < 6:
        more += _match_calls([calls.KILL], _allow_values({0: (0,)}))
        more += _match_calls([calls.FCNTL], _reject_values(1, calls.LEASE_OR_WATCH + calls.SIGNAL_BY_DESCRIPTOR))
        more += _match_calls(calls.SIGNALS.values(), _REJECT)
        of_descriptor += calls.OWNER_OF_DESCRIPTOR
    more += _match_calls([calls.IOCTL], _reject_values(1, of_descriptor))
    return _assemble((), more)


def _assemble(sockets: tuple[int, ...], more: Iterable[Instruction]) -> bytes:
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, calls.AUDIT_ARCHITECTURE),
        (_RETURN, 0, 0, _KILL),  # on another processor, numbers mean other calls
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        *_REJECT,
        *more,
        *_match_calls(calls.REJECTED.values(), _REJECT),
    ]
    for numbers, mode, flags in calls.CREATE_FILE.values():
        program += _match_calls([numbers], _reject_setuid(mode, flags))
    # A filter cannot read the mode and the flags of these, which are in memory. Programs then use openat and clone.
    program += _match_calls([calls.OPENAT2, calls.CLONE3], [(_RETURN, 0, 0, _ERRNO | errno.ENOSYS)])
    program += _match_calls([calls.FCNTL], _reject_values(1, calls.LEASE_OR_WATCH))
    program += _match_calls([calls.SOCKET], _allow_values({0: sockets}))
    # Each end of a pair for datagrams can send to any socket.
    pairs = (_STREAM, _DATAGRAM, _PACKETS) if _UNIX in sockets else (_STREAM, _PACKETS)
    kinds = tuple(kind | option for kind in pairs for option in _OPTIONS)
    program += _match_calls([calls.SOCKETPAIR], _allow_values({0: (_UNIX,), 1: kinds}))
    flags = [(_LOAD, 0, 0, _get_offset(0)), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), *_REJECT]
    program += _match_calls([calls.CLONE], [*flags, (_RETURN, 0, 0, _ALLOW)])
    # The launcher counts added watches.
    added = [(_LOAD, 0, 0, _get_offset(1)), (_EQUAL, 0, 1, calls.EPOLL_CTL_ADD), (_RETURN, 0, 0, _NOTIFY)]
    program += _match_calls([calls.EPOLL_CTL], [*added, (_RETURN, 0, 0, _ALLOW)])
    # The file size limit does not cover blocks beyond a file's end. Programs write zeros if this is not supported.
    program += _match_calls([calls.FALLOCATE], _allow_values({1: (calls.PUNCH_HOLE,)}, errno.EOPNOTSUPP))
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _match_calls(of: Iterable[calls.Numbers], then: Sequence[Instruction]) -> Iterator[Instruction]:
    """`then` must return in any case, because it may have loaded another value than the number."""
    for numbers in of:
        if (number := calls.get_number(numbers)) is not None:
            yield _EQUAL, 0, len(then), number
            yield from then


def _allow_values(allowed: Mapping[int, tuple[int, ...]], error: int = errno.EPERM) -> list[Instruction]:
    """Allows a call whose arguments have these values; the kernel reads 32 bits of each."""
    program: list[Instruction] = []
    for argument, values in allowed.items():
        tests = [(_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
        program += [(_LOAD, 0, 0, _get_offset(argument)), *tests, (_RETURN, 0, 0, _ERRNO | error)]
    return [*program, (_RETURN, 0, 0, _ALLOW)]


def _reject_values(argument: int, values: tuple[int, ...]) -> list[Instruction]:
    tests = [(_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
    return [(_LOAD, 0, 0, _get_offset(argument)), *tests, (_RETURN, 0, 0, _ALLOW), *_REJECT]


def _reject_setuid(mode: int, flags: int | None = None) -> list[Instruction]:
    """Rejects a mode with setuid or setgid; with `flags`, only if these create a file."""
    reject = [(_LOAD, 0, 0, _get_offset(mode)), (_ANY_BIT, 0, 1, _SETUID | _SETGID), *_REJECT]
    if flags is not None:
        reject = [(_LOAD, 0, 0, _get_offset(flags)), (_ANY_BIT, 0, len(reject), calls.CREATES), *reject]
    return [*reject, (_RETURN, 0, 0, _ALLOW)]


def _get_offset(argument: int) -> int:
    return _ARGUMENTS + 8 * argument + (0 if sys.byteorder == "little" else 4)
