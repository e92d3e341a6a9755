"""The producer as its user sees it."""

import asyncio

import pytest

from riverlog.client.errors import BufferFull, Closed, KafkaError, OtherRecordRefused, TimedOut, Unreachable
from riverlog.client.producer.deliveries import EncodedBatch
from riverlog.client.producer.producer import Producer
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.records.batch import read_header
from riverlog.records.record import BatchBuilder
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.support.asking import serving
from tests.support.brokers import FakeCluster
from tests.support.world import Universe


async def test_a_record_arrives_as_it_was_sent() -> None:
    cluster = FakeCluster()
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        sent = await producer.send(
            "orders", b"anvil", key=b"acme", headers={"trace": b"1", "none": None}, partition=2, timestamp_ms=77
        )
        assert sent == ("orders", 2, 0, 77)
        await producer.send("orders", "text", key="näme", headers=[("a", b"1"), ("a", b"2")], partition=2)
        await producer.send("orders", partition=2)
    first, second, third = cluster.topics["orders"].logs[2].records()
    assert first[1:] == (77, b"acme", b"anvil", (("trace", b"1"), ("none", None)))
    assert second[2:] == ("näme".encode(), b"text", (("a", b"1"), ("a", b"2")))
    assert (third.key, third.value) == (None, None)


