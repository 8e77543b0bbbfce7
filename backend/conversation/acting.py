"""Who acts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Acting:
    """A person and, where a turn acts for them, its run: what is written for it is written only under its lease.

    `time_zone` is the one that their request names.
    """

    user_id: str
    run_id: str | None = None
    time_zone: str | None = None
