"""What "now" and "here" are: a clock that can be set, zones by name, and how both are told."""

from datetime import UTC, datetime, timedelta

import pytest

from backend.settings import Settings as BackendSettings
from mcp_server.settings import Settings as McpSettings
from service import clock
from service.environment import SettingsInvalid
from service.settings import ServiceSettings, read_service

SERVICES: list[type[ServiceSettings]] = [BackendSettings, McpSettings]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for service in SERVICES:
        for name in service.model_fields:
            monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("DATABASE_URL", "postgresql://localhost/todo")
    return monkeypatch


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+12", "UTC", "Asia/Tokyo"])
def test_a_zone_is_known_by_its_name(name: str) -> None:
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
def test_nothing_else_is_a_zone(name: str) -> None:
    assert clock.find_zone(name) is None


@pytest.mark.parametrize(
    ("instant", "zone", "told"),
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
def test_now_is_told_as_the_clock_on_the_wall_has_it(instant: str, zone: str, told: str) -> None:
    assert clock.wall_clock(datetime.fromisoformat(instant), zone) == told


def test_a_clock_that_is_set_runs_on() -> None:
    real = datetime(2026, 1, 1, tzinfo=UTC)
    now = clock.running_from(datetime.fromisoformat("2026-11-22T23:50:00+13:00"), real=lambda: real)
    assert now() == datetime(2026, 11, 22, 10, 50, tzinfo=UTC)
    real += timedelta(minutes=20)
    assert now() == datetime(2026, 11, 22, 11, 10, tzinfo=UTC)
    assert now().tzinfo is UTC


@pytest.mark.parametrize("service", SERVICES)
def test_now_and_the_zone_are_settings(service: type[ServiceSettings], environment: pytest.MonkeyPatch) -> None:
    settings = read_service(service)
    assert settings.time_zone == "UTC"
    assert settings.clock() is clock.real
    environment.setenv("TIME_ZONE", "Europe/Berlin")
    environment.setenv("TEST_NOW", "2026-11-22T10:50:00Z")
    settings = read_service(service)
    assert settings.time_zone == "Europe/Berlin"
    assert abs(settings.clock()() - datetime(2026, 11, 22, 10, 50, tzinfo=UTC)) < timedelta(minutes=1)


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    ("name", "value"),
    [("TIME_ZONE", "Mars/Olympus"), ("TIME_ZONE", "/etc/localtime"), ("TIME_ZONE", "CEST")]
    + [("TEST_NOW", value) for value in ("tomorrow", "2026-11-22", "2026-11-22T10:50:00", "1795430000", "20261122")],
)
def test_a_wrong_one_is_refused_with_one_sentence(
    service: type[ServiceSettings], name: str, value: str, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv(name, value)
    with pytest.raises(SettingsInvalid) as refused:
        read_service(service)
    sentence = str(refused.value)
    assert sentence.startswith(f"{name} must be ")
    assert len(sentence.splitlines()) == 1


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "todo.example"])
def test_only_a_service_on_loopback_can_be_told_what_time_it_is(
    service: type[ServiceSettings], host: str, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv(f"{service.prefix}_HOST", host)
    environment.setenv("AUTH_NONE_BEYOND_LOOPBACK", "true")
    read_service(service)
    environment.setenv("TEST_NOW", "2026-11-22T10:50:00Z")
    with pytest.raises(SettingsInvalid, match=f"TEST_NOW .* {service.prefix}_HOST=127.0.0.1"):
        read_service(service)
