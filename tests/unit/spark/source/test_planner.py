"""Plans against a broker in the same process: partitions, offsets of places, and what cannot be."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from riverlog.arrow.positions import AtTimestamp, PartitionEnd
from riverlog.client.errors import KafkaError, Unreachable
from riverlog.model.ids import Offset, TopicPartition
from riverlog.spark.options import BadOption
from riverlog.spark.source.offset_limits import OffsetLimit, SpecificOffsets, SpecificTimestamps
from riverlog.spark.source.options import stream_options
from riverlog.spark.source.planner import Planner
from riverlog.testing import RunningBroker
from tests.support.spark import create, delete, send


@pytest.fixture
def servers(riverlog_broker: RunningBroker) -> str:
    """Return the address of a broker with two partitions of ten records, stamped 1000 to 1009 and 2000 to 2009."""
    servers = riverlog_broker.bootstrap_servers
    create(servers, "orders", partitions=2)
    create(servers, "returns")
    for partition in range(2):
        for row in range(10):
            stamp = (partition + 1) * 1_000 + row
            send(servers, "orders", [b"%d" % row], partition=partition, timestamp_ms=stamp)
    return servers


@contextmanager
def planning(servers: str, **options: str) -> Iterator[Planner]:
    chosen = {} if {"assign", "subscribePattern"} & options.keys() else {"subscribe": "orders"}
    planner = Planner(stream_options({"bootstrap": servers} | chosen | options))
    try:
        yield planner
    finally:
        planner.close()


def names(partitions: list[TopicPartition]) -> list[str]:
    return [str(each) for each in partitions]


def test_partitions_by_topic_pattern_and_number(servers: str) -> None:
    with planning(servers) as planner:
        assert names(planner.partitions()) == ["orders-0", "orders-1"]
        assert set(planner.topic_ids) == {"orders"}
    with planning(servers, subscribe="returns,orders") as planner:
        assert names(planner.partitions()) == ["orders-0", "orders-1", "returns-0"]
    with planning(servers, subscribePattern="re.*|none") as planner:
        assert names(planner.partitions()) == ["returns-0"]
        create(servers, "refunds")
        assert names(planner.partitions()) == ["refunds-0", "returns-0"]
    with planning(servers, assign='{"orders": [1]}') as planner:
        assert names(planner.partitions()) == ["orders-1"]
    with (
        planning(servers, assign='{"orders": [2]}') as planner,
        pytest.raises(BadOption, match="partitions 0 to 1, not 2"),
    ):
        planner.partitions()


def test_a_topic_that_is_not_there(servers: str) -> None:
    with planning(servers, subscribe="orders,nothing") as planner:
        with pytest.raises(
            KafkaError, match=r"topic 'nothing': the cluster has no such topic. Create it, or name another"
        ):
            planner.partitions()
        assert names(planner.partitions(may_miss=True)) == ["orders-0", "orders-1"]
    with planning(servers) as planner:
        planner.partitions()
        delete(servers, "orders")
        with pytest.raises(KafkaError, match="no such topic"):
            planner.partitions()


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (PartitionEnd.EARLIEST, (0, 0)),
        (PartitionEnd.LATEST, (10, 10)),
        (AtTimestamp(1_004), (4, 0)),
        (SpecificOffsets({TopicPartition("orders", 0): 3, TopicPartition("orders", 1): -1}), (3, 10)),
        (SpecificOffsets({TopicPartition("orders", 0): -2, TopicPartition("orders", 1): 99}), (0, 99)),
        (SpecificTimestamps({TopicPartition("orders", 0): 1_009, TopicPartition("orders", 1): 2_001}), (9, 1)),
    ],
)
def test_places_in_partitions(servers: str, where: OffsetLimit, expected: tuple[int, int]) -> None:
    with planning(servers) as planner:
        found = planner.offsets(planner.partitions(), where, option="startingOffsets")
        assert tuple(found[TopicPartition("orders", index)] for index in range(2)) == expected


def test_a_time_that_is_too_late(servers: str) -> None:
    with planning(servers) as planner:
        partitions = planner.partitions()
        with pytest.raises(
            BadOption, match="orders-0 has no record as young as 1500; name an earlier time, or set start"
        ):
            planner.offsets(partitions, AtTimestamp(1_500), option="startingTimestamp")
        assert [*planner.offsets(partitions, AtTimestamp(1_500), option="endingTimestamp").values()] == [10, 0]
    with planning(servers, startingOffsetsByTimestampStrategy="latest") as planner:
        assert [*planner.offsets(partitions, AtTimestamp(9_999), option="startingTimestamp").values()] == [10, 10]


def test_a_place_that_leaves_partitions_out(servers: str) -> None:
    with planning(servers) as planner, pytest.raises(BadOption, match="name every partition"):
        planner.offsets(
            planner.partitions(), SpecificOffsets({TopicPartition("orders", 0): 3}), option="startingOffsets"
        )


def test_a_cluster_that_is_not_there_is_told_after_a_while() -> None:
    away = {"kafka.default.api.timeout.ms": "300"}
    told = r"127.0.0.1:1: .*refused.*It was tried for 0.3 s"
    with planning("127.0.0.1:1", **away) as planner, pytest.raises(Unreachable, match=told):
        planner.partitions()


def test_waiting_ends_with_a_record_or_with_its_time(servers: str) -> None:
    with planning(servers) as planner:
        here = planner.partitions()[0]
        planner.wait({here: Offset(10)}, 0.01)
        planner.wait({here: Offset(9)}, 3_600)
        planner.wait({here: Offset(99)}, 0.01)
