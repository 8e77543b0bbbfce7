"""Runs a command under Landlock and a filter of system calls, and ends all that it has started when it ends.

It is run by `landlock.py` in a process of its own, and stays outside as the command's parent. Nothing is imported that
takes long: this is paid for by every command.
"""

import _socket as socket
import os
import select
import signal
import struct
import sys
import time

from workspace.confinement import made_calls
from workspace.confinement.restricting import drop_capabilities, install_filter, libc, restrict

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_KILL_SECONDS = 10
_NOT_STARTED = 125


def main() -> int:
    """Its arguments are a version of Landlock, a descriptor to read the filter from, the folder, what may be read,
    which devices there are, and the command."""
    version, calls, folder, readable, devices, *command = sys.argv[1:]
    drop_capabilities()
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what loses its parent becomes a child of this process
    temporary = os.environ["TMPDIR"]
    if not os.path.lexists(temporary):
        os.mkdir(temporary, 0o700)
    woken = _wake_for(signal.SIGCHLD, signal.SIGTERM)
    ours, theirs = socket.socketpair()
    program = _found(command[0])
    child = os.fork()
    if child == 0:
        try:
            _on_its_own()
            restrict(int(version), folder, readable.split(":"), devices.split(":"))
            listener = install_filter(os.read(int(calls), 1 << 16))
            theirs.sendmsg([b"f"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", listener))])
            os.execv(program, command)  # noqa: S606 - that is what it is for
        except OSError as error:
            os.write(2, f"the command was not started, because its sandbox could not be set up: {error}\n".encode())
        finally:
            os._exit(_NOT_STARTED)
    theirs.close()
    os.close(int(calls))
    status = _until_end(child, woken, ours, folder)
    _kill_all()
    _remove(temporary)
    return status


def _wake_for(*signals: int) -> int:
    """A descriptor from which the numbers of the signals that came can be read."""
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in signals:
        signal.signal(number, lambda *_: None)
    return woken


def _found(name: str) -> str:
    """Where the program is."""
    places = [name] if "/" in name else [f"{place}/{name}" for place in os.environ["PATH"].split(":")]
    return next((place for place in places if os.access(place, os.X_OK)), name)


def _on_its_own() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _until_end(child: int, woken: int, ours: socket.socket, folder: str) -> int:
    """Until the command ends, or this is to: by SIGTERM, or because nobody reads the output any more."""
    place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
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
                if (listener := _received(ours)) >= 0:
                    poller.register(listener, select.POLLIN)
            elif descriptor == listener and events & select.POLLIN:
                made_calls.make(listener, place, folder)
            elif descriptor == listener:
                poller.unregister(listener)  # nobody is left who could call
        if (status := _reaped(child)) is not None:
            return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _received(ours: socket.socket) -> int:
    """The descriptor that was sent; -1 where the command could not be started."""
    _, control, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4))
    return struct.unpack("i", control[0][2][:4])[0] if control else -1


def _reaped(child: int) -> int | None:
    """The command's status, if it has ended; what else has ended is forgotten."""
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                return ended[1]
    except ChildProcessError:
        pass
    return None


def _kill_all() -> None:
    """What has lost its parent to one round is this process's own child in the next one."""
    deadline = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in _descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.001)


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue  # it has ended
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    look = [os.getpid()]
    while look:
        look = [child for parent in look for child in children.get(parent, ())]
        found += look
    return found


def _remove(directory: str) -> None:
    try:
        os.rmdir(directory)
    except OSError:
        import shutil  # here: most commands leave nothing in it

        shutil.rmtree(directory, ignore_errors=True)
