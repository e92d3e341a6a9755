"""The topic through the client, on a whole node: fenced writers, whole transactions, reads by offset."""

import asyncio

import pytest

from riverlog import Admin, Consumer, TopicPartition
from riverlog.checkpoints.journal import TOPIC, Journal, TopicGone, WriterFenced
from riverlog.checkpoints.records import CHUNKS, FACTS, CheckpointRecord
from riverlog.client.errors import KafkaError
from riverlog.wire.messages.end_txn import EndTxnRequest
from riverlog.wire.messages.produce import ProduceRequest
from tests.support.members import ADDRESS, a_node
from tests.support.mishaps import Mishaps
from tests.support.world import Universe

FACTS_PARTITION = TopicPartition(TOPIC, FACTS)


def journal(universe: Universe) -> Journal:
    return Journal(ADDRESS, ports=universe.ports, security=universe.security)


async def test_what_is_written_is_read_in_order_and_by_its_offset() -> None:
    async with a_node() as universe:
        first = journal(universe)
        await first.open()
        offsets = await first.write(
            [CheckpointRecord(FACTS, b"a", b"1"), CheckpointRecord(CHUNKS, b"b", b"2" * 600_000)]
        )
        offsets += await first.write([CheckpointRecord(FACTS, b"a", None), CheckpointRecord(CHUNKS, b"c", b"3")])
        assert [record.value async for record in first.facts()] == [b"1", None]
        assert [record.key async for record in first.chunks(offsets[1] + 1)] == [b"c"]
        assert await first.chunks_end() > offsets[3]
        found = await first.read(CHUNKS, offsets[1])
        assert found is not None
        assert (found.key, found.offset, len(found.value or b"")) == (b"b", offsets[1], 600_000)
        assert await first.read(FACTS, offsets[0] + 1) is None  # the end of a transaction is no record
        await first.close()
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            assert (await admin.describe_configs(topic=TOPIC))["cleanup.policy"].value == "compact"


async def test_who_opens_it_locks_the_one_before_out() -> None:
    async with a_node() as universe:
        first, second = journal(universe), journal(universe)
        await first.open()
        await first.write([CheckpointRecord(FACTS, b"a", b"1")])
        await second.open()
        with pytest.raises(WriterFenced):
            await first.write([CheckpointRecord(FACTS, b"a", b"2")])
        assert [record.value async for record in second.facts()] == [b"1"]
        await first.close()
        await second.close()


async def test_one_whose_id_was_used_up_is_locked_out_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_node() as universe:
        first = journal(universe)
        await first.open()
        await first.write([CheckpointRecord(FACTS, b"a", b"1")])
        monkeypatch.setattr("riverlog.checkpoints.journal.TRANSACTIONAL_ID", "another")  # gets another producer id
        second, third = journal(universe), journal(universe)
        await second.open()
        with pytest.raises(WriterFenced):
            await first.write([CheckpointRecord(FACTS, b"a", b"2")])
        await second.write([CheckpointRecord(FACTS, b"b", b"3")])
        await third.open()
        with pytest.raises(WriterFenced):
            await second.write([CheckpointRecord(FACTS, b"a", b"4")])
        assert [record.value async for record in third.facts()] == [b"1", b"3"]
        for each in (first, second, third):
            await each.close()


async def markers(universe: Universe) -> int:
    """Count the offsets of partition 0 that no record has: each transaction leaves one."""
    async with Admin(ADDRESS, ports=universe.ports) as admin:
        end = (await admin.list_offsets({FACTS_PARTITION: "latest"}))[FACTS_PARTITION].offset
    async with Consumer(ADDRESS, ports=universe.ports, auto_offset_reset="earliest") as consumer:
        consumer.assign([FACTS_PARTITION])
        count = 0
        while await consumer.position(FACTS_PARTITION) < end:
            count += len(await consumer.poll())
    return end - count


