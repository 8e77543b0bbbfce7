"""What all sandboxes share: their description, readable directories, environment and launcher."""

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any, Literal

from workspace.confinement import system_calls

Name = Literal["bubblewrap", "landlock", "sandbox-exec", "none"]
PATH = "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin"
# Programs and their libraries.
PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Settings that programs read: a file that exists but cannot be opened makes many of them fail, such as pip.
_RELEASES = ("debian_version", "os-release", "lsb-release", "redhat-release", "centos-release", "fedora-release")
_RELEASES = (*_RELEASES, "system-release", "alpine-release", "arch-release", "SuSE-release", "gentoo-release")
_READ_BY_LIBRARIES = ("ld.so.cache", "localtime", "timezone", "nsswitch.conf", "host.conf", "gai.conf", "locale.alias")
_READ_BY_PROGRAMS = ("mime.types", "magic", "protocols", "services", "inputrc", "terminfo", "fonts", "papersize")
# Behind links in /usr are programs such as awk and files of Python and Java; Node.js reads that of OpenSSL.
_LINKED = ("alternatives", "ssl/openssl.cnf", *(f"python3.{minor}" for minor in range(9, 16)), "perl")
_JAVA = (*glob("/etc/java-*-openjdk/security"), *glob("/etc/java-*-openjdk/*.properties"))
SETTINGS = (*(f"/etc/{name}" for name in (*_RELEASES, *_READ_BY_LIBRARIES, *_READ_BY_PROGRAMS, *_LINKED)), *_JAVA)
USER = "todo-assistant"
_CHECKOUT = Path(__file__).parents[2]
# Read at import, because the account to which the service switches may be unable to read it.
_SOURCE = Path(__file__).with_name("launcher.py").read_text()
MAX_USER_WATCHES = Path("/proc/sys/fs/epoll/max_user_watches")
SHARE = 32  # of an account's watches: sixteen commands may run at once, and half is reserved


@dataclass(frozen=True)
class Launch:
    """A process to start, which becomes or runs the command and ends as it does."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: str = "/"
    descriptors: Sequence[int] = ()
    ends_descendants: bool = False
    """Whether it kills everything that the command started before it ends, also after SIGTERM."""


@dataclass(frozen=True)
class Directory:
    """An open directory of the user that replaces the folder of a command."""

    path: str
    descriptor: int
    is_writable: bool = False


@dataclass(frozen=True)
class Confinement:
    name: Name
    launch: Callable[[Path, Sequence[str], Directory | None], AbstractContextManager[Launch]]
    """Yields how to start a command within the block, with access only to the folder or the directory."""
    has_separate_count: bool = False
    """Whether the kernel counts a command's processes apart from others of the account."""
    directories: Literal["write", "read"] | None = None
    """What commands may do in a directory of the user without a risk for its `.git`."""


def prefer_kill(argv: Sequence[str]) -> list[str]:
    """Makes Linux end these processes before a service if memory runs out."""
    return ["sh", "-c", '{ echo 500 >/proc/self/oom_score_adj; } 2>/dev/null; exec "$@"', "sh", *argv]


def create_environment(home: str, **more: str) -> dict[str, str]:
    """Returns all variables of a command. Shells, Python and git run files of `home`, so it is empty."""
    return {
        "PATH": PATH,
        "HOME": home,
        "USER": USER,
        "LOGNAME": USER,
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONUNBUFFERED": "1",  # what was printed before a time limit is not lost
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_AUTHOR_NAME": USER,
        "GIT_AUTHOR_EMAIL": f"{USER}@localhost",
        "GIT_COMMITTER_NAME": USER,
        "GIT_COMMITTER_EMAIL": f"{USER}@localhost",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        **more,
    }


def find_problem(checkout: Path = _CHECKOUT) -> str | None:
    """Returns why neither bubblewrap nor Landlock can be used."""
    if _is_among_programs(checkout) and (checkout / "pyproject.toml").exists():  # it has settings and data
        return f"{checkout} is in a directory that commands may read: move it"
    return None if system_calls.IS_SUPPORTED else "this type of processor is not supported"


def check_folder(folder: Path) -> None:
    if _is_among_programs(folder):
        raise PermissionError(errno.EACCES, "WORKSPACE_DIR is in a directory that commands may read")


def _is_among_programs(path: Path) -> bool:
    return any(Path(os.path.realpath(path)).is_relative_to(os.path.realpath(directory)) for directory in PROGRAMS)


@contextmanager
def open_launcher(python: str, command: Sequence[str], **arguments: Any) -> Iterator[tuple[list[str], int]]:
    """Yields how to start the launcher within the block, and the descriptor from which Python reads its source."""
    arguments["epoll_watches"] = _read_epoll_watches()
    # A pipe takes only 8 KB while a command of the same account has used up the account's pipe buffers.
    script = os.memfd_create("launcher")
    try:
        with os.fdopen(os.dup(script), "w") as file:
            file.write(f"{_SOURCE}\nos._exit(main(sys.argv[1:], **{arguments!r}))\n")
        yield [python, "-I", "-S", f"/dev/fd/{script}", *command], script
    finally:
        os.close(script)


def find_system_python() -> str | None:
    return shutil.which("python3", path=PATH)


def find_private_python() -> str | None:
    """Returns the directory of this Python, or None if the system has one."""
    return None if find_system_python() else os.path.realpath(sys.base_prefix)


def _read_epoll_watches() -> int:
    try:
        return int(MAX_USER_WATCHES.read_text()) // SHARE
    except (OSError, ValueError):
        return 1_000
