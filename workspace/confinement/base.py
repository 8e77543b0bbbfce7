"""What every confinement has in common: how a command is started in it, by the launcher, and what it may read."""

import errno
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Protocol

Name = Literal["bubblewrap", "landlock", "sandbox-exec", "none"]
DirectoryAccess = Literal["write", "read"] | None
PATH = "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin"
# Programs and what they need to start, nothing that is anybody's.
PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Where libraries are, which program is meant by a name such as awk, and what Node.js does not start without where it
# exists and cannot be read.
SETTINGS = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl/openssl.cnf")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_CHECKOUT = Path(__file__).parents[2]
# Read once, because the account that the service becomes need not be able to read it.
_SOURCE = Path(__file__).with_name("launcher.py").read_text()
MAX_USER_WATCHES = Path("/proc/sys/fs/epoll/max_user_watches")
SHARE = 32  # of an account's watches: sixteen commands may run at once, and half is for everything else
_SIGNALS = 1_000  # that wait to be delivered, of all processes of the account


@dataclass(frozen=True)
class Launch:
    """A process to be started: it becomes the command, or runs it and ends as it does."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: str = "/"
    descriptors: tuple[int, ...] = ()
    ends_all: bool = False
    """Whether it ends everything that the command has started before it ends itself, when asked by SIGTERM, too."""


@dataclass(frozen=True)
class Directory:
    """An open directory of the user's in which a command works, instead of in its folder."""

    path: str
    descriptor: int
    is_writable: bool = False


class Confinement(Protocol):
    name: ClassVar[Name]
    counted_alone: ClassVar[bool]
    """Whether the kernel counts a command's processes apart from the account's others."""

    directories: ClassVar[DirectoryAccess]
    """What it lets commands do in a directory of the user's without risk for what git keeps there; None: nothing."""

    @contextmanager
    def launch(
        self, folder: Path, argv: Sequence[str], *, directory: Directory | None = None, readable: Sequence[str] = ()
    ) -> Iterator[Launch]:
        """What runs `argv` with nothing but `folder`, an absolute path; start it within the block.

        With a `directory` it works there, and reads the `readable` directories, too.
        """
        ...


def ended_first(argv: Sequence[str]) -> list[str]:
    """Where memory runs out, Linux ends one of these processes rather than a service."""
    return ["sh", "-c", '{ echo 500 >/proc/self/oom_score_adj; } 2>/dev/null; exec "$@"', "sh", *argv]


def environment(home: str, **more: str) -> dict[str, str]:
    """All environment variables of a command. Shells, Python and git run what they find in `home`: it is empty."""
    return {
        "PATH": PATH,
        "HOME": home,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONUNBUFFERED": "1",  # what was printed before a time limit is not lost
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_AUTHOR_NAME": "todo-assistant",
        "GIT_AUTHOR_EMAIL": "todo-assistant@localhost",
        "GIT_COMMITTER_NAME": "todo-assistant",
        "GIT_COMMITTER_EMAIL": "todo-assistant@localhost",
        "GIT_CONFIG_NOSYSTEM": "1",
        **more,
    }


def find_exposure(checkout: Path = _CHECKOUT) -> str | None:
    """Why programs must not be read here: what is configured, and what is stored, would be read with them."""
    exposed = _is_among_programs(checkout) and (checkout / "pyproject.toml").exists()
    return f"{checkout} is in a directory that commands may read: move it" if exposed else None


def check_folder(folder: Path) -> None:
    """Raises for a folder that all commands could read."""
    if _is_among_programs(folder):
        raise PermissionError(errno.EACCES, "WORKSPACE_DIR is in a directory that commands may read")


def _is_among_programs(path: Path) -> bool:
    return any(Path(os.path.realpath(path)).is_relative_to(os.path.realpath(directory)) for directory in PROGRAMS)


@contextmanager
def launcher_script(
    filter_program: bytes,
    *,
    folder: str,
    landlock_version: int = 0,
    readable: Sequence[str] = (),
    devices: Sequence[str] = (),
    temporary: str = "",
) -> Iterator[int]:
    """A descriptor to read the launcher's source from, for a Python that is started within the block."""
    arguments = {
        "folder": folder,
        "filter_program": filter_program,
        "landlock_version": landlock_version,
        "readable": [*readable],
        "devices": [*devices],
        "temporary": temporary,
        "epoll_watches": _epoll_watches(),
        "signals": _SIGNALS,
    }
    # Not a pipe, which takes 8 KB only while a command of the same account has used up the account's pipe buffers.
    script = os.memfd_create("launcher")
    try:
        with os.fdopen(os.dup(script), "w") as file:
            file.write(f"{_SOURCE}\nos._exit(main(sys.argv[1:], **{arguments!r}))\n")
        yield script
    finally:
        os.close(script)


def launcher_command(python: str, script: int, argv: Sequence[str]) -> list[str]:
    return [python, "-I", "-S", f"/dev/fd/{script}", *argv]


def system_python() -> str | None:
    return shutil.which("python3", path=PATH)


def own_python() -> Path | None:
    """The directory of this Python, if the system has none."""
    return None if system_python() else Path(os.path.realpath(sys.base_prefix))


def _epoll_watches() -> int:
    try:
        return int(MAX_USER_WATCHES.read_text()) // SHARE
    except (OSError, ValueError):
        return 1_000
