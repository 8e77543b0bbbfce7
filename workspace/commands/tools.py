"""Programs that models write: how they are run and how results are rendered."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from workspace.commands.output import shorten
from workspace.commands.running import CommandResult
from workspace.commands.screen import render_screen
from workspace.confinement.base import PATH
from workspace.results import CallResult

DEFAULT_SECONDS = 120


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


def render_output(ran: CommandResult) -> CallResult:
    ran = replace(ran, stdout=render_screen(ran.stdout), stderr=render_screen(ran.stderr))
    ending = f"Exit code {ran.exit_code} after {ran.seconds:.1f} s."
    stderr = shorten(ran.stderr, 20_000, 800) if ran.stderr else ""
    stdout = shorten(ran.stdout, 50_000 - len(stderr.encode()), 2_000 - stderr.count("\n"))
    parts = [ending, f"stdout:\n{stdout}" if stdout else "", f"stderr:\n{stderr}" if stderr else ""]
    return CallResult("\n".join(part for part in parts if part), asdict(ran))