@pytest.mark.parametrize("compression", [None, "none", "gzip", "snappy", "lz4", "zstd"])
async def test_every_codec(compression: str | None) -> None:
    cluster = FakeCluster()
    async with Producer(cluster.bootstrap, ports=cluster.ports, compression=compression) as producer:
        await producer.send("orders", b"x" * 1_000, partition=0)
    log = cluster.topics["orders"].logs[0]
    assert (
        read_header(log.batches[0]).compression
        == {None: 0, "none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}[compression]
    )
    assert log.records()[0].value == b"x" * 1_000


async def test_a_record_that_is_refused_is_named_and_the_others_of_its_batch_hear_of_it() -> None:
    universe = Universe()
    async with serving(universe) as (line, _node):
        config = [CreatableTopicConfig("cleanup.policy", "compact")]
        await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t", 1, configs=config)]))
        async with Producer("node:9092", ports=universe.ports, linger_ms=50) as producer:
            kept = await producer.send("t", b"first", key=b"k")
            sent = [producer.send_soon("t", b"x", key=key) for key in (b"a", None, b"b", None)]
            alone = asyncio.ensure_future(producer.send("t", b"y", key=b"c"))
            heard = await asyncio.gather(*sent, alone, return_exceptions=True)
            assert [type(error) for error in heard] == [
                OtherRecordRefused,
                KafkaError,
                OtherRecordRefused,
                KafkaError,
                OtherRecordRefused,
            ]
            assert {error.code for error in heard if isinstance(error, KafkaError)} == {ErrorCode.INVALID_RECORD}
            assert str(heard[1]).startswith("t-0: a compacted topic takes no record without a key")
            assert "because of another record in the batch: t-0: a compacted topic" in str(heard[0])
            with pytest.raises(OtherRecordRefused):
                sent[0].result()
            assert (sent[1].error, sent[2].error) == (heard[1], heard[2])
            for key in (b"a", None):
                producer.send_soon("t", b"x", key=key)
            with pytest.raises(KafkaError, match="2 records were not delivered: t-0: a compacted topic"):
                await producer.flush()
            assert (await producer.send("t", b"x", key=b"a")).offset == kept.offset + 1


async def test_records_sent_together_share_a_batch() -> None:
    cluster = FakeCluster()
    cluster.create_topic("orders")
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        deliveries = [producer.send_soon("orders", b"%d" % number) for number in range(100)]
        assert [(await delivery).offset for delivery in deliveries] == list(range(100))
    assert len(cluster.topics["orders"].logs[0].batches) == 1


def encoded(partition: int, *values: bytes, transactional: bool = False) -> EncodedBatch:
    builder = BatchBuilder(transactional=transactional)
    for value in values:
        builder.append(None, value, timestamp_ms=77)
    return EncodedBatch(TopicPartition("orders", partition), memoryview(builder.build()), len(values))


async def test_batches_that_are_encoded_already_are_sent_as_they_are() -> None:
    cluster = FakeCluster()
    cluster.create_topic("orders", 3)
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        assert await producer.partitions("orders") == 3
        await producer.send_encoded(encoded(2, b"a", b"b"))
        await producer.send_encoded(encoded(2, b"c"))
        await producer.send("orders", b"d", partition=2)
    log = cluster.topics["orders"].logs[2]
    assert [record.value for record in log.records()] == [b"a", b"b", b"c", b"d"]
    assert [(at.base_sequence, at.record_count) for at in map(read_header, log.batches)] == [(0, 2), (2, 1), (3, 1)]


async def test_an_encoded_batch_waits_for_room_and_one_that_is_too_large_is_refused() -> None:
    cluster = FakeCluster()
    cluster.create_topic("orders")
    async with Producer(
        cluster.bootstrap, ports=cluster.ports, buffer_bytes_max=1_000, request_bytes_max=2_000
    ) as producer:
        for _ in range(3):
            await producer.send_encoded(encoded(0, b"x" * 600))
        with pytest.raises(KafkaError, match="request_bytes_max allows 2000"):
            await producer.send_encoded(encoded(0, b"x" * 3_000))
    assert len(cluster.topics["orders"].logs[0].records()) == 3


async def test_linger_lets_batches_fill() -> None:
    cluster = FakeCluster()
    cluster.create_topic("orders")
    async with Producer(cluster.bootstrap, ports=cluster.ports, linger_ms=100) as producer:
        await producer.send("orders", b"first")
        start = asyncio.get_running_loop().time()
        for number in range(9):
            delivery = producer.send_soon("orders", b"%d" % number)
            await asyncio.sleep(0.01)
        await delivery
        assert asyncio.get_running_loop().time() - start == pytest.approx(0.1, abs=0.02)
    assert [read_header(batch).record_count for batch in cluster.topics["orders"].logs[0].batches] == [1, 9]


async def test_records_of_an_unknown_topic_wait_for_it_in_order() -> None:
    cluster = FakeCluster()
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        cluster.mishap(ApiKey.METADATA, ErrorCode.LEADER_NOT_AVAILABLE)
        deliveries = [producer.send_soon("orders", b"%d" % number, partition=1) for number in range(5)]
        assert "under way" in repr(deliveries[0])
        assert [(await delivery).offset for delivery in deliveries] == [0, 1, 2, 3, 4]


async def test_a_topic_that_does_not_come_fails_its_records() -> None:
    cluster = FakeCluster(auto_create=False)
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        with pytest.raises(KafkaError, match="Create it") as raised:
            await producer.send("orders", b"x")
        assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        cluster.create_topic("orders")
        assert (await producer.send("orders", b"x")).offset == 0


async def test_a_partition_that_is_not_there_is_refused() -> None:
    cluster = FakeCluster()
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        with pytest.raises(KafkaError, match="partitions 0 to 2, not 3"):
            await producer.send("orders", b"x", partition=3)
        with pytest.raises(KafkaError, match="not 9"):
            producer.send_soon("orders", b"x", partition=9)


async def test_own_partitioners_are_asked() -> None:
    cluster = FakeCluster()
    seen = []

    def last(topic: str, key: bytes | None, value: bytes | None, count: int) -> int:
        seen.append((topic, key, value, count))
        return count - 1

    async with Producer(cluster.bootstrap, ports=cluster.ports, partitioner=last) as producer:
        assert (await producer.send("orders", b"v", key=b"k")).partition == 2
    assert seen == [("orders", b"k", b"v", 3)]
    async with Producer(cluster.bootstrap, ports=cluster.ports, partitioner="round_robin") as producer:
        assert [(await producer.send("orders", b"v")).partition for _ in range(4)] == [0, 1, 2, 0]


@pytest.mark.parametrize(("acks", "wire"), [(0, 0), (1, 1), ("all", -1), ("-1", -1)])
async def test_acks(acks: int | str, wire: int) -> None:
    cluster = FakeCluster()
    cluster.create_topic("orders")
    async with Producer(cluster.bootstrap, ports=cluster.ports, acks=acks) as producer:  # type: ignore[arg-type]
        sent = await producer.send("orders", b"x")
        assert sent.offset == (-1 if wire == 0 else 0)
        await asyncio.sleep(1)
    assert cluster.asked(ApiKey.PRODUCE)[0].acks == wire
    assert len(cluster.topics["orders"].logs[0].records()) == 1
    assert (cluster.asked(ApiKey.INIT_PRODUCER_ID) != []) == (wire == -1)


async def test_the_buffer_is_a_bound_and_a_full_one_holds_the_sender() -> None:
    cluster = FakeCluster(latency_seconds=0.1)
    cluster.create_topic("orders")
    async with Producer(
        cluster.bootstrap, ports=cluster.ports, buffer_bytes_max=10_000, batch_bytes_max=2_000
    ) as producer:
        accepted = 0
        try:
            while True:
                producer.send_soon("orders", bytes(500))
                accepted += 1
        except BufferFull:
            pass
        assert 10 <= accepted <= 20
        start = asyncio.get_running_loop().time()
        await producer.ready()
        assert asyncio.get_running_loop().time() > start
        producer.send_soon("orders", bytes(500))
        await asyncio.gather(*(producer.send("orders", bytes(500)) for _ in range(100)))
        assert producer._buffered == 0
    assert len(cluster.topics["orders"].logs[0].records()) == accepted + 101


async def test_a_buffer_that_stays_full_is_an_error_in_the_end() -> None:
    cluster = FakeCluster()
    cluster.create_topic("orders")
    producer = await Producer(
        cluster.bootstrap, ports=cluster.ports, buffer_bytes_max=1_000, block_ms_max=2_000
    ).start()
    await producer.send("orders", b"first")
    cluster.brokers[1].stop()
    stuck = producer.send_soon("orders", bytes(900))
    with pytest.raises(TimedOut, match="stayed full for 2 s"):
        await producer.send("orders", bytes(900))
    with pytest.raises(TimedOut):
        await stuck
    await producer.close()


async def test_a_record_larger_than_a_request_is_refused_before_it_is_kept() -> None:
    cluster = FakeCluster()
    async with Producer(cluster.bootstrap, ports=cluster.ports, request_bytes_max=1_000) as producer:
        with pytest.raises(KafkaError, match="request_bytes_max allows 1000") as raised:
            await producer.send("orders", bytes(1_000))
        assert raised.value.code is ErrorCode.MESSAGE_TOO_LARGE
        await producer.send("orders", bytes(800))


async def test_what_is_no_bytes_is_refused_with_advice() -> None:
    cluster = FakeCluster()
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        with pytest.raises(TypeError, match="value is bytes, str or None, not dict; serialize it first"):
            producer.send_soon("orders", {"a": 1})  # type: ignore[arg-type]


async def test_flush_raises_what_nobody_saw_and_only_once() -> None:
    cluster = FakeCluster()
    cluster.create_topic("orders")
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        cluster.mishap(ApiKey.PRODUCE, ErrorCode.INVALID_RECORD)
        producer.send_soon("orders", b"1")
        producer.send_soon("orders", b"2")
        with pytest.raises(
            KafkaError, match="2 records were not delivered: orders-0: the topic does not take such a record"
        ):
            await producer.flush()
        await producer.flush()
        cluster.mishap(ApiKey.PRODUCE, ErrorCode.INVALID_RECORD)
        with pytest.raises(KafkaError):
            await producer.send("orders", b"3")
        await producer.flush()


async def test_leaving_the_block_sends_what_was_accepted() -> None:
    cluster = FakeCluster()
    async with Producer(cluster.bootstrap, ports=cluster.ports, linger_ms=10_000) as producer:
        producer.send_soon("orders", b"x", partition=0)
    assert len(cluster.topics["orders"].logs[0].records()) == 1
    try:
        async with Producer(cluster.bootstrap, ports=cluster.ports, linger_ms=10_000) as producer:
            producer.send_soon("orders", b"y", partition=0)
            raise LookupError
    except LookupError:
        pass
    assert len(cluster.topics["orders"].logs[0].records()) == 2
    with pytest.raises(Closed):
        producer.send_soon("orders", b"z")
    assert "closed" in repr(producer)


async def test_a_producer_that_was_not_started_says_how() -> None:
    cluster = FakeCluster()
    producer = Producer(cluster.bootstrap, ports=cluster.ports)
    with pytest.raises(KafkaError, match="async with Producer"):
        producer.send_soon("orders", b"x")


async def test_no_broker_no_producer() -> None:
    cluster = FakeCluster()
    with pytest.raises(Unreachable):
        async with Producer("gone:1", ports=cluster.ports):
            pass


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"acks": 2}, "choose 0"),
        ({"acks": 1, "idempotent": True}, 'needs acks="all"'),
        ({"compression": "lzma"}, "'gzip', 'snappy', 'lz4', 'zstd'"),
        ({"delivery_timeout_ms": 10}, "delivery_timeout_ms"),
        ({"bootstrap": "host:x"}, "bootstrap address"),
    ],
)
def test_senseless_settings_are_refused(arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Producer(**{"bootstrap": "a:1", **arguments})  # type: ignore[arg-type]


async def test_a_batch_that_cannot_be_written_fails_alone() -> None:
    cluster = FakeCluster()
    cluster.create_topic("orders", partitions=2)
    async with Producer(cluster.bootstrap, ports=cluster.ports, compression="zstd", linger_ms=10) as producer:
        await producer.partitions("orders")
        good = producer.send_soon("orders", b"good", partition=0)
        bad = producer.send_soon("orders", b"bad", partition=1)
        queue = producer._sender.queue_of("orders", 1)  # type: ignore[union-attr]
        queue.peek()._builder.level = "high"  # type: ignore[union-attr, assignment]
        assert (await asyncio.wait_for(good, 5)).offset == 0
        with pytest.raises(KafkaError, match="a batch cannot be written"):
            await asyncio.wait_for(bad, 5)
        assert (await asyncio.wait_for(producer.send("orders", b"next", partition=1), 5)).offset == 0
        assert producer._buffered == 0


async def test_a_partitioner_that_fails_spoils_no_other_record() -> None:
    def choose(_topic: str, key: bytes | None, _value: bytes | None, count: int) -> int:
        return count // int(key or b"0")

    cluster = FakeCluster()
    async with Producer(cluster.bootstrap, ports=cluster.ports, partitioner=choose) as producer:
        bad, good = producer.send_soon("orders", key=b"0"), producer.send_soon("orders", key=b"100")
        assert (await asyncio.wait_for(good, 5)).offset == 0
        with pytest.raises(KafkaError, match="no partition was found: ZeroDivisionError"):
            await asyncio.wait_for(bad, 5)


async def test_send_waits_for_the_room_that_headers_need() -> None:
    cluster = FakeCluster()
    async with Producer(cluster.bootstrap, ports=cluster.ports, buffer_bytes_max=10_000) as producer:
        headers = {"large": bytes(6_000)}
        first, second = (producer.send("orders", headers=headers, partition=0) for _ in range(2))
        await asyncio.gather(first, second)
    assert len(cluster.topics["orders"].logs[0].records()) == 2


async def test_a_wrong_argument_costs_nothing_but_its_call() -> None:
    cluster = FakeCluster()
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        for wrong in ({"timestamp_ms": 1.5}, {"headers": {"a": 1}}, {"key": 7}, {"partition": 0.5}):
            with pytest.raises(TypeError):
                await producer.send("orders", b"x", **wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="a topic is named by a str"):
            await producer.send(b"orders", b"x")  # type: ignore[arg-type]
        assert (await producer.send("orders", b"x", partition=0)).offset == 0


@pytest.mark.parametrize("name", ["x" * 40_000, "\ud800", b"mine", 5])
def test_a_transactional_id_that_no_request_can_hold_is_refused_at_the_call(name: object) -> None:
    with pytest.raises((TypeError, ValueError), match="transactional_id"):
        Producer("127.0.0.1:9092", transactional_id=name)  # type: ignore[arg-type]
