"""Ways out of a folder, tried from within it: `python3 attempts.py` reads what there is, and prints which led out.

It is copied into the folder, so it needs nothing but the standard library. Each way is tried in a process of its own.
"""

import ctypes
import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_NEW_NAMESPACE_OF_MOUNTS, _NEW_NAMESPACE_OF_USERS = 0x20000, 0x10000000
_CLONE, _KEYCTL, _PROCESS_VM_READV, _USERFAULTFD = {
    "x86_64": (56, 250, 310, 323),
    "aarch64": (220, 219, 270, 282),
}[os.uname().machine]
_CLONE3, _IO_URING_SETUP = 435, 425
_SECONDS = 2

Outside = dict[str, Any]
WAYS: dict[str, Callable[[Outside], object]] = {}
ROOT_ONLY = {"make a device", "change the program for crashes"}
"""What only root could do without a confinement."""
NOT_ROOT = {"slow everything of the account down"}
NAMESPACES = {"mount", "nested namespace by unshare", "nested namespace by clone", "nested namespace by clone3"}
"""What needs namespaces that this account may make, without a confinement."""


def way(name: str) -> Callable[[Callable[[Outside], object]], Callable[[Outside], object]]:
    """It leads out if it neither raises an OSError nor answers False."""

    def added(function: Callable[[Outside], object]) -> Callable[[Outside], object]:
        WAYS[name] = function
        return function

    return added


def _called(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _any_process(file: str, mark: str) -> bool:
    """Whether the mark is in this file of any process but one's own."""
    found = False
    for name in filter(str.isdigit, os.listdir("/proc")):
        if int(name) not in (os.getpid(), os.getppid()):
            try:
                found |= mark.encode() in Path("/proc", name, file).read_bytes()
            except OSError:
                continue
    return found


@way("read the accounts")
def _(_: Outside) -> object:
    return "root" in Path("/etc/passwd").read_text()


@way("read another folder")
def _(outside: Outside) -> object:
    return Path(outside["secret"]).read_text()


@way("list another folder")
def _(outside: Outside) -> object:
    return os.listdir(outside["folder"])


@way("list what is beside the folder")
def _(outside: Outside) -> object:
    return Path(outside["folder"]).name in os.listdir("..")


@way("write outside")
def _(outside: Outside) -> object:
    return Path(outside["folder"], "written").write_text("x")


@way("make a directory outside")
def _(outside: Outside) -> object:
    return Path(outside["folder"], "made").mkdir()


@way("rename a file outside")
def _(outside: Outside) -> object:
    return os.rename(outside["secret"], outside["secret"] + "2") or os.rename(
        outside["secret"] + "2", outside["secret"]
    )


@way("rename a file out of the folder")
def _(outside: Outside) -> object:
    Path("mine").touch()
    return os.rename("mine", Path(outside["folder"], "theirs"))


@way("remove a file outside")
def _(outside: Outside) -> object:
    return os.unlink(outside["spare"])


@way("empty a file outside")
def _(outside: Outside) -> object:
    return os.truncate(outside["secret"], 10)


@way("change the mode of a folder outside")
def _(outside: Outside) -> object:
    return os.chmod(outside["folder"], 0o700)


@way("change the mode of a file outside, from a directory")
def _(outside: Outside) -> object:
    directory = os.open(outside["folder"], os.O_PATH)
    return os.chmod("secret", 0o600, dir_fd=directory)


@way("change the mode of a file outside, by its descriptor")
def _(outside: Outside) -> object:
    file = os.open(outside["secret"], os.O_PATH)
    return os.chmod(f"/proc/self/fd/{file}", 0o600)


@way("change the mode of a file outside, by a link")
def _(outside: Outside) -> object:
    os.symlink(outside["secret"], "link to chmod")
    return os.chmod("link to chmod", 0o600)


@way("change the mode of a file outside, from above")
def _(outside: Outside) -> object:
    return os.chmod(os.path.join("..", Path(outside["folder"]).name, "secret"), 0o600)


@way("change the times of a file outside")
def _(outside: Outside) -> object:
    return os.utime(outside["secret"], (1, 1))


@way("give a file outside away")
def _(outside: Outside) -> object:
    return os.chown(outside["secret"], os.getuid(), os.getgid())


@way("read by a symbolic link")
def _(outside: Outside) -> object:
    os.symlink(outside["secret"], "symbolic")
    return Path("symbolic").read_text()


@way("read by a hard link")
def _(outside: Outside) -> object:
    os.link(outside["secret"], "hard")
    return Path("hard").read_text()


@way("watch a folder outside")
def _(outside: Outside) -> object:
    watch = _called(_libc.inotify_init())
    return _called(_libc.inotify_add_watch(watch, outside["folder"].encode(), 0xFFF))


@way("make a device")
def _(_: Outside) -> object:
    return os.mknod("device", 0o20600, os.makedev(1, 1))


@way("change the program for crashes")
def _(_: Outside) -> object:
    with open("/proc/sys/kernel/core_pattern", "r+"):  # opened only
        return True


@way("read the environment of processes")
def _(outside: Outside) -> object:
    return _any_process("environ", outside["mark"])


@way("read the command lines of processes")
def _(outside: Outside) -> object:
    return _any_process("cmdline", outside["mark"])


@way("read the memory of a process")
def _(outside: Outside) -> object:
    with open(f"/proc/{outside['process']}/mem", "rb"):
        return True


@way("read the memory of a process by its own call")
def _(outside: Outside) -> object:
    # Nowhere: a process that may be read answers EFAULT, one that may not EPERM.
    into = ctypes.create_string_buffer(8)
    ours = (ctypes.c_void_p * 2)(ctypes.addressof(into), 8)
    try:
        return _called(_libc.syscall(_PROCESS_VM_READV, outside["process"], ours, 1, (ctypes.c_void_p * 2)(0, 8), 1, 0))
    except OSError as error:
        if error.strerror == os.strerror(14):
            return True
        raise


@way("see the descriptors of a process")
def _(outside: Outside) -> object:
    return os.listdir(f"/proc/{outside['process']}/fd")


@way("signal a process")
def _(outside: Outside) -> object:
    return os.kill(outside["process"], signal.SIGCONT)


@way("signal a process by a descriptor")
def _(outside: Outside) -> object:
    """Whoever is outside sees whether it arrived."""
    ours, theirs = socket.socketpair()
    fcntl.fcntl(ours, fcntl.F_SETOWN, outside["victim"])
    fcntl.fcntl(ours, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC)
    return theirs.send(b"x")


@way("slow everything of the account down")
def _(_: Outside) -> object:
    """Whoever is outside sees whether it did."""
    if os.getuid() == 0:
        raise PermissionError("that would be everything of root's")
    return os.setpriority(os.PRIO_USER, 0, 19)


@way("limit a process")
def _(outside: Outside) -> object:
    return resource.prlimit(outside["process"], resource.RLIMIT_CORE, (0, 0))


@way("slow a process down")
def _(outside: Outside) -> object:
    return os.setpriority(os.PRIO_PROCESS, outside["process"], 19)


@way("schedule a process")
def _(outside: Outside) -> object:
    return os.sched_setaffinity(outside["process"], [0])


@way("trace a process")
def _(outside: Outside) -> object:
    _called(_libc.ptrace(16, outside["process"], None, None))
    os.waitpid(outside["process"], 0x40000000)
    return _called(_libc.ptrace(17, outside["process"], None, None)) == 0


@way("trace a process of one's own")
def _(_: Outside) -> object:
    return _called(_libc.ptrace(0, 0, None, None)) == 0


@way("remove what a process shares")
def _(outside: Outside) -> object:
    return _called(_libc.shmctl(outside["spare_shared"], 0, None)) == 0


@way("share memory with a process")
def _(outside: Outside) -> object:
    return _called(_libc.shmget(outside["shared"], 1, 0))


@way("connect by TCP")
def _(outside: Outside) -> object:
    with socket.create_connection(("127.0.0.1", outside["tcp"]), timeout=_SECONDS) as connection:
        return connection.recv(1)


@way("send by UDP")
def _(outside: Outside) -> object:
    with socket.socket(type=socket.SOCK_DGRAM) as connection:
        connection.settimeout(_SECONDS)
        connection.connect(("127.0.0.1", outside["udp"]))
        connection.send(b"x")
        return connection.recv(1)


@way("connect to a socket file")
def _(outside: Outside) -> object:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(outside["unix"])
        return connection.recv(1)


@way("send to a socket file from a pair of sockets")
def _(outside: Outside) -> object:
    ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    return ours.sendto(b"x", outside["datagrams"])


@way("connect to an abstract socket")
def _(outside: Outside) -> object:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0" + outside["abstract"])
        return connection.recv(1)


@way("ask the kernel by a socket")
def _(_: Outside) -> object:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW):
        return True


