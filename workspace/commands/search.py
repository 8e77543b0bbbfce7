"""Searches files with grep, and shows of each line the part that matches."""

import re
import secrets
from collections.abc import Iterator
from functools import partial

from workspace.commands.running import CommandResult
from workspace.commands.tools import Command
from workspace.errors import SearchFailed
from workspace.files.opening import split_path
from workspace.files.text_form import BOM
from workspace.results import CallResult

MAX_HITS, MAX_LINE_CHARS = 200, 400
_MAX_UNREAD = 5  # names of files that were not searched
_CHARS_BEFORE_MATCH = 100
_CUT = "[…]"
# Perl's regular expressions have all of grep -E's but \< and \>; not every grep has them, and not every system awk.
# What matches is marked as with colours. A long line is cut around it here, as only so much output is kept.
# grep takes UTF-16 for binary: such files are named in the first line of the output, found by their byte order mark.
_SEARCH = r"""
kind=E pattern=$1 start=$4 colour=
if echo x | grep -qP x 2>/dev/null; then kind=P pattern=$2 colour=--color=always; fi
export GREP_COLORS="ms=$3:mc=$3:sl=:cx=:fn=:ln=:bn=:se=:ne"
mark=$(printf '\033[%sm' "$3")
shift 4
grep -"$kind" -e "$pattern" /dev/null
[ $? -lt 2 ] || exit 2
cut_lines() {
  if ! awk 'BEGIN { exit }' 2>/dev/null; then cat; return; fi
  LC_ALL=C awk -v mark="$mark" '{
    at = index($0, "\1"); at += index(substr($0, at), ":")
    text = substr($0, at)
    if (length(text) > 4000) {
      match_at = index(text, mark)
      from = match_at > 2000 ? match_at - 2000 : 1
      text = (from > 1 ? "\2" : "") substr(text, from, 4000) "\2"
    }
    print substr($0, 1, at - 1) text
  }'
}
list_files() {
  which=$1
  shift
  find "$start" -name .git -prune -o -type f "$@" -exec env LC_ALL=C grep "$which" --null -e '' -- {} +
}
if awk 'BEGIN { exit }' 2>/dev/null; then
  list_files -LI "$@" | LC_ALL=C xargs -0 awk -v mark="$mark" 'BEGIN { RS = "[^\376\377]" }
    FNR == 1 && /^(\377\376|\376\377)/ && named++ < 100 { printf "%s%s\1", mark, FILENAME }
    { nextfile }' 2>/dev/null
  echo
fi
list_files -lI "$@" |
  xargs -0 grep -"$kind"naH $colour --null -e "$pattern" -- /dev/null | tr '\0' '\1' | cut_lines
"""
_HIT = re.compile(r"(?:\./)?([^\x01]+)\x01([0-9]+):(.*)", re.DOTALL)
_END_MARK = "\x1b[m"


def search_files(pattern: str, path: str = ".", glob: str | None = None) -> Command:
    """`glob` matches a name, or a path if it has a slash."""
    start = "/".join((".", *split_path(path)))
    globs = ["-path", _create_find_glob(glob)] if glob else []
    mark = f"1;{secrets.randbelow(10**9)}"  # unknown to those who wrote the files
    argv = ["sh", "-c", _SEARCH, "sh", *_create_patterns(pattern), mark, start, *globs]
    render = partial(_render_hits, start[2:], _compile_glob(glob or "**"), f"\x1b[{mark}m")
    return Command(argv, render, only_reads=True)


def _create_patterns(pattern: str) -> tuple[str, str]:
    """Returns a pattern for grep -E and one for grep -P.

    In both, $ also matches before the CR of a line end; in the latter, ^ at the beginning also matches after a BOM.
    """
    extended = re.sub(r"(?<!\\)\$(?=\Z|\)|\|)", "\r?$", pattern)
    if pattern.startswith("(*"):
        return extended, pattern
    start = r"^(?:\x{FEFF})?" if pattern.startswith("^") else ""
    return extended, f"(*ANYCRLF)(?m){start}{pattern.removeprefix('^')}"


def _render_hits(start: str, glob: re.Pattern[str], mark: str, ran: CommandResult) -> CallResult:
    hits = [
        {"path": path, "line": number, "text": _cut_around_match(text, mark)}
        for path, number, text in _find_hits(ran)
        if _matches(glob, path, start)
    ]
    unread = [path for path in _list_unread(ran, mark) if _matches(glob, path, start)]
    problem = ran.stderr.partition("\n")[0].removeprefix("grep: ")
    if not hits and (problem or ran.timed_out):
        raise SearchFailed(reason=problem or "it took too long")
    more = ran.truncated or ran.timed_out or len(hits) > MAX_HITS
    lines = [f"{hit['path']}:{hit['line']}: {hit['text']}" for hit in hits[:MAX_HITS]]
    lines += ["[there are more matches: use a narrower pattern or path]"] if more else []
    lines += [f"[not everything could be searched: {problem}]"] if problem and not more else []
    lines = lines or ["No line matches."]
    lines += [_describe_unread(unread)] if unread else []
    return CallResult("\n".join(lines), {"hits": hits[:MAX_HITS], "truncated": more})


def _matches(glob: re.Pattern[str], path: str, start: str) -> bool:
    return glob.match(path) is not None or glob.match(path.removeprefix(f"{start}/")) is not None


def _find_hits(ran: CommandResult) -> Iterator[tuple[str, int, str]]:
    lines = ran.stdout.split("\n")
    if ran.truncated:  # what is beside the mark of the omitted output may be a part of a line
        omitted = next((place for place, line in enumerate(lines) if line.startswith("[… ")), 0)
        lines[max(0, omitted - 1) : omitted + 2] = []
    for line in lines:
        if hit := _HIT.fullmatch(line):
            yield hit[1], int(hit[2]), hit[3].removesuffix("\r")


def _list_unread(ran: CommandResult, mark: str) -> list[str]:
    """Returns the paths of files in UTF-16, which were not searched."""
    first = ran.stdout.partition("\n")[0]
    return [path.removeprefix(mark).removeprefix("./") for path in first.split("\x01") if path.startswith(mark)]


def _describe_unread(paths: list[str]) -> str:
    names = ", ".join(sorted(paths)[:_MAX_UNREAD]) + (" and others" if len(paths) > _MAX_UNREAD else "")
    return f"[not searched, because the text is in UTF-16: {names}. Convert it first, as with iconv]"


def _cut_around_match(text: str, mark: str) -> str:
    """Returns a line without the marks of matches, and only the part around its first match if it is long."""
    has_beginning, has_end = not text.startswith("\x02"), not text.endswith("\x02")
    text = text.strip("\x02")
    before, *marked = text.split(mark)
    text = (before + "".join(part.replace(_END_MARK, "", 1) for part in marked)).removeprefix(BOM)
    first = 0
    if len(text) > MAX_LINE_CHARS:
        first = max(0, min(len(before) - _CHARS_BEFORE_MATCH, len(text) - MAX_LINE_CHARS))
    last = first + MAX_LINE_CHARS
    head = _CUT if first or not has_beginning else ""
    return f"{head}{text[first:last]}{_CUT if last < len(text) or not has_end else ''}"


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
