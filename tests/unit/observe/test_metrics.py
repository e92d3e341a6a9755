"""The table of metrics, and the numbers a scrape takes for it."""

import re

from riverlog.model.errors import ErrorCode
from riverlog.model.transactions import TransactionOutcome
from riverlog.observe.metrics import PARTITION_VALUES, Metric, MetricType, Sample, read_groups, scrape
from riverlog.observe.quorum_stats import QuorumSample
from riverlog.observe.stats import CloseReason
from tests.unit.observe.source import ScrapedNode


class Follower(ScrapedNode):
    """A node that does not decide."""

    def quorum(self) -> QuorumSample:
        return super().quorum()._replace(state="follower", controller=None)


def test_names_follow_prometheus_conventions() -> None:
    for metric in Metric:
        assert re.fullmatch(r"(riverlog|kafka|process)(_[a-z]+)+", metric.metric)
        assert metric.metric.endswith("_total") == (metric.kind is MetricType.COUNTER)
        assert metric.kind is not MetricType.HISTOGRAM or metric.metric.endswith("_seconds")
        assert metric.meaning.endswith(".")


def test_each_name_stands_for_one_metric() -> None:
    assert len({metric.metric for metric in Metric}) == len(Metric)


async def test_every_metric_has_a_number() -> None:
    node = ScrapedNode()
    node.stats.of_api("Fetch").failed(ErrorCode.OFFSET_OUT_OF_RANGE)
    taken = await scrape(node, version="1.2.3")
    readings = [*taken.readings, *read_groups(taken.groups)]
    assert {reading.metric for reading in readings} | set(PARTITION_VALUES) == set(Metric)


async def test_a_reading_has_a_value_for_each_label() -> None:
    node = ScrapedNode()
    node.stats.of_api("Fetch").failed(ErrorCode.OFFSET_OUT_OF_RANGE)
    taken = await scrape(node, version="1.2.3")
    for reading in (*taken.readings, *read_groups(taken.groups)):
        assert len(reading.labels) == len(reading.metric.labels)
    assert all(metric.labels == ("topic", "partition") for metric in PARTITION_VALUES)


async def test_numbers_come_from_where_they_were_counted() -> None:
    node = ScrapedNode()
    node.stats.connections.opened()
    node.stats.connections.ended(CloseReason.SLOW)
    node.stats.of_api("Produce").answered(0.0, 0.1, 0.2, 0.3, 0.4)
    taken = {
        (reading.metric, reading.labels): reading.value for reading in (await scrape(node, version="1.2.3")).readings
    }
    assert taken[Metric.CONNECTIONS_CLOSED, ("slow",)] == 1
    assert taken[Metric.CONNECTIONS_OPEN, ()] == 0
    assert taken[Metric.REQUESTS, ("Produce",)] == 1
    assert taken[Metric.INFO, ("1.2.3", "1", node.cluster_id)] == 1
    assert taken[Metric.TOPIC_PARTITIONS, ("orders",)] == 2


async def test_the_quorum_is_measured_everywhere_and_the_cluster_where_it_is_decided() -> None:
    taken = {reading.metric: reading.value for reading in (await scrape(ScrapedNode(), version="1.2.3")).readings}
    assert (taken[Metric.QUORUM_LEADER], taken[Metric.QUORUM_VOTED], taken[Metric.QUORUM_EPOCH]) == (1, 2, 7)
    assert (taken[Metric.METADATA_APPLIED], taken[Metric.METADATA_LAG]) == (87, 2)
    assert (taken[Metric.CONTROLLER_ACTIVE_BROKERS], taken[Metric.CONTROLLER_FENCED_BROKERS]) == (2, 1)
    assert (taken[Metric.CONTROLLER_TOPICS], taken[Metric.CONTROLLER_PARTITIONS]) == (1, 2)
    taken = {reading.metric: reading.value for reading in (await scrape(Follower(), version="1.2.3")).readings}
    assert taken[Metric.CONTROLLER_ACTIVE] == 0
    assert Metric.CONTROLLER_ACTIVE_BROKERS not in taken


async def test_only_partitions_that_wait_for_a_transaction_have_a_lag_of_their_stable_end() -> None:
    node = ScrapedNode()
    node.stats.transactions.ended[TransactionOutcome.TIMED_OUT] += 1
    taken = (await scrape(node, version="1.2.3")).readings
    assert [each for each in taken if each.metric is Metric.STABLE_LAG] == [
        Sample(Metric.STABLE_LAG, ("orders", "1"), 7)
    ]
    assert Sample(Metric.TRANSACTIONS_ENDED, ("timed_out",), 1) in taken
    assert Sample(Metric.TRANSACTIONS, ("Ongoing",), 2) in taken


async def test_of_a_query_is_shown_what_it_has_told() -> None:
    taken = [
        each for each in (await scrape(ScrapedNode(), version="1")).readings if each.metric.labels == ("pipeline",)
    ]
    assert Sample(Metric.PIPELINE_BATCH_SECONDS, ("revenue",), 0.04) in taken
    assert Sample(Metric.PIPELINE_WATERMARK, ("revenue",), 90.0) in taken
    assert [each for each in taken if each.labels == ("new",)] == [
        Sample(Metric.PIPELINE_RUNNING, ("new",), False),
        Sample(Metric.PIPELINE_LATE_ROWS, ("new",), 0),
    ]


async def test_the_process_is_measured() -> None:
    taken = {reading.metric: reading.value for reading in (await scrape(ScrapedNode(), version="1.2.3")).readings}
    resident, cpu, open_files = (
        taken[Metric.PROCESS_RESIDENT],
        taken[Metric.PROCESS_CPU],
        taken[Metric.PROCESS_OPEN_FILES],
    )
    assert isinstance(resident, int) and resident > 1_000_000
    assert isinstance(cpu, float) and cpu > 0
    assert isinstance(open_files, int) and open_files >= 3


def test_a_partition_with_missing_replicas_says_so() -> None:
    reading = next(iter(ScrapedNode().partitions()))
    assert PARTITION_VALUES[Metric.UNDER_REPLICATED](reading) == 0
    assert PARTITION_VALUES[Metric.UNDER_REPLICATED](reading._replace(replicas=(2, 1))) == 1  # type: ignore[arg-type]
    assert PARTITION_VALUES[Metric.LEADER_IS_PREFERRED](reading) == 1
    assert PARTITION_VALUES[Metric.LEADER_IS_PREFERRED](reading._replace(replicas=(2, 1))) == 0  # type: ignore[arg-type]
