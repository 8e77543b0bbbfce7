"""Commits a folder with git, and passes on what git and its hooks say."""

from collections.abc import Sequence

from workspace.commands.output import shorten
from workspace.commands.running import CommandResult
from workspace.commands.screen import render_screen
from workspace.commands.tools import Command
from workspace.errors import CommitFailed, CommitUnfinished
from workspace.results import CallResult

_OBSTACLE_CODE = 90
_MAX_NAMES = 5
_MAX_WORDS = (2_000, 20)  # bytes and lines of git's words
# One command runs at a time in a folder, so locks and incomplete repositories are those of a git that was killed.
# `check-ignore` ends with 128 for what is in a submodule.
_COMMIT = r"""
find .git -maxdepth 1 -name '*.lock' -delete 2>/dev/null
find .git/refs -name '*.lock' -delete 2>/dev/null
git --git-dir=.git rev-parse 2>/dev/null || git init -q -b main || exit
obstacles=$(
  git -c core.quotePath=false diff --name-only --diff-filter=U | sed 's/^/unmerged /'
  find . -path ./.git -prune -o -name .git -prune -print 2>/dev/null | while IFS= read -r found; do
    inner=${found%/.git} inner=${inner#./}
    git --git-dir="$found" rev-parse 2>/dev/null || continue
    git config -f .gitmodules --get-regexp '\.path$' 2>/dev/null | cut -d ' ' -f 2- | grep -qFxe "$inner" && continue
    git check-ignore -q -- "$inner" 2>/dev/null
    [ $? -ne 1 ] || printf 'nested %s\n' "$inner"
  done
)
if [ -n "$obstacles" ]; then printf '%s\n' "$obstacles"; exit 90; fi
git add -A && git commit -q -m "$1" || exit
git -c core.quotePath=false status --porcelain | sed 's/^/left /'
git rev-parse --short HEAD
"""


def commit(message: str) -> Command:
    return Command(["sh", "-c", _COMMIT, "sh", message], _render_commit)


def _render_commit(ran: CommandResult) -> CallResult:
    lines = ran.stdout.splitlines()
    if ran.exit_code == _OBSTACLE_CODE:
        raise CommitFailed(reason=" ".join(_explain_obstacles(lines)))
    words = _shorten_words(ran.stderr)
    if ran.timed_out or ran.stopped:
        raise CommitUnfinished(reason=words)
    if ran.exit_code == 0:
        commit = lines[-1].split()[-1]
        notes = [words] if words else []
        if left := [line[8:] for line in lines if line.startswith("left ")]:
            notes.append(f"The commit lacks changes of {_list_names(left)}, which a hook made or a submodule has.")
        more = {"notes": notes} if notes else {}
        return CallResult("\n".join([f"Committed as {commit}.", *notes]), {"commit": commit, **more})
    if "nothing to commit" in ran.stdout:
        raise CommitFailed(reason="there are no changes since the last commit.")
    said = words or _shorten_words(ran.stdout)
    raise CommitFailed(reason=said or f"git ended with exit code {ran.exit_code}.")


def _shorten_words(text: str) -> str:
    return shorten(render_screen(text).strip(), *_MAX_WORDS)


def _explain_obstacles(lines: Sequence[str]) -> list[str]:
    unmerged, nested = (
        [line[len(kind) :] for line in lines if line.startswith(kind)] for kind in ("unmerged ", "nested ")
    )
    reasons: list[str] = []
    if unmerged:
        reasons.append(
            f"a merge has left conflicts in {_list_names(unmerged)}. Resolve them, and mark each file with git add."
        )
    if nested:
        reasons.append(
            f"git repositories of their own are in {_list_names(nested)}, whose files git would leave out. Remove "
            "their .git to commit their files, or name them in .gitignore."
        )
    return reasons


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more
