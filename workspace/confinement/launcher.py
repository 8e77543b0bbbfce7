"""Runs a command under a system call filter and, with a version above 0, Landlock.

This source is the script of a separate process (see `base.py`), which remains the command's parent, answers the calls
that the filter notifies, and kills everything that the command started. It runs in any Python from 3.9 and imports only
modules that load fast, because every command waits for it.
"""

from __future__ import annotations  # for Pythons before 3.10

import _socket as socket
import ctypes
import errno
import fcntl
import os
import resource
import select
import signal
import struct
import sys  # noqa: F401 - for the line that `base` adds
import time

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38
_SIGNALS = 1_000  # pending ones of all processes of the account
_KILL_SECONDS = 10
_NOT_STARTED = 125

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF, _OPENAT2 = 444, 445, 446, 437
_SECCOMP, _CAPSET, _CHMOD, _FCHMOD, _FCHMODAT2, _UTIMENSAT, _EPOLL_CTL, _SETPGID, _SETSID = {
    "x86_64": (317, 126, 90, 91, 452, 280, 233, 109, 112),
    "aarch64": (277, 91, -1, 52, 452, 88, 21, 154, 157),
}.get(os.uname().machine, (-1,) * 9)

_EXECUTE, _WRITE, _READ, _READ_DIRECTORY = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_DEVICES, _MAKE_SOCKET = 1 << 6 | 1 << 11, 1 << 9
_TRUNCATE, _DEVICE_CONTROL = 1 << 14, 1 << 15
_OF_A_FILE = _EXECUTE | _WRITE | _READ | _TRUNCATE | _DEVICE_CONTROL
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # how many rights of files a version of Landlock knows; later ones know 16
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_BIND_AND_CONNECT, _SOCKETS_AND_SIGNALS = 3, 3  # TCP, from version 4; abstract sockets and signals, from version 6

