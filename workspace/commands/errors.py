class CommandError(Exception):
    """A refusal the caller can act on. The docstring of each is its sentence."""

    def __init__(self, **values: object) -> None:
        super().__init__(" ".join((self.__doc__ or "").split()).format(**values))


class NoConfinement(CommandError):
    """Commands cannot run, because this machine has no sandbox for them. Files can be read and written. To allow
    commands, the operator installs bubblewrap (apt-get install bubblewrap) and restarts the service."""


class ArgumentInvalid(CommandError):
    """{name} must be {rule}."""


class PathInvalid(CommandError):
    """path must be inside the folder: use a path relative to the folder, without ".."."""


class SearchFailed(CommandError):
    """The files could not be searched: {reason}."""


class CommitFailed(CommandError):
    """Nothing was committed: {reason}"""


class NotStarted(CommandError):
    """The command could not be started ({reason}). Try again in a moment."""


class FolderBusy(CommandError):
    """Another command has been running in this folder for {seconds} seconds. Wait until it ends, or stop it."""


class PersonBusy(CommandError):
    """{most} commands are already running, which is the limit. Wait until one ends, or stop one."""
