"""The tools that run commands."""

import asyncio
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath

from workspace import errors
from workspace.commands.concurrency import ConcurrencyLimits
from workspace.commands.disk_watch import DiskWatch
from workspace.commands.limits import LIMITS, ONLY_REMOVE
from workspace.commands.output import shorten
from workspace.commands.running import CommandResult, run_process
from workspace.confinement.base import PATH, Confinement, Directory
from workspace.files import walking
from workspace.files.directories import find_obstacle, keep_git_directory
from workspace.files.quota import Quota, measure
from workspace.results import CallResult

SHORTEST_S, DEFAULT_S, LONGEST_S = 1, 120, 600
MOST_HITS, LONGEST_LINE = 200, 400
_ARGUMENT_BYTES = 100_000  # a little less than the kernel takes
_TOOL_SECONDS = 30  # of a search or a commit
# Perl's regular expressions have all of grep -E's but \< and \>; not every grep has them.
_SEARCH = r"""
kind=E pattern=$1 start=$2
if echo x | grep -qP x 2>/dev/null; then kind=P; fi
shift 2
grep -"$kind" -e "$pattern" /dev/null
[ $? -lt 2 ] || exit 2
find "$start" -name .git -prune -o -type f "$@" -exec grep -"$kind"nIH --null -e "$pattern" -- {} + | tr '\0' '\1'
"""
_HIT = re.compile(r"^(?:\./)?([^\x01]+)\x01([0-9]+):(.*)$")
# One command runs at a time in a folder, so locks and incomplete repositories are those of a git that was killed.
_COMMIT = (
    "find .git -maxdepth 1 -name '*.lock' -delete 2>/dev/null; find .git/refs -name '*.lock' -delete 2>/dev/null; "
    "git --git-dir=.git rev-parse 2>/dev/null || git init -q -b main && "
    'git add -A && git commit -q -m "$1" && git rev-parse --short HEAD'
)
_DIRECTORIES = Path("/")  # stands for all directories of users
_NOTHING_TO_COMMIT = "there are no changes since the last commit."


class Commands:
    """Runs commands in existing folders; raises `CommandStopped`, with the output, if the caller is cancelled."""

    def __init__(
        self, confinement: Confinement | None, quota: Quota, *, at_once: int = 4, readable: Sequence[str] = ()
    ) -> None:
        self._confinement = confinement
        self._quota = quota
        self._readable = readable
        self._concurrency = ConcurrencyLimits(at_once)
        self._stops: dict[Path, asyncio.Event] = {}

    async def run_command(
        self,
        user: str,
        folder: Path,
        command: str,
        timeout_s: int = DEFAULT_S,
        *,
        directory: Directory | None = None,
    ) -> CallResult:
        """Uses no login shell, which would run files of its home."""
        shell = "bash" if shutil.which("bash", path=PATH) else "sh"
        argv = [shell, "-c", _check_argument("command", command)]
        return render_result(
            await self._run(user, folder, argv, timeout_s=_check_seconds(timeout_s), directory=directory)
        )

    async def run_python(
        self, user: str, folder: Path, code: str, timeout_s: int = DEFAULT_S, *, directory: Directory | None = None
    ) -> CallResult:
        source = _check_text("code", code).encode()
        more = {"timeout_s": _check_seconds(timeout_s), "stdin": source, "directory": directory}
        return render_result(await self._run(user, folder, ["python3", "-s", "-"], **more))

    async def search_files(
        self,
        user: str,
        folder: Path,
        pattern: str,
        path: str = ".",
        glob: str | None = None,
        *,
        directory: Directory | None = None,
    ) -> CallResult:
        """`glob` matches a name, or a path if it has a slash."""
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise errors.SearchPathInvalid
        start = "/".join((".", *PurePosixPath(_check_argument("path", path)).parts))
        globs = ["-path", _create_find_glob(_check_argument("glob", glob))] if glob else []
        argv = ["sh", "-c", _SEARCH, "sh", _check_argument("pattern", pattern), start, *globs]
        ran = await self._run(user, folder, argv, directory=directory, reads=True)
        found = [hit for line in ran.stdout.splitlines() if (hit := _HIT.match(line))]
        of_glob = _compile_glob(glob) if glob else re.compile("")
        hits = [
            {"path": hit[1], "line": int(hit[2]), "text": hit[3][:LONGEST_LINE]}
            for hit in found
            if of_glob.match(hit[1]) or of_glob.match(hit[1].removeprefix(f"{start[2:]}/"))
        ]
        if not hits and (ran.stderr or ran.timed_out):
            reason = ran.stderr.partition("\n")[0].removeprefix("grep: ")
            raise errors.SearchFailed(reason=reason or "it took too long")
        more = ran.truncated or ran.timed_out or len(hits) > MOST_HITS
        lines = [f"{hit['path']}:{hit['line']}: {hit['text']}" for hit in hits[:MOST_HITS]]
        lines += ["[there are more matches: use a narrower pattern or path]"] if more else []
        return CallResult("\n".join(lines) or "No line matches.", {"hits": hits[:MOST_HITS], "truncated": more})

    async def commit(self, user: str, folder: Path, message: str, *, directory: Directory | None = None) -> CallResult:
        if directory is not None:
            raise errors.GitReadOnly(path="The repository")
        if not message.strip():
            raise errors.ArgumentInvalid(name="message", rule="some text")
        argv = ["sh", "-c", _COMMIT, "sh", _check_argument("message", message)]
        ran = await self._run(user, folder, argv)
        output = (ran.stdout + ran.stderr).strip()
        if ran.exit_code == 0:
            commit = ran.stdout.split()[-1]
            return CallResult(f"Committed as {commit}.", {"commit": commit})
        if "nothing to commit" in output:
            output = _NOTHING_TO_COMMIT
        raise errors.CommitFailed(
            reason=output.splitlines()[-1] if output else f"git ended with exit code {ran.exit_code}."
        )

    def stop(self, folder: Path) -> bool:
        """Returns whether a command ran; its caller gets the output so far."""
        if (stop := self._stops.get(folder)) is None:
            return False
        stop.set()
        return True

    async def _run(
        self,
        user: str,
        folder: Path,
        argv: Sequence[str],
        *,
        timeout_s: int = _TOOL_SECONDS,
        stdin: bytes | None = None,
        directory: Directory | None = None,
        reads: bool = False,
    ) -> CommandResult:
        """With `reads`, a read-only directory needs no note."""
        if self._confinement is None:
            raise errors.NoConfinement
        if directory and self._confinement.directories is None:
            raise errors.DirectoryNotConfined
        async with AsyncExitStack() as stack:
            # One in all directories at a time: one of them may be inside another.
            await stack.enter_async_context(self._concurrency.acquire(user, _DIRECTORIES if directory else folder))
            os.chmod(folder, 0o700)  # an earlier command may have closed it
            watch, note = DiskWatch(self._quota, folder), None
            if directory and not reads:
                note = await asyncio.to_thread(self._why_read_only, directory)
            if directory and not reads and note is None:
                directory = replace(directory, is_writable=True)
                stack.enter_context(keep_git_directory(directory.descriptor))
                held = await asyncio.to_thread(measure, Path(directory.path), repair=False)
                watch = DiskWatch(self._quota.extend(held), Path(directory.path))
            is_full = await watch.begin()
            stop = self._stops[folder] = asyncio.Event()
            try:
                ran = await run_process(
                    *(self._confinement, folder, argv),
                    timeout_s=timeout_s,
                    stdin=stdin,
                    limits=ONLY_REMOVE if is_full else LIMITS,
                    stop=stop,
                    watch=watch.wait,
                    directory=directory,
                    readable=self._readable,
                )
            except OSError as error:
                raise errors.CommandFailed(reason=error.strerror) from error
            finally:
                del self._stops[folder]  # one at a time
            is_full = await watch.find_problem()
        ran = ran.add_note(note) if note else ran
        return ran.add_note(is_full) if is_full and is_full not in ran.stderr else ran

    def _why_read_only(self, directory: Directory) -> str | None:
        """Returns the reason for the model, or None if the directory is writable."""
        assert self._confinement
        if self._confinement.directories == "read":
            why = f"the sandbox {self._confinement.name} cannot protect what git keeps there"
        else:
            try:
                why = find_obstacle(directory.descriptor)
            except walking.DirectoryMoved:
                why = "directories were moved while they were looked at"
        if why is None:
            return None
        return f"commands can only read this directory, as {why}; write_file and edit_file can change files"


