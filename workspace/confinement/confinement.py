"""What every confinement has in common: how a command is started in it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Protocol

Name = Literal["bubblewrap", "landlock", "sandbox-exec", "none"]
PATH = "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin"


@dataclass(frozen=True)
class Launch:
    """A process to be started: it becomes the command, or runs it and ends as it does."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: str = "/"
    descriptors: tuple[int, ...] = ()
    ends_all: bool = False
    """Whether it ends everything that the command has started before it ends itself, when asked by SIGTERM, too."""


class Confinement(Protocol):
    name: ClassVar[Name]
    counted_alone: ClassVar[bool]
    """Whether the kernel counts a command's processes apart from the account's others."""

    @contextmanager
    def launch(self, folder: Path, argv: Sequence[str]) -> Iterator[Launch]:
        """What runs `argv` with nothing but `folder`, an absolute path; start it within the block."""
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
