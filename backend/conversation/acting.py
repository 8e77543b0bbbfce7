"""Who acts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Acting:
    """A person and, where a turn acts for them, its run: what is written for it is written only under its lease."""

    user_id: str
    run_id: str | None = None
