"""The four tools that run something: what each runs, and what of it the model and the person get."""

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from workspace.commands import errors
from workspace.commands.limits import LIMITS, ONLY_LESS
from workspace.commands.output import shown
from workspace.commands.places import Places
from workspace.commands.running import Check, Ran, run
from workspace.confinement.confinement import PATH, Confinement

SHORTEST_S, DEFAULT_S, LONGEST_S = 1, 120, 600
MOST_HITS, LONGEST_LINE = 200, 400
_ARGUMENT_BYTES = 100_000  # a little less than the kernel takes
_OWN_SECONDS = 30  # of a search or a commit
_MORE_BYTES, _MORE_FILES = 8 * 1024**2, 100  # in a folder that holds too much: who deletes may write a little
Held = Callable[[Path], tuple[int, int] | None]
"""The bytes and files that are in a folder; None where they cannot be counted."""
_HIT = re.compile(r"^(?:\./)?(.+?):([0-9]+):(.*)$")
# One command runs at a time in a folder: a lock, or a repository that is incomplete, was left by a git that was killed.
_COMMIT = (
    "find .git -maxdepth 1 -name '*.lock' -delete 2>/dev/null; find .git/refs -name '*.lock' -delete 2>/dev/null; "
    "git --git-dir=.git rev-parse 2>/dev/null || git init -q -b main && "
    'git add -A && git commit -q -m "$1" && git rev-parse --short HEAD'
)
_NOTHING_TO_COMMIT = "there are no changes since the last commit."


@dataclass(frozen=True)
class Answer:
    """What a tool answers: `text` for the model, `details` for the person."""

    text: str
    details: dict[str, Any]