_NOTIFICATION = struct.Struct("=QIIiIQ6Q")  # id, pid, flags, number, architecture, instruction, arguments
_ANSWER = struct.Struct("=QqiI")  # id, value, error, flags
_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_CONTINUE = 1
_AT_FDCWD, _NO_FOLLOW = -100, 0x100
_BENEATH_WITHOUT_MAGIC = 0x08 | 0x02
_MAX_PATH_BYTES = 4096
_DIRECTORY_ITSELF = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def main(
    command: list[str],
    *,
    folder: str,
    filter_program: bytes,
    epoll_watches: int,
    landlock_version: int = 0,
    readable: tuple[str, ...] = (),
    temporary: str = "",
) -> int:
    """Returns the exit code; `temporary` is a directory in the folder that exists while the command runs."""
    _keep_descriptors()
    drop_capabilities()
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans become children of this process
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # or a command that shares the namespace could write to this memory
    for kind, most in ((resource.RLIMIT_SIGPENDING, _SIGNALS), (resource.RLIMIT_MSGQUEUE, 0)):
        resource.setrlimit(kind, (most, most))
    child = 0
    try:
        if temporary:
            _remove_temporary(temporary)  # left by a launcher that was killed, or written by an agent
            os.makedirs(os.environ["HOME"], 0o700)
            _write_whoami(f"{temporary}/bin")
        woken = _open_wakeup(signal.SIGCHLD, signal.SIGTERM)
        ours, theirs = socket.socketpair()
        program = _find_program(command[0])
        child = os.fork()
        if child == 0:
            try:
                _leave_launcher()
                check_call(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
                if landlock_version:
                    restrict_files(landlock_version, folder, readable)
                listener = install_filter(filter_program)
                theirs.sendmsg([b"f"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", listener))])
                os.execv(program, command)  # noqa: S606 - that is what it is for
            except OSError as error:
                os.write(2, f"the command was not started, because its sandbox could not be set up: {error}\n".encode())
            finally:
                os._exit(_NOT_STARTED)
        theirs.close()
        return _wait(child, woken, ours, NotifiedCalls(folder, epoll_watches))
    finally:
        _kill_all(child)
        if temporary:
            _remove_temporary(temporary)


def _write_whoami(directory: str) -> None:
    """Makes a program that replaces the one of the machine, whose file of users a command cannot read."""
    try:
        os.mkdir(directory, 0o700)
        program = os.open(f"{directory}/whoami", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
        try:
            os.write(program, b'#!/bin/sh\necho "$USER"\n')
        except OSError:  # the disk is full, or the folder: then files can only be removed
            os.unlink(f"{directory}/whoami")
        finally:
            os.close(program)
    except OSError:
        return


def _keep_descriptors() -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                os.set_inheritable(int(name), False)
            except OSError:  # the descriptor of the listing
                continue


def check_call(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def drop_capabilities() -> None:
    for capability in range(64):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _libc.syscall(_CAPSET, struct.pack("=Ii", 0x20080522, 0), bytes(24))


def restrict_files(version: int, folder: str, readable: tuple[str, ...]) -> None:
    known = (1 << _RIGHTS.get(version, 16)) - 1
    network, scopes = _BIND_AND_CONNECT if version >= 4 else 0, _SOCKETS_AND_SIGNALS if version >= 6 else 0
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = check_call(_libc.syscall(_CREATE_RULESET, struct.pack("=QQQ", known, network, scopes), size, 0))
    for path in readable:
        _allow(rules, path, known & (_EXECUTE | _READ | _READ_DIRECTORY))
    for path in _DEVICES:
        _allow(rules, path, known & (_READ | _WRITE | _TRUNCATE | _DEVICE_CONTROL))
    _allow(rules, folder, known & ~(_MAKE_DEVICES | _MAKE_SOCKET | _DEVICE_CONTROL))
    check_call(_libc.syscall(_RESTRICT_SELF, rules, 0))
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        directory = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not os.path.isdir(path):
        rights &= _OF_A_FILE
    check_call(_libc.syscall(_ADD_RULE, rules, 1, struct.pack("=Qi", rights, directory), 0))
    os.close(directory)


def install_filter(program: bytes) -> int:
    """Returns the descriptor that receives notified system calls."""
    code = ctypes.create_string_buffer(program)
    pointed = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    return check_call(_libc.syscall(_SECCOMP, 1, 1 << 3, pointed))


class NotifiedCalls:
    """Decides or makes system calls of the command, which waits for them.

    Landlock does not cover modes and times of files, which an account can change everywhere. The limit of epoll watches
    applies to the whole account, whose services would fail without any.
    """

    def __init__(self, folder: str, epoll_watches: int) -> None:
        self._folder = os.fsencode(folder)
        self._directory = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        self._epoll_watches = epoll_watches

    def answer(self, listener: int) -> None:
        """Reports every failure to the caller, because this process must outlive the command."""
        notification = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(listener, _RECEIVE, notification)
        except OSError:  # the caller is gone
            return
        identifier, pid, _, number, _, _, *arguments = _NOTIFICATION.unpack(notification)
        error = flags = 0
        try:
            if number == _EPOLL_CTL:
                flags = self._count_epoll_watch()
            elif number in (_SETPGID, _SETSID):
                flags = _CONTINUE
            else:
                self._change_file(listener, identifier, number, pid, arguments)
        except OSError as problem:
            error = errno.EPERM if problem.errno in (None, errno.EXDEV) else problem.errno
        except Exception:  # noqa: BLE001 - such as a pointer beyond what Python takes
            error = errno.EPERM
        try:
            fcntl.ioctl(listener, _SEND, _ANSWER.pack(identifier, 0, -error, flags))
        except OSError:
            return

    def _count_epoll_watch(self) -> int:
        """Removed watches are not given back."""
        if self._epoll_watches <= 0:
            raise OSError(errno.ENOSPC, "no watches left")
        self._epoll_watches -= 1
        return _CONTINUE

    def _change_file(self, listener: int, identifier: int, number: int, pid: int, arguments: list[int]) -> None:
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.ioctl(listener, _IS_VALID, struct.pack("=Q", identifier))  # the process is still the caller
            if number == _FCHMOD or (number == _UTIMENSAT and not arguments[1]):
                file = self._open_descriptor(pid, ctypes.c_int(arguments[0] & 0xFFFFFFFF).value)
            else:
                file = self._open_path(number, pid, memory, arguments)
            try:
                name = f"/proc/self/fd/{file}"
                if number == _UTIMENSAT:
                    times = os.pread(memory, 32, arguments[2]) if arguments[2] else None
                    check_call(_libc.utimensat(_AT_FDCWD, name.encode(), times, 0))
                else:
                    os.chmod(name, arguments[1 if number in (_CHMOD, _FCHMOD) else 2] & 0o777)
            finally:
                os.close(file)
        finally:
            os.close(memory)

    def _open_descriptor(self, pid: int, descriptor: int) -> int:
        file = os.open(f"/proc/{pid}/fd/{descriptor}", os.O_PATH | os.O_CLOEXEC)
        try:
            self._make_relative(os.readlink(f"/proc/self/fd/{file}".encode()))
        except OSError:
            os.close(file)
            raise
        return file

    def _open_path(self, number: int, pid: int, memory: int, arguments: list[int]) -> int:
        """The kernel resolves the path within the folder."""
        directory, address = _AT_FDCWD, arguments[0]
        if number != _CHMOD:
            directory, address = ctypes.c_int(arguments[0] & 0xFFFFFFFF).value, arguments[1]
        flags = arguments[3] if number in (_FCHMODAT2, _UTIMENSAT) else 0
        path = os.pread(memory, _MAX_PATH_BYTES, address).partition(b"\0")[0]
        if not path.startswith(b"/"):
            link = f"/proc/{pid}/cwd" if directory == _AT_FDCWD else f"/proc/{pid}/fd/{directory}"
            path = os.readlink(link.encode()) + (b"/" + path if path else b"")
        open_flags = os.O_PATH | os.O_CLOEXEC | (os.O_NOFOLLOW if flags & _NO_FOLLOW else 0)
        how = struct.pack("=QQQ", open_flags, 0, _BENEATH_WITHOUT_MAGIC)
        return check_call(_libc.syscall(_OPENAT2, self._directory, self._make_relative(path), how, len(how)))

    def _make_relative(self, path: bytes) -> bytes:
        if path != self._folder and not path.startswith(self._folder + b"/"):
            raise PermissionError(errno.EPERM, "outside of the folder")
        return path[len(self._folder) + 1 :] or b"."


def _open_wakeup(*signals: int) -> int:
    """Returns a descriptor from which the numbers of received signals can be read."""
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in signals:
        signal.signal(number, lambda *_: None)
    return woken


def _find_program(name: str) -> str:
    """Replaces `os.execvp`, which imports a module that may no longer be readable."""
    paths = [name] if "/" in name else [f"{directory}/{name}" for directory in os.environ["PATH"].split(":")]
    return next((path for path in paths if os.access(path, os.X_OK)), name)


def _leave_launcher() -> None:
    """Starts a session that ends with the launcher, with a lower priority for CPU and memory."""
    os.nice(10)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write("500")
    except OSError:
        return  # with namespaces, all processes have this score already


def _wait(child: int, woken: int, ours: socket.socket, calls: NotifiedCalls) -> int:
    """Waits for the command's end, SIGTERM, or the reader of its output to go away."""
    listener, poller = -1, select.poll()
    for descriptor, events in ((woken, select.POLLIN), (ours.fileno(), select.POLLIN), (1, 0)):
        poller.register(descriptor, events)
    while True:
        for descriptor, events in poller.poll():
            if descriptor == 1:
                return 128 + signal.SIGKILL
            if descriptor == woken and signal.SIGTERM in os.read(woken, 4096):
                return 128 + signal.SIGTERM
            if descriptor == ours.fileno():
                poller.unregister(descriptor)
                if (listener := _receive_listener(ours)) >= 0:
                    poller.register(listener, select.POLLIN)
            elif descriptor == listener and events & select.POLLIN:
                calls.answer(listener)
            elif descriptor == listener:
                poller.unregister(listener)  # no caller is left
        if (status := _reap(child)) is not None:
            return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _receive_listener(ours: socket.socket) -> int:
    """Returns -1 if the command could not be started."""
    _, control, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4))
    return struct.unpack("i", control[0][2][:4])[0] if control else -1


def _reap(child: int) -> int | None:
    """Returns the command's status once it has ended."""
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                return ended[1]
    except ChildProcessError:
        pass
    return None


def _kill_all(command: int) -> None:
    """Kills process groups, because no fork escapes a signal to its group.

    Processes that wait for an answer to `setpgid` or `setsid` stay in their groups, and orphans become children of this
    process.
    """
    deadline = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for group in _list_groups(command):
            try:
                os.killpg(group, signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.001)


def _list_groups(command: int) -> set[int]:
    """Returns the groups of the command's session and of all descendants, without this process's."""
    processes = _list_processes()
    groups = {processes[pid][1] for pid in list_descendants(os.getpid(), processes)}
    groups |= {group for _, group, session in processes.values() if session == command}
    return (groups | {command}) - {os.getpgrp(), 0}


def _list_processes() -> dict[int, tuple[int, int, int]]:
    processes: dict[int, tuple[int, int, int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent, group, session = map(int, file.read().rpartition(b")")[2].split()[1:4])
            except OSError:
                continue  # it has ended
            processes[int(name)] = parent, group, session
    return processes


def list_descendants(process: int, processes: dict[int, tuple[int, int, int]] | None = None) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, (parent, _, _) in (processes or _list_processes()).items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    look = [process]
    while look:
        look = [child for parent in look for child in children.get(parent, ())]
        found += look
    return found


def _empty_temporary(path: str) -> None:
    """Removes what every command has there. A command may have replaced any of it by a link, which is not followed."""
    temporary = os.open(path, _DIRECTORY_ITSELF)
    try:
        os.rmdir("home", dir_fd=temporary)
        programs = os.open("bin", _DIRECTORY_ITSELF, dir_fd=temporary)
        try:
            os.unlink("whoami", dir_fd=programs)
        finally:
            os.close(programs)
        os.rmdir("bin", dir_fd=temporary)
    finally:
        os.close(temporary)


def _remove_temporary(path: str) -> None:
    try:
        _empty_temporary(path)
        os.rmdir(path)
    except OSError:
        if os.path.isdir(path) and not os.path.islink(path):
            script = 'chmod -R u+rwx "$1" 2>/dev/null; rm -rf "$1" 2>/dev/null'
            os.spawnv(os.P_WAIT, "/bin/sh", ["sh", "-c", script, "sh", path])  # noqa: S606
        elif os.path.lexists(path):
            os.unlink(path)
