"""Prometheus' text format (version 0.0.4) for the numbers of one scrape.

Touches nothing of the node, so it may run in a worker. Written by hand because the text is simple and a node
may have thousands of partitions, for which the Prometheus client library takes many times as long
(docs/adr/0004-a-small-door-for-metrics.md). In the tests that library is the judge.
"""

from collections.abc import Iterator
from itertools import accumulate, chain
from typing import Final

from riverlog.observe.metrics import PARTITION_VALUES, Metric, Scrape, read_groups
from riverlog.observe.stats import SECONDS_BOUNDS, Histogram

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def render(scrape: Scrape) -> bytes:
    """Write all series down, each metric's in one group under its meaning and kind."""
    series: dict[Metric, list[str]] = {metric: [] for metric in Metric}
    for metric, values, value in chain(scrape.readings, read_groups(scrape.groups)):
        labels = ",".join(map(_label, metric.labels, values))
        if isinstance(value, Histogram):
            series[metric] += _histogram(metric.metric, labels, value)
        else:
            series[metric].append(f"{metric.metric}{_in_braces(labels)} {_number(value)}")

    endings = [f'{{{_label("topic", p.topic)},partition="{p.partition}"}} ' for p in scrape.partitions]
    for metric, value_of in PARTITION_VALUES.items():
        name = metric.metric
        series[metric] += [
            f"{name}{ending}{value_of(partition):d}"
            for ending, partition in zip(endings, scrape.partitions, strict=True)
        ]
    return "".join(_group(metric, lines) for metric, lines in series.items() if lines).encode()


def _group(metric: Metric, lines: list[str]) -> str:
    heading = f"# HELP {metric.metric} {metric.meaning}\n# TYPE {metric.metric} {metric.kind}\n"
    return heading + "\n".join(lines) + "\n"


def _histogram(name: str, labels: str, histogram: Histogram) -> Iterator[str]:
    """Cumulate the counts: to Prometheus a bucket holds all that is at most its bound."""
    front = f"{labels}," if labels else ""
    counts = list(accumulate(histogram.counts))
    for bound, count in zip(_BOUNDS, counts, strict=True):
        yield f'{name}_bucket{{{front}le="{bound}"}} {count}'
    yield f"{name}_sum{_in_braces(labels)} {_number(histogram.sum_seconds)}"
    yield f"{name}_count{_in_braces(labels)} {counts[-1]}"


def _label(name: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return f'{name}="{escaped}"'


def _in_braces(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def _number(value: float) -> str:
    return f"{value:d}" if isinstance(value, int) else repr(value)


_BOUNDS: Final = (*map(str, SECONDS_BOUNDS), "+Inf")
