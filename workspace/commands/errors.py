class CommandError(Exception):
    """A refusal the caller can act on. The docstring of each is its sentence."""

    def __init__(self, **values: object) -> None:
        super().__init__(" ".join((self.__doc__ or "").split()).format(**values))


class NoConfinement(CommandError):
    """Commands cannot be run here, because this machine has nothing to confine them with: its operator installs
    bubblewrap (apt-get install bubblewrap) and starts the service again. Files can be read and written."""


class ArgumentInvalid(CommandError):
    """{name} must be {rule}."""


class PathInvalid(CommandError):
    """path must lie in the folder: write it relative to the folder, without .. in it."""


class SearchFailed(CommandError):
    """The files could not be searched: {reason}."""


class CommitFailed(CommandError):
    """Nothing was committed: {reason}"""


class NotStarted(CommandError):
    """The command could not be started ({reason}): try again in a moment."""


class FolderBusy(CommandError):
    """Another command has been running in this folder for {seconds} seconds: wait for it, or stop it."""


class PersonBusy(CommandError):
    """{most} commands are running already, which is the most at once: wait for one of them, or stop it."""
