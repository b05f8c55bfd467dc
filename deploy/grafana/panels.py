"""Panels of the dashboard, and the queries of Prometheus that they need."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Panel:
    """A panel. Its description says what to do when it looks bad."""

    title: str
    unit: str
    queries: dict[str, str]
    """Queries by their legend."""
    description: str
    kind: str = "timeseries"
    stacked: bool = False
    counts: tuple[str, ...] = ()
    """Legends of series that are numbers without a unit, on the axis to the right."""
    limits: tuple[float, ...] = ()
    """Values from which a stat is orange and red. If they descend, low values are bad."""


def stat(title: str, unit: str, query: str, description: str, *limits: float) -> Panel:
    """Returns a panel with one number."""
    return Panel(title, unit, {"": query}, description, "stat", limits=limits)


def stacked(title: str, unit: str, queries: dict[str, str], description: str) -> Panel:
    """Returns a panel with the sum of several series."""
    return Panel(title, unit, queries, description, stacked=True)


def rate(metric: str, labels: str = "") -> str:
    """Returns the query for the increase of a counter in a second."""
    return f"rate({metric}{{$S{labels and ', ' + labels}}}[$__rate_interval])"


def quantile(quantile: float, histogram: str, by: str) -> str:
    """Returns the query for a quantile of a histogram."""
    buckets = f"sum by (le, {by}) ({rate(histogram + '_bucket')})"
    return f"histogram_quantile({quantile}, {buckets})"