@way("mount")
def _(_: Outside) -> object:
    Path("mounted").mkdir()
    users = _NEW_NAMESPACE_OF_USERS if os.getuid() else 0
    _called(_libc.unshare(_NEW_NAMESPACE_OF_MOUNTS | users))
    private = 1 << 18 | 1 << 14
    _called(_libc.mount(None, b"/", None, private, None))
    return _called(_libc.mount(b"none", b"mounted", b"tmpfs", 0, None)) == 0


@way("nested namespace by unshare")
def _(_: Outside) -> object:
    return _called(_libc.unshare(_NEW_NAMESPACE_OF_USERS)) == 0


@way("nested namespace by clone")
def _(_: Outside) -> object:
    child = _called(_libc.syscall(_CLONE, _NEW_NAMESPACE_OF_USERS | signal.SIGCHLD, 0, 0, 0, 0))
    return child or os._exit(0)


@way("nested namespace by clone3")
def _(_: Outside) -> object:
    arguments = (ctypes.c_uint64 * 8)(_NEW_NAMESPACE_OF_USERS, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    child = _called(_libc.syscall(_CLONE3, arguments, ctypes.sizeof(arguments)))
    return child or os._exit(0)


@way("io_uring")
def _(_: Outside) -> object:
    return _called(_libc.syscall(_IO_URING_SETUP, 8, ctypes.create_string_buffer(120)))


@way("keys of the kernel")
def _(_: Outside) -> object:
    return _called(_libc.syscall(_KEYCTL, 0, -3, 1)) > 0


@way("faults handled by oneself")
def _(_: Outside) -> object:
    return _called(_libc.syscall(_USERFAULTFD, 1))


@way("another processor's system calls")
def _(_: Outside) -> object:
    # getpid by the 32-bit door of x86_64, whose numbers mean other calls: 20
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))() == os.getpid()


if os.uname().machine != "x86_64":
    del WAYS["another processor's system calls"]


def _leads_out(function: Callable[[Outside], object], outside: Outside) -> bool:
    child = os.fork()
    if child == 0:
        try:
            os._exit(function(outside) is False)
        except OSError:
            os._exit(1)
        finally:
            os._exit(2)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 1, -signal.SIGSYS), status
    return status == 0


if __name__ == "__main__":
    given = json.load(sys.stdin)
    print(json.dumps({name: _leads_out(function, given) for name, function in WAYS.items()}))  # noqa: T201