class Commands:
    """The commands of all people of this process; without a confinement each is refused with a sentence.

    Folders are absolute paths that exist. Raises errors of `commands.errors`; who is cancelled while a command runs
    gets `Stopped`, with its output so far.
    """

    def __init__(
        self, confinement: Confinement | None, *, at_once: int = 4, check: Check | None = None, held: Held | None = None
    ) -> None:
        """`check` says why a folder holds too much; `held`, what it holds."""
        self._confinement = confinement
        self._places = Places(at_once)
        self._check = check
        self._held = held
        self._stops: dict[Path, asyncio.Event] = {}

    async def run_command(self, person: str, folder: Path, command: str, timeout_s: int = DEFAULT_S) -> Answer:
        """By bash, else sh; not as a login shell, which would run files of its home."""
        shell = "bash" if shutil.which("bash", path=PATH) else "sh"
        argv = [shell, "-c", _argument("command", command)]
        return answer_of(await self._run(person, folder, argv, timeout_s=_seconds(timeout_s)))

    async def run_python(self, person: str, folder: Path, code: str, timeout_s: int = DEFAULT_S) -> Answer:
        """As a script in the folder, whose own modules it can import."""
        source = _text("code", code).encode()
        return answer_of(
            await self._run(person, folder, ["python3", "-s", "-"], timeout_s=_seconds(timeout_s), stdin=source)
        )

    async def search_files(
        self, person: str, folder: Path, pattern: str, path: str = ".", glob: str | None = None
    ) -> Answer:
        """The lines that match an extended regular expression, of text files with a name like `glob`."""
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise errors.PathInvalid
        only = [f"--include={_argument('glob', glob)}"] if glob else []
        what = ["-e", _argument("pattern", pattern), "--", _argument("path", path or ".")]
        ran = await self._run(person, folder, ["grep", "-rEnIH", "--exclude-dir=.git", *only, *what])
        hits = [{"path": hit[1], "line": int(hit[2]), "text": hit[3][:LONGEST_LINE]} for hit in _hits(ran.stdout)]
        if not hits and (ran.exit_code > 1 or ran.timed_out):
            raise errors.SearchFailed(reason=" ".join(ran.stderr.removeprefix("grep: ").split()) or "it took too long")
        more = ran.truncated or ran.timed_out or len(hits) > MOST_HITS
        lines = [f"{hit['path']}:{hit['line']}: {hit['text']}" for hit in hits[:MOST_HITS]]
        lines += ["[there are more matches: use a narrower pattern or path]"] if more else []
        return Answer("\n".join(lines) or "No line matches.", {"hits": hits[:MOST_HITS], "truncated": more})

    async def commit(self, person: str, folder: Path, message: str) -> Answer:
        """All of the folder as it is, into a repository that is made if there is none."""
        if not message.strip():
            raise errors.ArgumentInvalid(name="message", rule="some text")
        argv = ["sh", "-c", _COMMIT, "sh", _argument("message", message)]
        ran = await self._run(person, folder, argv)
        said = (ran.stdout + ran.stderr).strip()
        if ran.exit_code == 0:
            commit = ran.stdout.split()[-1]
            return Answer(f"Committed as {commit}.", {"commit": commit})
        if "nothing to commit" in said:
            said = _NOTHING_TO_COMMIT
        raise errors.CommitFailed(
            reason=said.splitlines()[-1] if said else f"git ended with exit code {ran.exit_code}."
        )

    def stop(self, folder: Path) -> bool:
        """End what runs in the folder; its caller gets the output so far. Whether there was anything to end."""
        if (stop := self._stops.get(folder)) is None:
            return False
        stop.set()
        return True

    async def _run(
        self,
        person: str,
        folder: Path,
        argv: Sequence[str],
        *,
        timeout_s: int = _OWN_SECONDS,
        stdin: bytes | None = None,
    ) -> Ran:
        if self._confinement is None:
            raise errors.NoConfinement
        async with self._places.taken(person, folder):
            os.chmod(folder, 0o700)  # a command may have closed it, and no later one could open it
            too_much = await self._too_much(folder)
            limits, check = (ONLY_LESS, await self._no_more(folder, too_much)) if too_much else (LIMITS, self._check)
            stop = self._stops[folder] = asyncio.Event()
            try:
                ran = await run(
                    *(self._confinement, folder, argv),
                    timeout_s=timeout_s,
                    stdin=stdin,
                    limits=limits,
                    stop=stop,
                    check=check,
                )
            except OSError as error:
                raise errors.NotStarted(reason=error.strerror) from error
            finally:
                del self._stops[folder]  # one at a time
            too_much = await self._too_much(folder)
        return ran.with_note(too_much) if too_much and too_much not in ran.stderr else ran

    async def _no_more(self, folder: Path, too_much: str) -> Check | None:
        """Where there is too much already, a command may delete, and ends when it goes on all the same."""
        if (count := self._held) is None:
            return None
        before = await asyncio.to_thread(count, folder)

        def check(folder: Path) -> str | None:
            now = count(folder)
            more = before and now and (now[0] - before[0] > _MORE_BYTES or now[1] - before[1] > _MORE_FILES)
            return too_much if more or now is None else None

        return check

    async def _too_much(self, folder: Path) -> str | None:
        return await asyncio.to_thread(self._check, folder) if self._check else None


def answer_of(ran: Ran) -> Answer:
    """Errors are the last thing said, and at most half of it."""
    ending = f"Exit code {ran.exit_code} after {ran.seconds:.1f} s."
    errors_said = shown(ran.stderr, 20_000, 800) if ran.stderr else ""
    said = shown(ran.stdout, 50_000 - len(errors_said.encode()), 2_000 - errors_said.count("\n"))
    parts = [ending, f"stdout:\n{said}" if said else "", f"stderr:\n{errors_said}" if errors_said else ""]
    return Answer("\n".join(part for part in parts if part), asdict(ran))


def _hits(stdout: str) -> list[re.Match[str]]:
    return [hit for line in stdout.splitlines() if (hit := _HIT.match(line))]


def _seconds(timeout_s: int) -> int:
    if not SHORTEST_S <= timeout_s <= LONGEST_S:
        raise errors.ArgumentInvalid(name="timeout_s", rule=f"{SHORTEST_S} to {LONGEST_S} seconds")
    return timeout_s


def _text(name: str, text: str) -> str:
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise errors.ArgumentInvalid(name=name, rule="text without NUL characters and unpaired surrogates")
    return text


def _argument(name: str, text: str) -> str:
    if len(_text(name, text).encode()) > _ARGUMENT_BYTES:
        raise errors.ArgumentInvalid(name=name, rule=f"at most {_ARGUMENT_BYTES:,} bytes: write it to a file first")
    return text
