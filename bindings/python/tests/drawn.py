"""How tests draw what they do."""

from hypothesis import HealthCheck, settings


def examples(most: int) -> settings:
    """So many draws, each with the fixtures of the test; one that fails can be drawn again."""
    return settings(
        max_examples=most,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
