"""Sets the clock of services under test."""

from datetime import UTC, datetime


def set_clock(now: str) -> dict[str, str]:
    """Returns the setting with which it is `now` at this moment, in every service that gets it."""
    return {"TEST_CLOCK_OFFSET_SECONDS": str(find_offset(now))}


def find_offset(now: str) -> float:
    return (datetime.fromisoformat(now) - datetime.now(UTC)).total_seconds()
