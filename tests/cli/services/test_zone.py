from pathlib import Path

import pytest

from cli.services.zone import time_zone


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"),
        ("../usr/share/zoneinfo/America/Argentina/Ushuaia", "America/Argentina/Ushuaia"),
        ("/var/db/timezone/zoneinfo/Pacific/Honolulu", "Pacific/Honolulu"),
        ("/usr/share/zoneinfo/Etc/UTC", "Etc/UTC"),
        ("/usr/share/zoneinfo/Mars/Olympus", "UTC"),
        ("/somewhere/else", "UTC"),
    ],
)
def test_the_machine_names_its_zone_by_a_link(tmp_path: Path, target: str, name: str) -> None:
    link = tmp_path / "localtime"
    link.symlink_to(target)
    assert time_zone({}, localtime=link) == name


def test_without_a_link_it_is_utc(tmp_path: Path) -> None:
    (tmp_path / "localtime").write_bytes(b"TZif2")
    assert time_zone({}, localtime=tmp_path / "localtime") == "UTC"
    assert time_zone({}, localtime=tmp_path / "missing") == "UTC"


@pytest.mark.parametrize("tz", ["Asia/Tokyo", ":Asia/Tokyo", "/usr/share/zoneinfo/Asia/Tokyo"])
def test_tz_comes_first(tmp_path: Path, tz: str) -> None:
    link = tmp_path / "localtime"
    link.symlink_to("/usr/share/zoneinfo/Europe/Berlin")
    assert time_zone({"TZ": tz}, localtime=link) == "Asia/Tokyo"
    assert time_zone({"TZ": "JST-9"}, localtime=link) == "Europe/Berlin"
