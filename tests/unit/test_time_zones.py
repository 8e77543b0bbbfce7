"""Zones by name, and what a clock on a wall shows."""

from datetime import datetime

import pytest

from common import clock


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+12", "UTC", "Asia/Tokyo"])
def test_known_zone(name: str) -> None:
    assert clock.find_zone(name) is not None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Mars/Olympus",
        "Europe",
        "europe/berlin",
        "localtime",
        "/etc/localtime",
        "/usr/share/zoneinfo/UTC",
        "../../etc/passwd",
        "Europe/../UTC",
        "Europe/Berlin\n",
        "Europe//Berlin",
        "Europe/Bérlin",
        "CET-1CEST",
        "A" * 65,
        "A\0",
    ],
)
def test_unknown_zone(name: str) -> None:
    assert clock.find_zone(name) is None


@pytest.mark.parametrize(
    ("instant", "zone", "shown"),
    [
        ("2026-11-22T09:54:00Z", "Europe/Berlin", "Sun 2026-11-22 10:54, Europe/Berlin"),
        ("2026-11-22T10:50:00Z", "Pacific/Tongatapu", "Sun 2026-11-22 23:50, Pacific/Tongatapu"),
        ("2026-11-23T09:50:00Z", "Pacific/Honolulu", "Sun 2026-11-22 23:50, Pacific/Honolulu"),
        ("2026-03-29T00:59:00Z", "Europe/Berlin", "Sun 2026-03-29 01:59, Europe/Berlin"),
        ("2026-03-29T01:00:00Z", "Europe/Berlin", "Sun 2026-03-29 03:00, Europe/Berlin"),
        ("2026-10-25T00:30:00Z", "Europe/Berlin", "Sun 2026-10-25 02:30, Europe/Berlin"),
        ("2026-10-25T01:30:00Z", "Europe/Berlin", "Sun 2026-10-25 02:30, Europe/Berlin"),
        ("2028-02-29T12:00:00Z", "UTC", "Tue 2028-02-29 12:00, UTC"),
        ("2028-02-28T10:50:00Z", "Pacific/Tongatapu", "Mon 2028-02-28 23:50, Pacific/Tongatapu"),
        ("2028-03-01T09:50:00Z", "Pacific/Honolulu", "Tue 2028-02-29 23:50, Pacific/Honolulu"),
        ("2026-11-22T09:54:00Z", "Mars/Olympus", "Sun 2026-11-22 09:54, UTC"),
    ],
)
def test_wall_clock(instant: str, zone: str, shown: str) -> None:
    assert clock.render_wall_clock(datetime.fromisoformat(instant), zone) == shown