def render_result(ran: CommandResult) -> CallResult:
    ending = f"Exit code {ran.exit_code} after {ran.seconds:.1f} s."
    stderr = shorten(ran.stderr, 20_000, 800) if ran.stderr else ""
    stdout = shorten(ran.stdout, 50_000 - len(stderr.encode()), 2_000 - stderr.count("\n"))
    parts = [ending, f"stdout:\n{stdout}" if stdout else "", f"stderr:\n{stderr}" if stderr else ""]
    return CallResult("\n".join(part for part in parts if part), asdict(ran))


def _create_find_glob(glob: str) -> str:
    """Returns a glob for find, whose * also matches a slash; it matches at least what `_compile_glob` matches."""
    return "*/" + glob.removeprefix("./").replace("**/", "*").replace("**", "*")


def _compile_glob(glob: str) -> re.Pattern[str]:
    """Returns a glob as a regular expression: ** matches directories; without a slash, only names are matched."""
    glob = glob.removeprefix("./")
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^]/]+\])", glob if "/" in glob else f"**/{glob}")
    wild = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    is_set = re.compile(r"\[.+\]$").match
    regexes = (wild.get(part) or (part.replace("[!", "[^") if is_set(part) else re.escape(part)) for part in parts)
    return re.compile("(?s:" + "".join(regexes) + r")\Z")


def _check_seconds(timeout_s: int) -> int:
    if not SHORTEST_S <= timeout_s <= LONGEST_S:
        raise errors.ArgumentInvalid(name="timeout_s", rule=f"{SHORTEST_S} to {LONGEST_S} seconds")
    return timeout_s


def _check_text(name: str, text: str) -> str:
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise errors.ArgumentInvalid(name=name, rule="text without NUL characters and unpaired surrogates")
    return text


def _check_argument(name: str, text: str) -> str:
    if len(_check_text(name, text).encode()) > _ARGUMENT_BYTES:
        raise errors.ArgumentInvalid(name=name, rule=f"at most {_ARGUMENT_BYTES:,} bytes: write it to a file first")
    return text
