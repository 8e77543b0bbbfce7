"""Settings of Hypothesis for examples that share the fixtures of a test; tests/conftest.py has those of all."""

from hypothesis import HealthCheck, settings


def same_examples(count: int) -> settings:
    suppressed = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    return settings(max_examples=count, suppress_health_check=suppressed)
