# ruff: noqa: E501 - a table with one row a line
"""The escape table: `python3 attempts.py` reads what there is outside, and prints which rows succeed.

It is copied into the folder, so it needs nothing but the standard library. A row is an expression that is evaluated in
a process of its own. It succeeds if it neither raises an OSError nor is False.
"""

import ctypes
import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_SECONDS = 10
OUT: dict[str, Any] = {}
"""What there is outside: see `outside.py`."""
CALLS: dict[str, int] = {}
"""The numbers of system calls on this processor."""


def called(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def call(name: str, *arguments: Any) -> int:
    return called(_libc.syscall(CALLS[name], *arguments))


def is_not_refused(name: str) -> bool:
    """Whether a system call came as far as to look at its arguments, which are invalid."""
    if name not in CALLS:
        return False
    invalid = [ctypes.c_long(-1)] * 6
    return _libc.syscall(CALLS[name], *invalid) >= 0 or ctypes.get_errno() not in (1, 38, 95)


def read(path: object) -> bytes:
    return Path(str(path)).read_bytes()


def open_to_write(path: object) -> int:
    return os.open(str(path), os.O_WRONLY)


def of_other_processes(file: str) -> bool:
    """Whether the mark is in this file of any process but one's own."""
    found = False
    for name in filter(str.isdigit, os.listdir("/proc")):
        if int(name) not in (os.getpid(), os.getppid()):
            try:
                found |= OUT["mark"].encode() in Path("/proc", name, file).read_bytes()
            except OSError:
                continue
    return found


def link_to(path: str) -> str:
    name = f"link{os.getpid()}"
    os.symlink(path, name)
    return name


def mine() -> str:
    name = f"mine{os.getpid()}"
    Path(name).touch()
    return name


def has_setuid(path: str) -> bool:
    return os.stat(path).st_mode & 0o6000 != 0


def change_mode(mode: int) -> bool:
    os.chmod(path := mine(), mode)
    return has_setuid(path)


def create(mode: int, *, flags: int = os.O_CREAT | os.O_EXCL | os.O_WRONLY) -> bool:
    descriptor = os.open(path := f"made{os.getpid()}" if flags & os.O_CREAT else ".", flags, mode)
    return has_setuid(f"/proc/self/fd/{descriptor}" if path == "." else path)


def make_node(mode: int) -> bool:
    os.mknod(path := f"made{os.getpid()}", mode)
    return has_setuid(path)


def memory_of_a_process() -> bool:
    """Nowhere: a process that may be read answers EFAULT, one that may not EPERM."""
    into = ctypes.create_string_buffer(8)
    ours = (ctypes.c_void_p * 2)(ctypes.addressof(into), 8)
    result = _libc.syscall(CALLS["process_vm_readv"], OUT["process"], ours, 1, (ctypes.c_void_p * 2)(0, 8), 1, 0)
    return result >= 0 or ctypes.get_errno() == 14


def signal_by_descriptor() -> int:
    """Whoever is outside sees whether it arrived."""
    ours, theirs = socket.socketpair()
    fcntl.fcntl(ours, fcntl.F_SETOWN, OUT["victim"])
    fcntl.fcntl(ours, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC)
    return theirs.send(b"x")


def trace(request: int) -> bool:
    called(_libc.ptrace(request, OUT["process"], None, None))
    os.waitpid(OUT["process"], 0x40000000)
    return called(_libc.ptrace(17, OUT["process"], None, None)) == 0


def exchange(family: int, kind: int, address: Any, *, data: bytes = b"") -> bytes:
    with socket.socket(family, kind) as connection:
        connection.settimeout(_SECONDS - 1)
        connection.connect(address)
        if data:
            connection.send(data)
        return connection.recv(1)


def make_socket(family: int, kind: int, protocol: int = 0) -> bool:
    socket.socket(family, kind, protocol).close()
    return True


def mount(kind: str) -> bool:
    """A file system in a namespace of one's own, so that nothing changes where it succeeds."""
    directory = Path(f"mounted{os.getpid()}")
    directory.mkdir()
    called(_libc.unshare(0x20000 | (0x10000000 if os.getuid() else 0)))
    called(_libc.mount(None, b"/", None, 1 << 18 | 1 << 14, None))
    if kind == "bind":
        return called(_libc.mount(OUT["folder"].encode(), bytes(directory), None, 4096, None)) == 0
    return called(_libc.mount(b"none", bytes(directory), kind.encode(), 0, None)) == 0


def clone(flags: int) -> bool:
    child = call("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)
    return True if child else os._exit(0)


def clone3(flags: int) -> bool:
    arguments = (ctypes.c_uint64 * 8)(flags, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    child = call("clone3", arguments, ctypes.sizeof(arguments))
    return True if child else os._exit(0)


def machine_code(code: bytes) -> int:
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()


def output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, timeout=_SECONDS, check=True, input="").stdout


def raised(kind: int) -> bool:
    _, hard = resource.getrlimit(kind)
    if hard == resource.RLIM_INFINITY:
        return True
    resource.setrlimit(kind, (hard + 1, hard + 1))
    return True


def many(make: Any, count: int) -> bool:
    made = [make() for _ in range(count)]
    return len(made) == count


def allocate(name: str, length: int, mode: int) -> bool:
    with open(name, "wb") as file:
        call("fallocate", file.fileno(), mode, ctypes.c_long(0), ctypes.c_long(length))
        return os.fstat(file.fileno()).st_blocks * 512 >= length


def watch(path: str) -> int:
    return called(_libc.inotify_add_watch(called(_libc.inotify_init()), path.encode(), 0xFFF))


def ioctl_file(request: int) -> bool:
    descriptor = os.open(OUT["readable"], os.O_RDONLY)
    fcntl.ioctl(descriptor, request, bytes(32))
    return True


def is_lower_score() -> bool:
    before = int(read("/proc/self/oom_score_adj"))
    Path("/proc/self/oom_score_adj").write_text(str(before - 1))
    return True


ALL, ROOT, USER, NAMESPACES, NOT_TRIED = "all", "root", "user", "namespaces", "not tried"
"""For whom a row succeeds without a confinement: it is tried there, too, unless it is not known or not harmless."""
ROWS: tuple[tuple[str, str, str], ...] = (
    # Programs that others would run as the account
    ("change a file's mode to setuid", "change_mode(0o4755)", ALL),
    ("change a file's mode to setuid and setgid", "change_mode(0o6755)", ALL),
    ("change an open file's mode to setuid", "os.fchmod(os.open('setuid', os.O_CREAT), 0o4755) or has_setuid('setuid')", ALL),
    ("create a file with setuid", "create(0o4755)", ALL),
    ("create a file without a name with setuid", "create(0o4755, flags=os.O_TMPFILE | os.O_WRONLY)", ALL),
    ("make a node with setuid", "make_node(0o100000 | 0o4755)", ALL),
    # Files that are not the folder's, read
    ("read the accounts", "b'root' in read('/etc/passwd')", ALL),
    ("read the password hashes", "read('/etc/shadow')", ROOT),
    ("read the host's name", "read('/etc/hostname')", NOT_TRIED),
    ("read another folder", "read(OUT['secret'])", ALL),
    ("read another folder, from above", "read(f\"../{Path(OUT['folder']).name}/secret\")", ALL),
    ("read another folder, from a program's directory", "read(f\"/usr/bin/../..{OUT['secret']}\")", ALL),
    ("read another folder, by the process's root", "read(f\"/proc/self/root{OUT['secret']}\")", ALL),
    ("read another folder, by the process's directory", "read(f\"/proc/self/cwd/../../..{OUT['secret']}\")", NOT_TRIED),
    ("read another folder, by its parent's root", "read(f\"/proc/{os.getppid()}/root{OUT['secret']}\")", ALL),
    ("read by a symbolic link", "read(link_to(OUT['secret']))", ALL),
    ("read by a symbolic link to a directory", "read(link_to(OUT['folder']) + '/secret')", ALL),
    ("read by a hard link", "os.link(OUT['secret'], 'hard') or read('hard')", ALL),
    ("read from a directory's descriptor", "os.open('secret', 0, dir_fd=os.open(OUT['folder'], os.O_PATH))", ALL),
    ("read by a path's descriptor", "read(f\"/proc/self/fd/{os.open(OUT['secret'], os.O_PATH)}\")", ALL),
    ("map another folder's file", "mmap.mmap(os.open(OUT['secret'], 0), 5, prot=mmap.PROT_READ)", ALL),
    ("run another folder's program", "output(OUT['program']) == 'ran\\n'", ALL),
    ("list another folder", "os.listdir(OUT['folder'])", ALL),
    ("list what is beside the folder", "Path(OUT['folder']).name in os.listdir('..')", ALL),
    ("list the machine's settings", "'shadow' in os.listdir('/etc')", ALL),
    ("list the home of root", "os.listdir('/root') and True", ROOT),
    ("list what services keep", "'lib' in os.listdir('/var')", ALL),
    ("list what runs", "os.listdir('/run') and True", ALL),
    ("list the kernel's objects", "os.listdir('/sys/kernel') and True", ALL),
    ("read what the kernel knows of itself", "read('/proc/kallsyms') and b'ffffffff' in read('/proc/kallsyms')", NOT_TRIED),
    ("read the machine's memory", "os.open('/dev/mem', 0)", NOT_TRIED),
    ("read the kernel's log", "os.open('/dev/kmsg', os.O_RDONLY | os.O_NONBLOCK)", NOT_TRIED),
    ("read a disk", "any(os.open(f'/dev/{name}', 0) for name in ('vda', 'sda', 'nvme0n1') if Path('/dev', name).exists())", NOT_TRIED),
    ("read files by the other ends of others' pipes", "os.listdir(f\"/proc/{OUT['process']}/fdinfo\")", ALL),
    ("watch a folder outside", "watch(OUT['folder'])", ALL),
    ("watch everything", "call('fanotify_init', 0, 0)", NOT_TRIED),
    ("get a handle of a file outside", "call('name_to_handle_at', -100, OUT['secret'].encode(), (ctypes.c_int * 40)(128), ctypes.byref(ctypes.c_int()), 0)", NOT_TRIED),
    # Files that are not the folder's, changed
    ("write outside", "Path(OUT['folder'], 'written').write_text('x')", ALL),
    ("append to a file outside", "os.open(OUT['secret'], os.O_WRONLY | os.O_APPEND)", ALL),
    ("empty a file outside", "os.truncate(OUT['spare3'], 10)", ALL),
    ("empty a file outside by opening it", "os.open(OUT['spare3'], os.O_WRONLY | os.O_TRUNC)", ALL),
    ("make a nameless file outside", "os.open(OUT['folder'], os.O_WRONLY | os.O_TMPFILE, 0o600)", ALL),
    ("make a directory outside", "Path(OUT['folder'], 'made').mkdir()", ALL),
    ("make a FIFO outside", "os.mkfifo(OUT['folder'] + '/fifo')", ALL),
    ("make a symbolic link outside", "os.symlink('/', OUT['folder'] + '/link')", ALL),
    ("make a hard link outside", "os.link(mine(), OUT['folder'] + '/hard')", ALL),
    ("make a socket outside", "socket.socket(socket.AF_UNIX).bind(OUT['folder'] + '/mine')", ALL),
    ("rename a file outside", "os.rename(OUT['spare2'], OUT['spare2'] + '-') or os.rename(OUT['spare2'] + '-', OUT['spare2'])", ALL),
    ("rename a file out of the folder", "os.rename(mine(), OUT['folder'] + '/theirs')", ALL),
    ("rename a file into the folder", "os.rename(OUT['spare4'], 'taken')", ALL),
    ("rename a directory into the folder", "os.rename(OUT['folder'] + '/directory', 'taken directory')", ALL),
    ("remove a file outside", "os.unlink(OUT['spare'])", ALL),
    ("remove a directory outside", "os.rmdir(OUT['folder'] + '/empty')", ALL),
    ("write among the programs", "os.open('/usr/bin/todo-attempt', os.O_WRONLY | os.O_CREAT)", NOT_TRIED),
    ("change a program", "open_to_write('/usr/bin/env')", NOT_TRIED),
    ("change the machine's settings", "open_to_write('/etc/passwd')", ROOT),
    ("write where everybody may", "os.open('/var/tmp', os.O_WRONLY | os.O_TMPFILE, 0o600)", ALL),
    ("write to what services print", "open_to_write(f\"/proc/{OUT['process']}/fd/1\")", NOT_TRIED),
    ("change the mode of a folder outside", "os.chmod(OUT['folder'], 0o700)", ALL),
    ("change the mode of a file outside, from a directory", "os.chmod('secret', 0o600, dir_fd=os.open(OUT['folder'], os.O_PATH))", ALL),
    ("change the mode of a file outside, by its descriptor", "os.chmod(f\"/proc/self/fd/{os.open(OUT['secret'], os.O_PATH)}\", 0o600)", ALL),
    ("change the mode of a file outside, by a link", "os.chmod(link_to(OUT['secret']), 0o600)", ALL),
    ("change the mode of a file outside, from above", "os.chmod(f\"../{Path(OUT['folder']).name}/secret\", 0o600)", ALL),
    ("change the mode of a program", "os.fchmod(os.open(OUT['readable'], 0), 0o755)", ALL),
    ("change the times of a file outside", "os.utime(OUT['secret'], (1, 1))", ALL),
    ("change the times of a program", "os.utime(os.open(OUT['readable'], 0), (1, 1))", ALL),
    ("give a file outside away", "os.chown(OUT['secret'], os.getuid(), os.getgid())", ALL),
    ("give a program away", "os.fchown(os.open(OUT['readable'], 0), os.getuid(), os.getgid())", ALL),
    ("give a file outside an attribute", "os.setxattr(OUT['secret'], 'user.x', b'x')", NOT_TRIED),
    ("give a program an attribute", "os.setxattr(os.open(OUT['readable'], 0), 'user.x', b'x')", NOT_TRIED),
    ("change the flags of a program", "ioctl_file(0x40086602)", NOT_TRIED),
    ("change the version of a program", "ioctl_file(0x40087602)", NOT_TRIED),
    ("change the project of a program", "ioctl_file(0x401C5820)", NOT_TRIED),
    ("take a lease of a program", "fcntl.fcntl(os.open(OUT['readable'], 0), 1024, 0) == 0", ALL),
    ("hear of changes of a directory", "fcntl.fcntl(os.open('/usr/bin', 0), 1026, 1) == 0", ALL),
    ("make a device", "os.mknod('device', 0o20600, os.makedev(1, 1))", ROOT),
    ("make a block device", "os.mknod('disk', 0o60600, os.makedev(8, 0))", ROOT),
    # Settings of the machine
    ("change the program for crashes", "os.open('/proc/sys/kernel/core_pattern', os.O_RDWR)", ROOT),
    ("change the machine's name", "open_to_write('/proc/sys/kernel/hostname')", ROOT),
    ("change the program for modules", "open_to_write('/proc/sys/kernel/modprobe')", NOT_TRIED),
    ("forward packets", "open_to_write('/proc/sys/net/ipv4/ip_forward')", ROOT),
    ("ask the kernel for an emergency", "open_to_write('/proc/sysrq-trigger')", NOT_TRIED),
    ("start a program by the kernel's events", "open_to_write('/sys/kernel/uevent_helper')", NOT_TRIED),
    ("change a control group", "any(open_to_write(path) for path in Path('/sys/fs/cgroup').glob('**/cgroup.procs'))", NOT_TRIED),
    ("map another user", "Path('/proc/self/uid_map').write_text('0 0 1')", NOT_TRIED),
    ("be ended later where memory runs out", "is_lower_score()", ROOT),
    # Other processes
    ("read the environment of processes", "of_other_processes('environ')", ALL),
    ("read the command lines of processes", "of_other_processes('cmdline')", ALL),
    ("read the memory of a process", "os.open(f\"/proc/{OUT['process']}/mem\", 0)", ALL),
    ("read the maps of a process", "read(f\"/proc/{OUT['process']}/maps\")", ALL),
    ("read the status of a process", "read(f\"/proc/{OUT['process']}/status\")", ALL),
    ("read where a process is", "os.readlink(f\"/proc/{OUT['process']}/cwd\")", ALL),
    ("read what a process runs", "os.readlink(f\"/proc/{OUT['process']}/exe\")", ALL),
    ("see the descriptors of a process", "os.listdir(f\"/proc/{OUT['process']}/fd\")", ALL),
    ("read the memory of a process by its own call", "memory_of_a_process()", ALL),
    ("take a descriptor of a process", "call('pidfd_getfd', os.pidfd_open(OUT['process']), 0, 0)", ALL),
    ("signal a process", "os.kill(OUT['process'], signal.SIGCONT)", ALL),
    ("signal a process's group", "os.killpg(OUT['bystander'], signal.SIGCONT)", ALL),
    ("signal a process's thread", "call('tgkill', OUT['process'], OUT['process'], signal.SIGCONT) == 0", ALL),
    ("signal any thread", "call('tkill', OUT['process'], signal.SIGCONT) == 0", ALL),
    ("signal a process by its descriptor", "signal.pidfd_send_signal(os.pidfd_open(OUT['process']), signal.SIGCONT)", ALL),
    ("signal a process by a descriptor's owner", "signal_by_descriptor()", ALL),
    ("slow everything of the account down", "False if os.getuid() == 0 else os.setpriority(os.PRIO_USER, 0, 19)", USER),
    ("slow a process down", "os.setpriority(os.PRIO_PROCESS, OUT['process'], 19)", ALL),
    ("limit a process", "resource.prlimit(OUT['process'], resource.RLIMIT_CORE, (0, 0))", ALL),
    ("schedule a process", "os.sched_setaffinity(OUT['process'], [0])", ALL),
    ("schedule a process for the time that is left", "os.sched_setscheduler(OUT['process'], os.SCHED_IDLE, os.sched_param(0))", ALL),
    ("schedule the disk for a process", "call('ioprio_set', 1, OUT['process'], 3 << 13) == 0", ALL),
    ("trace a process", "trace(16)", ALL),
    ("trace a process of one's own", "called(_libc.ptrace(0, 0, None, None)) == 0", ALL),
    ("compare what processes have", "call('kcmp', OUT['process'], os.getpid(), 0, 0, 0) >= 0", NOT_TRIED),
    ("count what a process does", "call('perf_event_open', (ctypes.c_uint32 * 30)(1, 120), OUT['process'], -1, -1, 0)", NOT_TRIED),
    ("share memory with a process", "called(_libc.shmget(OUT['shared'], 1, 0))", ALL),
    ("remove what a process shares", "called(_libc.shmctl(OUT['spare_shared'], 0, None)) == 0", ALL),
    ("send a message to a queue", "called(_libc.msgget(OUT['queue'], 0))", ALL),
    ("share a semaphore", "called(_libc.semget(OUT['semaphore'], 1, 0))", ALL),
    ("make a named queue of messages", "called(_libc.mq_open(b'/todo-attempt', 0o100 | 2, 0o600, None))", NOT_TRIED),
    ("read keys of the kernel", "call('keyctl', 0, -3, 1) > 0", ALL),
    ("store a key in the kernel", "call('add_key', b'user', b'todo', b'x', 1, -3) > 0", NOT_TRIED),
    # Network
    ("connect by TCP", "exchange(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', OUT['tcp']))", ALL),
    ("connect by TCP and IPv6", "exchange(socket.AF_INET6, socket.SOCK_STREAM, (f'::ffff:127.0.0.1', OUT['tcp']))", ALL),
    ("send by UDP", "exchange(socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', OUT['udp']), data=b'x')", ALL),
    ("connect to the provider's metadata", "exchange(socket.AF_INET, socket.SOCK_STREAM, ('169.254.169.254', 80), data=b'GET / HTTP/1.0\\r\\n\\r\\n')", NOT_TRIED),
    ("connect to the internet", "exchange(socket.AF_INET, socket.SOCK_STREAM, ('1.1.1.1', 53), data=b'x')", NOT_TRIED),
    ("connect to a socket file", "exchange(socket.AF_UNIX, socket.SOCK_STREAM, OUT['unix'])", ALL),
    ("connect to a socket file by a link", "exchange(socket.AF_UNIX, socket.SOCK_STREAM, link_to(OUT['unix']))", ALL),
    ("send to a socket file from a pair of sockets", "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', OUT['datagrams'])", ALL),
    ("connect to an abstract socket", "exchange(socket.AF_UNIX, socket.SOCK_STREAM, '\\0' + OUT['abstract'])", ALL),
    ("ask the kernel by netlink", "make_socket(socket.AF_NETLINK, socket.SOCK_RAW)", ALL),
    ("hear all packets", "make_socket(socket.AF_PACKET, socket.SOCK_RAW, 768)", ROOT),
    ("send raw packets", "make_socket(socket.AF_INET, socket.SOCK_RAW, 1)", ROOT),
    ("speak to the hypervisor", "make_socket(40, socket.SOCK_STREAM)", NOT_TRIED),
    ("use the kernel's ciphers", "make_socket(38, socket.SOCK_SEQPACKET)", NOT_TRIED),
    ("speak by Bluetooth", "make_socket(31, socket.SOCK_RAW)", NOT_TRIED),
    ("speak by CAN", "make_socket(29, socket.SOCK_RAW, 1)", NOT_TRIED),
    ("make a network device", "os.open('/dev/net/tun', os.O_RDWR)", NOT_TRIED),
    # Namespaces and mounts
    *(
        (f"new namespace by unshare: {name}", f"called(_libc.unshare({flag:#x})) == 0", condition)
        for name, flag, condition in (
            *(("mounts", 0x20000, ROOT), ("host names", 0x4000000, ROOT), ("IPC", 0x8000000, ROOT)),
            *(("users", 0x10000000, NAMESPACES), ("processes", 0x20000000, ROOT), ("network", 0x40000000, ROOT)),
            *(("control groups", 0x2000000, ROOT), ("time", 0x80, ROOT), ("users and mounts", 0x10020000, NAMESPACES)),
        )
    ),
    *(
        (f"new namespace by {call}: {name}", f"{call}({flag:#x})", condition)
        for call in ("clone", "clone3")
        for name, flag, condition in (("users", 0x10000000, NAMESPACES), ("mounts", 0x20000, ROOT), ("IPC", 0x8000000, ROOT))
    ),
    *((f"mount: {kind}", f"mount({kind!r})", NAMESPACES) for kind in ("tmpfs", "bind")),
    ("mount: proc", "mount('proc')", NOT_TRIED),
    ("enter the namespaces of a process", "call('setns', os.pidfd_open(OUT['process']), 0x8000000) == 0", ROOT),
    ("enter a namespace by its file", "call('setns', os.open(f\"/proc/{OUT['process']}/ns/uts\", 0), 0) == 0", ROOT),
    ("change the root", "called(_libc.chroot(b'.')) == 0", ROOT),
    ("unmount the processes", "called(_libc.umount2(b'/proc', 0)) == 0", NOT_TRIED),
    ("copy the tree of mounts", "call('open_tree', -100, b'/', 1)", ROOT),
    ("open a file system", "call('fsopen', b'tmpfs', 0)", ROOT),
    # Rights
    ("become somebody else", "os.setresuid(60_999, 60_999, 60_999)", ROOT),
    ("join other groups", "os.setgroups([60_999])", ROOT),
    ("have a program with more rights", "'NoNewPrivs:\\t0' in read('/proc/self/status').decode()", NOT_TRIED),
    ("have a capability", "'CapEff:\\t0000000000000000' not in read('/proc/self/status').decode()", NOT_TRIED),
    ("have a capability to gain", "'CapBnd:\\t0000000000000000' not in read('/proc/self/status').decode() and OUT['capabilities']", NOT_TRIED),
    ("raise a capability", "called(_libc.prctl(47, 2, 21, 0, 0)) == 0", NOT_TRIED),
    ("give up the promise of no more rights", "called(_libc.prctl(38, 0, 0, 0, 0)) == 0", NOT_TRIED),
    ("turn the filter of system calls off", "called(_libc.prctl(22, 0, 0, 0, 0)) == 0", NOT_TRIED),
    ("run a command as root by su", "output('su', '-c', 'id -u') and os.getuid() != 0", NOT_TRIED),
    # The processor's other ways into the kernel, and what kernels were most often broken by
    ("a system call of 32 bits", "machine_code(bytes.fromhex('b814000000cd80c3')) == os.getpid()", "x86_64"),
    ("a system call of x32", "called(_libc.syscall(0x40000000 | 39)) == os.getpid()", NOT_TRIED),
    ("io_uring", "call('io_uring_setup', 8, ctypes.create_string_buffer(120))", NOT_TRIED),
    ("faults handled by oneself", "call('userfaultfd', 1)", ALL),
    ("a program for the kernel", "call('bpf', 0, ctypes.create_string_buffer(b'\\x01\\0\\0\\0\\4\\0\\0\\0\\4\\0\\0\\0\\1', 120), 120)", NOT_TRIED),
    ("a virtual machine", "os.open('/dev/kvm', os.O_RDWR)", NOT_TRIED),
    ("a file system of one's own", "os.open('/dev/fuse', os.O_RDWR)", NOT_TRIED),
    ("a loop device", "os.open('/dev/loop-control', os.O_RDWR)", NOT_TRIED),
    ("type into the terminal", "fcntl.ioctl(0, 0x5412, b'x') == 0", NOT_TRIED),
    # What a machine or an account has a fixed number of
    *(
        (f"raise the limit of {name}", f"raised(resource.{kind})", NOT_TRIED)
        for name, kind in (
            *(("open files", "RLIMIT_NOFILE"), ("a file's size", "RLIMIT_FSIZE"), ("data", "RLIMIT_DATA")),
            *(("waiting signals", "RLIMIT_SIGPENDING"), ("queues", "RLIMIT_MSGQUEUE"), ("processor time", "RLIMIT_CPU")),
        )
    ),
    ("open many files", "many(lambda: os.open('/dev/null', 0), 300)", NOT_TRIED),
    ("start asynchronous reading", "call('io_setup', 10, ctypes.byref(ctypes.c_ulong())) == 0", ALL),
    ("be told of changes", "called(_libc.inotify_init())", ALL),
    ("make two thousand timers", "many(lambda: called(_libc.timer_create(0, None, ctypes.byref(ctypes.c_void_p()))), 2_000)", ALL),
    ("run before everything else", "os.nice(-10)", ROOT),
    ("run in real time", "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))", ROOT),
    ("lock much memory", "called(_libc.mlockall(3)) == 0 and bytes(100 << 20) and True", ROOT),
    ("write a long file", "os.posix_fallocate(os.open('long', os.O_WRONLY | os.O_CREAT), 0, 210 << 20) or os.unlink('long')", NOT_TRIED),
    ("allocate beyond the end", "allocate('beyond', 1 << 20, 1)", ALL),
    ("allocate at once", "allocate('at once', 1 << 20, 0)", ALL),
)  # fmt: skip
WORKS: tuple[tuple[str, str], ...] = (
    ("change the mode of a file", "os.chmod(mine(), 0o640)"),
    ("change the mode of an open file", "os.fchmod(os.open(mine(), 0), 0o640)"),
    ("make a directory and a file", "os.mkdir('directory', 0o755) or os.open('directory/file', os.O_CREAT, 0o600)"),
    ("change the times of a file", "os.utime(mine(), (1, 1))"),
    ("change the times of an open file", "os.utime(os.open(mine(), 0), (1, 1))"),
    ("change the times of a link itself", "os.utime(link_to('x'), (1, 1), follow_symlinks=False)"),
    ("make a link in the folder", "os.link(mine(), 'second name')"),
    ("rename in the folder", "os.rename(mine(), 'renamed')"),
    ("run a program", "output('sh', '-c', 'echo ran') == 'ran\\n'"),
    ("have a pair of sockets", "many(socket.socketpair, 2)"),
    ("wait by epoll", "__import__('select').epoll().register(os.pipe()[0]) is None"),
    ("free blocks", "call('fallocate', os.open(mine(), os.O_WRONLY), 3, ctypes.c_long(0), ctypes.c_long(4096)) == 0"),
    ("end one's own child", "os.kill(subprocess.Popen(['sleep', '9']).pid, 9)"),
)


def succeeds(code: str) -> bool:
    child = os.fork()
    if child == 0:
        signal.alarm(_SECONDS)
        try:
            os._exit(eval(code) is False)
        except (OSError, ValueError, subprocess.SubprocessError, MemoryError, KeyError):
            os._exit(1)
        finally:
            os._exit(2)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 1, -signal.SIGSYS, -signal.SIGALRM, -signal.SIGXFSZ), f"{code}: {status}"
    return status == 0


if __name__ == "__main__":
    given = json.load(sys.stdin)
    OUT.update(given["outside"])
    CALLS.update(given["calls"])
    print(json.dumps([name for name, code in given["rows"] if succeeds(code)]))  # noqa: T201
