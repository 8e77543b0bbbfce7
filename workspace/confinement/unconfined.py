"""No confinement, for a user on a machine of their own, who has asked for it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from workspace.confinement.base import Directory, DirectoryAccess, Launch, Name, ended_first, environment

_NO_HOME = "/nonexistent"


@dataclass(frozen=True)
class Unconfined:
    name: ClassVar[Name] = "none"
    counted_alone: ClassVar[bool] = False
    directories: ClassVar[DirectoryAccess] = None

    @contextmanager
    def launch(
        self, folder: Path, argv: Sequence[str], *, directory: Directory | None = None, readable: Sequence[str] = ()
    ) -> Iterator[Launch]:
        # Not the folder: Python and git run what they find at home, and nobody was asked about that.
        variables = environment(_NO_HOME, GIT_CEILING_DIRECTORIES=str(folder.parent))
        yield Launch(ended_first(argv), variables, str(folder))
