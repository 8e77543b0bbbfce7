"""What ./todo up says of the workspace."""

import json
from pathlib import Path

from cli import data_dir
from cli.data_dir import CHECKOUT


def describe_missing_commands(readiness: str, *, by_root: bool, checkout: Path = CHECKOUT) -> str | None:
    """Why agents have no commands, and what to do about it; None where they have, as the workspace's /ready says.

    Started `by_root`, the workspace runs as an account of its own.
    """
    if json.loads(readiness).get("confinement"):
        return None
    if by_root and not data_dir.traversable(checkout):
        return (
            f"Agents cannot run commands: their account may not enter {checkout}. Move the checkout to a folder that "
            "everybody may enter, such as /opt, and start again."
        )
    return (
        "Agents cannot run commands: nothing on this machine can confine them. Install bubblewrap and start again; "
        "./todo logs says what was tried."
    )