async def test_a_small_write_is_a_batch_and_a_transaction_where_it_must_be() -> None:
    async with a_node() as universe:
        only = journal(universe)
        await only.open()
        offsets = await only.write([CheckpointRecord(FACTS, b"a", b"1"), CheckpointRecord(FACTS, b"b", b"2")])
        assert offsets[1] == offsets[0] + 1
        assert await markers(universe) == 0
        await only.write([CheckpointRecord(FACTS, b"a", b"3"), CheckpointRecord(CHUNKS, b"c", b"4")])
        assert await markers(universe) == 1
        await only.write([CheckpointRecord(FACTS, b"a", b"x" * 300_000)])
        await only.write([CheckpointRecord(FACTS, b"k" * 500, None)] * 3_000)
        assert await markers(universe) == 3
        await only.write([CheckpointRecord(FACTS, b"a", b"5")])
        await asyncio.sleep(61)  # after a rest, the coordinator is asked
        await only.write([CheckpointRecord(FACTS, b"a", b"6")])
        assert await markers(universe) == 4
        keys = [record.key for record in [each async for each in only.facts()] if record.value is not None]
        assert keys == [b"a", b"b", b"a", b"a", b"a", b"a"]
        await only.close()


@pytest.mark.parametrize("partition", [FACTS, CHUNKS])
async def test_what_was_kept_by_an_answer_that_is_lost_is_there_once(
    monkeypatch: pytest.MonkeyPatch, partition: int
) -> None:
    mishaps = Mishaps(monkeypatch)
    async with a_node() as universe:
        only = journal(universe)
        await only.open()
        mishaps.lost.append(ProduceRequest if partition == FACTS else EndTxnRequest)
        offsets = await only.write([CheckpointRecord(partition, b"a", b"1")])
        records = only.facts() if partition == FACTS else only.chunks(0)
        assert [record.offset async for record in records] == offsets
        await only.close()


@pytest.mark.parametrize("configs", [{"cleanup.policy": "delete"}, {"cleanup.policy": "compact,delete"}])
async def test_a_topic_that_somebody_else_made_is_mended_before_it_loses_anything(
    monkeypatch: pytest.MonkeyPatch, configs: dict[str, str]
) -> None:
    async with a_node() as universe, Admin(ADDRESS, ports=universe.ports) as admin:
        with monkeypatch.context() as elsewhere:  # a cluster that knows nothing of this topic
            elsewhere.setattr("riverlog.metadata.commands.topics.CHECKPOINTS_TOPIC", "another")
            small = {**configs, "max.message.bytes": "1000"}
            await admin.create_topic(TOPIC, partitions=1, configs=small)
        only = journal(universe)
        await only.open()
        await only.write([CheckpointRecord(FACTS, b"a", b"1"), CheckpointRecord(CHUNKS, b"b", b"2" * 600_000)])
        found = await admin.describe_configs(topic=TOPIC)
        assert [found[name].value for name in ("cleanup.policy", "max.message.bytes")] == ["compact", "1048576"]
        await only.close()


@pytest.mark.parametrize("made_anew", [False, True])
async def test_a_topic_that_was_deleted_is_missed_and_not_begun_anew(made_anew: bool) -> None:
    async with a_node() as universe:
        only = journal(universe)
        await only.open()
        await only.check()
        async with Admin(ADDRESS, ports=universe.ports, security=universe.security) as admin:
            await admin.delete_topics(TOPIC)
            if made_anew:
                await admin.create_topic(TOPIC, partitions=2)
            with pytest.raises(TopicGone, match="was deleted"):
                await only.check()
            again = Journal(ADDRESS, ports=universe.ports, security=universe.security, topic_id=only.topic_id)
            with pytest.raises(TopicGone):
                await again.open()
            assert (TOPIC in [each.name for each in await admin.list_topics(internal=True)]) is made_anew
        await only.close()
        await again.close()


async def test_without_a_node_it_says_so() -> None:
    async with a_node() as universe:
        with pytest.raises(KafkaError):
            await Journal("nowhere:9092", ports=universe.ports).open()
