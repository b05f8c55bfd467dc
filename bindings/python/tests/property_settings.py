"""Settings of property tests."""

from hypothesis import HealthCheck, settings


def examples(max_examples: int) -> settings:
    """Returns settings for a number of examples, which share the fixtures of the test.

    A failure prints what is needed to reproduce it.
    """
    return settings(
        max_examples=max_examples,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
