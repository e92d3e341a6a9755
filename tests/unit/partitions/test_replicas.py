"""The partitions of a node: opened when asked for, found again after a crash."""

import asyncio
import logging

import pytest

from riverlog import Admin, Producer
from riverlog.log.checkpoint import encode_offsets, replace_file
from riverlog.log.directory import LOG_STARTS_FILE
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import Offset, TopicPartition
from riverlog.partitions.recovery import Recovering
from tests.support.batches import batch_of
from tests.support.second_broker import SecondBroker
from tests.support.virtual_time import run
from tests.support.world import Universe
from tests.unit.partitions.nodes import AT, append, crashed, folders, started


async def test_a_thousand_partitions_are_metadata_until_they_are_used() -> None:
    universe = Universe()
    node = await started(universe)
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=1_000)
    assert folders(universe) == []
    append(node, index=7)
    assert folders(universe) == ["orders-7"]
    assert node.parts.replicas.get("orders", 1_000) is None
    assert node.parts.replicas.get("nothing", 0) is None
    await node.stop()


async def test_settings_of_a_topic_reach_its_open_partitions() -> None:
    universe = Universe()
    node = await started(universe)
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=1)
        append(node)
        partition = node.parts.replicas.get("orders", 0)
        assert partition is not None
        await admin.alter_configs({"retention.ms": "1234"}, topic="orders")
        assert partition.log.config.retention_ms == 1234
    await node.stop()


@pytest.mark.parametrize("stops_cleanly", [True, False])
async def test_a_partition_nobody_opened_after_a_crash_is_still_recovered_later(stops_cleanly: bool) -> None:
    universe = Universe(3)
    node = await started(universe)
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=1)
    for _ in range(20):
        append(node)
    await universe.lose_power()
    node = universe.node()
    await node.start()
    assert not node.parts.registry.directories[0].logs.clean
    if stops_cleanly:
        await node.stop()  # before upkeep had a chance to open anything
    else:
        await universe.lose_power()
    node = universe.node()
    await node.start()
    partition = node.parts.replicas.get("orders", 0)
    assert partition is not None
    end = partition.log.log_end_offset
    read = partition.read(Offset(0), bytes_max=1 << 20, upto=end, at_least_one=True)
    assert read.size == end * (len(batch_of([b"value"])))
    await node.stop()


async def test_after_a_crash_partitions_recover_by_themselves() -> None:
    universe = Universe()
    node = await crashed(universe, 3)
    assert node.parts.registry.list_opened() == []
    assert node.parts.registry.has_unopened
    await asyncio.sleep(9)
    assert [partition.high_watermark for partition in node.parts.registry.list_opened()] == [1, 1, 1]
    assert not node.parts.registry.has_unopened
    await node.stop()
    assert (await started(universe)).parts.registry.directories[0].logs.clean


async def test_clients_wait_for_a_partition_that_recovers_and_metadata_does_not() -> None:
    universe = Universe()
    node = await crashed(universe, 2)
    async with Admin(AT, ports=universe.ports) as admin, Producer(AT, ports=universe.ports) as producer:
        (topic,) = await admin.describe_topics(["orders"])
        assert len(topic.partitions) == 2
        with pytest.raises(Recovering):
            node.parts.replicas.get("orders", 1)
        sent = await producer.send("orders", value=b"again", partition=1)
        assert sent.offset == 1
    await node.stop()


def test_a_log_start_that_was_never_reached_is_one_error_line(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        universe = Universe()
        node = await started(universe)
        async with Admin(AT, ports=universe.ports) as admin:
            await admin.create_topic("orders", partitions=1)
        append(node)
        await node.stop()
        starts = encode_offsets({TopicPartition("orders", 0): Offset(999)})
        replace_file(universe.disk, f"/data/{LOG_STARTS_FILE}", starts)
        node = await started(universe)
        partition = node.parts.replicas.get("orders", 0)
        assert partition is not None
        assert (partition.log.log_start_offset, partition.high_watermark) == (0, 1)
        await node.stop()

    with caplog.at_level(logging.ERROR, logger="riverlog"):
        run(scenario())
    (line,) = caplog.records
    assert line.getMessage() == "log start not believed"
    assert line.__dict__["fields"]["written_down"] == 999


async def test_what_another_broker_leads_is_refused_and_gets_no_folder() -> None:
    universe = Universe()
    node = await started(universe)
    other = await SecondBroker.join(node)
    await other.create("orders", (2, 1), (1, 2))
    await other.create("bills", (2,))
    for topic, epoch, code in (
        ("orders", -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("orders", 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("orders", 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ("bills", 1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ):
        with pytest.raises(Refusal) as refused:
            node.parts.replicas.get(topic, 0, epoch)
        assert refused.value.code is code
    append(node, index=1)
    assert folders(universe) == ["orders-1"]
    await node.stop()


async def test_a_partition_goes_and_comes_back_with_its_records() -> None:
    universe = Universe()
    node = await started(universe)
    other = await SecondBroker.join(node)
    await other.create("orders", (2, 1))
    await other.fence()
    append(node)
    await other.lead("orders")
    with pytest.raises(Refusal) as refused:
        append(node)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(Refusal) as refused:
        node.parts.replicas.get("orders", 0, 1)
    assert refused.value.code is ErrorCode.FENCED_LEADER_EPOCH
    await other.fence()
    append(node)
    partition = node.parts.replicas.get("orders", 0, other.facts("orders").leader_epoch)
    assert partition is not None
    assert partition.log.log_end_offset == 2
    assert partition.log.epochs.of(Offset(1)) == other.facts("orders").leader_epoch
    await node.stop()


async def test_a_folder_of_what_another_broker_leads_stays_unopened() -> None:
    universe = Universe()
    node = await started(universe)
    other = await SecondBroker.join(node)
    await other.create("orders", (2, 1), durability="fsync")
    await other.fence()
    append(node)
    await other.lead("orders")
    await asyncio.sleep(1)
    await universe.lose_power()
    node = await started(universe)
    await asyncio.sleep(9)
    assert node.parts.registry.list_opened() == []
    assert not node.parts.replicas.is_recovering(TopicPartition("orders", 0))
    assert folders(universe) == ["orders-0"]
    await SecondBroker(node).fence()
    await node.parts.replicas.wait_recovered(TopicPartition("orders", 0))
    partition = node.parts.replicas.get("orders", 0)
    assert partition is not None
    assert partition.log.log_end_offset == 1
    await node.stop()
