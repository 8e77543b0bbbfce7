"""Settings of Hypothesis for deterministic examples that share the fixtures of a test."""

from hypothesis import HealthCheck, settings


def same_examples(count: int) -> settings:
    return settings(
        max_examples=count,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
