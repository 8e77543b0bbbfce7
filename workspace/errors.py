"""The errors that a caller can act on. A call that raises one has changed nothing."""

import errno
import logging

from common.tool_server.errors import CallError, log_internal_error

log = logging.getLogger(__name__)


class WorkspaceLimit(CallError):
    """A limit is reached."""

    kind = "limit"


class PathNotFound(CallError):
    """There is no {path} in this folder. Use list_files to see what is there."""

    kind = "not_found"


class PathInvalid(CallError):
    """The path {path} is not valid. Use a path relative to the folder, such as notes/plan.md: no / at the beginning,
    no .., no control characters, at most 255 bytes for each name and 1,000 bytes in all."""


class FolderInvalid(CallError):
    """A folder's name must be 1 to 100 letters, digits, dots, dashes and underscores, and not only dots."""


class DirectoriesOff(CallError):
    """Conversations cannot work in directories of yours here. That needs ./todo up, run by you on this machine without
    sign-in, and not by root."""


class DirectoryInvalid(CallError):
    """{path} is not valid as a directory. Use its full path, without links, . and .., such as /home/me/project."""


class DirectoryNotUsable(CallError):
    """No conversation can work in {path}: {why}."""


class GitReadOnly(CallError):
    """{path} was not changed. In a directory of the user, what git keeps in .git is read-only: the user commits."""


class UploadsOff(CallError):
    """Files cannot be uploaded to or deleted from a directory of yours here. Do that in the directory itself."""


class DirectoryNotConfined(CallError):
    """Commands cannot run in a directory of the user, because that needs bubblewrap or Landlock. Files can be read and
    written."""


class PathHasLink(CallError):
    """{path} is a symbolic link or goes through one. Links are not followed: use the path of the file itself."""


class NotDirectory(CallError):
    """{path} is {kind}, not a directory, so it cannot contain files."""


class NotFile(CallError):
    """{path} is {kind}, not a file. Only files can be read and written."""


class PermissionDenied(CallError):
    """Permission denied for {path}: check its permissions and those of the directories above it."""


class WrongOwner(CallError):
    """{path} cannot be used, because the file does not belong to the owner of this folder."""


class FileNotText(CallError):
    """{path} is {encoding}: {size:,} bytes, {type}. Only text in UTF-8 can be read and changed by this tool: use a
    command, or another path."""


class ContentTooLarge(WorkspaceLimit):
    """{what} has {size:,} bytes, and the limit is {most:,}: {instead}."""


class OffsetTooLarge(CallError):
    """{path} has {total:,} lines. Use an offset from 1 to {total}."""


class OldTextNotFound(CallError):
    """old_text not found in {path}. Copy it exactly from the file, with its spaces, but without the line number and
    colon that read_file adds to each line."""

    kind = "conflict"


class OldTextNotFoundNear(CallError):
    """old_text not found in {path}. The nearest is line {line:,}: `{text}`. There the file has {there}, and old_text
    has {here}."""

    kind = "conflict"


class OldTextNotUnique(CallError):
    """old_text found {times} times, must be unique: include more of the lines around it in {path}."""

    kind = "conflict"


class NothingToEdit(CallError):
    """Nothing was changed: old_text must not be empty, and new_text must be different from it."""


class FileTooLarge(WorkspaceLimit):
    """This file is larger than {most:,} bytes, the limit for a file. Upload a smaller one."""


class FolderFull(WorkspaceLimit):
    """The folder is full: its limit is {most:,} {what}. Remove some files first."""


class UserFull(WorkspaceLimit):
    """The storage of all your conversations is full: its limit is {most:,} {what}. Remove some files or delete a
    conversation."""


class FolderUncountable(WorkspaceLimit):
    """Directories of the folder were moved while its files were counted. Try again when no command moves them."""


class DiskFull(CallError):
    """The workspace's disk is full. Nothing was changed. Try again later."""

    kind = "unavailable"


class NoFolder(CallError):
    """_meta must contain todo/folder, the name of the folder of the conversation."""


class NoConfinement(CallError):
    """Commands cannot run, because this machine has no sandbox for them. Files can be read and written. To allow
    commands, the operator installs bubblewrap (apt-get install bubblewrap) and restarts the service."""


class SearchFailed(CallError):
    """The files could not be searched: {reason}."""


class CommitFailed(CallError):
    """Nothing was committed: {reason}"""


class CommitUnfinished(CallError):
    """git was ended before it had finished. Look at git log to see whether it has committed. It said: {reason}"""


class CommandFailed(CallError):
    """The command could not be started ({reason}). Try again in a moment."""


class FolderBusy(CallError):
    """Another command has been running in this folder for {seconds} seconds. Wait until it ends, or stop it."""


class UserBusy(WorkspaceLimit):
    """{most} of your commands are already running, which is the limit. Wait until one ends, or stop one."""


class WorkspaceBusy(WorkspaceLimit):
    """The workspace already runs {most} commands of all users, which is its limit. Try again in a minute."""


class DiskNearlyFull(CallError):
    """The workspace's disk is nearly full, so no command may run. Delete files that are not needed."""

    kind = "unavailable"


def explain_error(error: Exception) -> CallError:
    """The details go to the log."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        log.warning("the workspace's disk is full: free some space")
        return DiskFull()
    return log_internal_error(error, service="workspace", log=log)
