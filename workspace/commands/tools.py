"""The tools that run commands: what they run and how results are rendered."""

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from workspace.commands.output import shorten
from workspace.commands.running import CommandResult
from workspace.confinement.base import PATH
from workspace.errors import CommitFailed, SearchFailed
from workspace.files.opening import split_path
from workspace.results import CallResult

DEFAULT_SECONDS = 120
MAX_HITS, MAX_LINE_CHARS = 200, 400
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


@dataclass(frozen=True)
class Command:
    argv: Sequence[str]
    render: Callable[[CommandResult], CallResult]
    timeout_s: int = 30
    stdin: bytes | None = None
    only_reads: bool = False


def run_command(command: str, timeout_s: int = DEFAULT_SECONDS) -> Command:
    """Uses no login shell, which would run files of its home."""
    shell = "bash" if shutil.which("bash", path=PATH) else "sh"
    return Command([shell, "-c", command], render_output, timeout_s)


def run_python(code: str, timeout_s: int = DEFAULT_SECONDS) -> Command:
    return Command(["python3", "-s", "-"], render_output, timeout_s, code.encode())


def search_files(pattern: str, path: str = ".", glob: str | None = None) -> Command:
    """`glob` matches a name, or a path if it has a slash."""
    start = "/".join((".", *split_path(path)))
    globs = ["-path", _create_find_glob(glob)] if glob else []
    argv = ["sh", "-c", _SEARCH, "sh", pattern, start, *globs]
    return Command(argv, partial(_render_hits, start[2:], _compile_glob(glob or "**")), only_reads=True)


def commit(message: str) -> Command:
    return Command(["sh", "-c", _COMMIT, "sh", message], _render_commit)


def render_output(ran: CommandResult) -> CallResult:
    ending = f"Exit code {ran.exit_code} after {ran.seconds:.1f} s."
    stderr = shorten(ran.stderr, 20_000, 800) if ran.stderr else ""
    stdout = shorten(ran.stdout, 50_000 - len(stderr.encode()), 2_000 - stderr.count("\n"))
    parts = [ending, f"stdout:\n{stdout}" if stdout else "", f"stderr:\n{stderr}" if stderr else ""]
    return CallResult("\n".join(part for part in parts if part), asdict(ran))


def _render_hits(start: str, glob: re.Pattern[str], ran: CommandResult) -> CallResult:
    found = [hit for line in ran.stdout.splitlines() if (hit := _HIT.match(line))]
    hits = [
        {"path": hit[1], "line": int(hit[2]), "text": hit[3][:MAX_LINE_CHARS]}
        for hit in found
        if glob.match(hit[1]) or glob.match(hit[1].removeprefix(f"{start}/"))
    ]
    if not hits and (ran.stderr or ran.timed_out):
        reason = ran.stderr.partition("\n")[0].removeprefix("grep: ")
        raise SearchFailed(reason=reason or "it took too long")
    more = ran.truncated or ran.timed_out or len(hits) > MAX_HITS
    lines = [f"{hit['path']}:{hit['line']}: {hit['text']}" for hit in hits[:MAX_HITS]]
    lines += ["[there are more matches: use a narrower pattern or path]"] if more else []
    return CallResult("\n".join(lines) or "No line matches.", {"hits": hits[:MAX_HITS], "truncated": more})


def _render_commit(ran: CommandResult) -> CallResult:
    if ran.exit_code == 0:
        commit = ran.stdout.split()[-1]
        return CallResult(f"Committed as {commit}.", {"commit": commit})
    output = (ran.stdout + ran.stderr).strip()
    if "nothing to commit" in output:
        raise CommitFailed(reason="there are no changes since the last commit.")
    raise CommitFailed(reason=output.splitlines()[-1] if output else f"git ended with exit code {ran.exit_code}.")


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
