"""What goes wrong in any room: errors that are told to the person."""


class BackendError(Exception):
    """An error whose docstring is the sentence for the person.

    `retry_seconds` is after how long it may go better, where that is known.
    """

    allow_retry = False
    retry_seconds: int | None = None

    def __str__(self) -> str:
        return super().__str__() or (type(self).__doc__ or "")


class InvalidRequest(BackendError):
    """This is not a valid ChatKit request."""


class NotFound(BackendError):
    """There is nothing with this id: it was deleted, or it never was yours."""


class LimitReached(BackendError):
    """You have reached a limit: wait a moment."""

    allow_retry = True
    retry_seconds = 5

    def __init__(self, *sentence: str, retry_seconds: int | None = None) -> None:
        super().__init__(*sentence)
        if retry_seconds is not None:
            self.retry_seconds = max(1, retry_seconds)


class Overloaded(BackendError):
    """As many answers are being written as there is room for: try again in a few seconds."""

    allow_retry = True
    retry_seconds = 5


class LeaseLost(BackendError):
    """This answer was taken over by another process and ended here."""

    allow_retry = True


class Busy(BackendError):
    """The assistant is still answering in this conversation: wait until it is done, or stop it where it began."""

    allow_retry = True
    retry_seconds = 1
