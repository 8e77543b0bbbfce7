from datetime import UTC, datetime


def utc_now() -> datetime:
    return datetime.now(UTC)


def to_utc(moment: datetime) -> datetime:
    """The same moment in UTC; a naive value is local time, as ChatKit's SDK makes them."""
    return moment.astimezone(UTC)
