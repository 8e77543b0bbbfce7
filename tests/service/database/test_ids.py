import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from hypothesis import given
from hypothesis.strategies import datetimes

from service.database import new_id, to_utc


def test_an_id_is_its_prefix_and_a_uuid_of_version_7() -> None:
    prefix, _, value = new_id("thr").partition("_")
    parsed = uuid.UUID(hex=value)
    assert prefix == "thr"
    assert parsed.version == 7
    assert parsed.variant == uuid.RFC_4122
    assert abs((parsed.int >> 80) / 1000 - datetime.now(UTC).timestamp()) < 5


def test_ids_of_one_process_are_unique_and_sort_as_they_were_made() -> None:
    ids = [new_id("m") for _ in range(20_000)]
    assert ids == sorted(set(ids))
    with ThreadPoolExecutor(8) as pool:
        batches = list(pool.map(lambda _: [new_id("m") for _ in range(2_000)], range(8)))
    assert all(batch == sorted(batch) for batch in batches)
    assert len({made for batch in batches for made in batch}) == 16_000


@given(datetimes(min_value=datetime(1975, 1, 1), max_value=datetime(2100, 1, 1)))
def test_a_naive_time_is_local_and_comes_out_in_utc(naive: datetime) -> None:
    assert to_utc(naive) == naive.astimezone()
    assert to_utc(naive).tzinfo is UTC
    assert to_utc(to_utc(naive)) == to_utc(naive)
