"""Examples that are the same in each run, for tests whose fixtures hold for all of them."""

from hypothesis import HealthCheck, settings


def same_examples(count: int) -> settings:
    return settings(
        max_examples=count,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
