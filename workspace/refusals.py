"""What is refused, each with its sentence: none changes anything."""

import errno
import logging

from service.tool_server.refusals import Refusal, internal_error

log = logging.getLogger(__name__)


class Refused(Refusal):
    """{sentence}"""


class NotThere(Refusal):
    """There is no {path} in this folder: list_files shows what there is."""

    kind = "not_found"


class PathInvalid(Refusal):
    """The path {path} cannot be used: give names with / between them, from the folder on as in notes/plan.md, without a
    / before them, without .. and control characters, at most 255 bytes each and 1,000 in all."""


class FolderInvalid(Refusal):
    """A folder's name has 1 to 100 letters, digits, dots, dashes and underscores, and not only dots."""


class BehindLink(Refusal):
    """{path} is, or lies behind, a symbolic link, which is not followed: name the file that it leads to."""


class NoDirectory(Refusal):
    """{path} is {kind} and no directory: nothing can be in it."""


class NoFile(Refusal):
    """{path} is {kind} and no file: only files can be read and written."""


class NotAllowed(Refusal):
    """{path} cannot be used: its permissions, or those of a directory above it, do not allow it."""


class SomebodyElses(Refusal):
    """{path} cannot be used: it does not belong to this folder."""


class Binary(Refusal):
    """{path} is not text: {size:,} bytes, {type}."""


class ContentTooLarge(Refusal):
    """{what} has {size:,} bytes and may have {most:,}: {instead}."""

    kind = "limit"


class OffsetBehindEnd(Refusal):
    """{path} has {total:,} lines: give an offset from 1 to that."""


class OldTextNotFound(Refusal):
    """old_text not found in {path}: give it exactly as in the file, with its spaces and without the number and colon
    that read_file puts before each line."""

    kind = "conflict"


class OldTextNotUnique(Refusal):
    """old_text found {times:,} times in {path}, must be unique: give more of the lines around it."""

    kind = "conflict"


class NothingToEdit(Refusal):
    """old_text must not be empty and new_text must differ from it: nothing was changed."""


class FileTooLarge(Refusal):
    """A file may have {most:,} bytes, and this one has more: put in a smaller one."""

    kind = "limit"


class FolderFull(Refusal):
    """The folder would have more than {most:,} {what}, which is the most: remove some files first."""

    kind = "limit"


class PersonFull(Refusal):
    """The files of all conversations would have more than {most:,} {what}, which is the most: remove some, or delete a
    conversation."""

    kind = "limit"


class NestedTooDeep(Refusal):
    """A path may go through {most} directories, and this one goes through more: put the file higher up."""


class TooDeep(Refusal):
    """The folder has directories nested deeper than {most}: remove them with a command first."""

    kind = "limit"


class DiskFull(Refusal):
    """The disk of the workspace is full, and nothing was changed: try again later."""

    kind = "unavailable"


class KeyUsedOtherwise(Refusal):
    """This idempotency key belongs to an earlier call with other arguments: send each new call with a new key."""

    kind = "conflict"


class NoFolder(Refusal):
    """todo/folder is missing in _meta: it names the folder of the conversation."""


def explained(error: Exception) -> Refusal:
    """The sentence for a failure that is not the caller's doing; the details go to the log."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        log.warning("the disk of the workspace is full")
        return DiskFull()
    return internal_error(error, service="workspace", log=log)
