"""Batches on their way to brokers: which request, which leader, and what each answer means."""

import asyncio

import pytest

from riverlog.client.errors import KafkaError, TimedOut, Unreachable
from riverlog.client.producer.producer import Producer
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_OFFSET
from riverlog.records.batch import read_header
from riverlog.wire.apis import ApiKey, Versions
from riverlog.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from tests.support.brokers import FakeCluster


def values(cluster: FakeCluster, partition: int = 0) -> list[bytes | None]:
    return [record.value for record in cluster.topics["orders"].logs[partition].records()]


async def test_one_request_carries_a_batch_for_each_partition_of_a_leader() -> None:
    cluster = FakeCluster(nodes=2)
    cluster.create_topic("orders", 4)
    cluster.create_topic("items", 2)
    async with Producer(cluster.bootstrap, ports=cluster.ports, linger_ms=50) as producer:
        await producer.send("orders", b"warm up", partition=0)
        await producer.send("orders", b"warm up", partition=1)
        await producer.send("items", b"warm up", partition=0)
        cluster.requests.clear()
        for _ in range(3):
            for partition in range(4):
                producer.send_soon("orders", b"x", partition=partition)
            producer.send_soon("items", b"x", partition=0)
        await producer.flush()
    asked = [
        (
            node,
            sorted((topic.topic_id.int, part.index) for topic in request.topic_data for part in topic.partition_data),
        )
        for node, key, _, request in cluster.requests
        if key is ApiKey.PRODUCE
    ]
    assert sorted(asked) == [(1, [(1, 0), (1, 2), (2, 0)]), (2, [(1, 1), (1, 3)])]


async def test_a_request_stays_within_its_limit() -> None:
    cluster = FakeCluster()
    cluster.create_topic("orders", 8)
    async with Producer(
        cluster.bootstrap, ports=cluster.ports, linger_ms=50, request_bytes_max=2_500, batch_bytes_max=1_100
    ) as producer:
        for partition in range(8):
            producer.send_soon("orders", bytes(1_000), partition=partition)
        await producer.flush()
    sizes = [
        sum(len(part.records) for part in request.topic_data[0].partition_data)
        for request in cluster.asked(ApiKey.PRODUCE)
    ]
    assert len(sizes) == 4
    assert max(sizes) <= 2_500


@pytest.mark.parametrize("version", range(3, 14))
async def test_every_version_of_produce_works(version: int) -> None:
    cluster = FakeCluster()
    cluster.versions[ApiKey.PRODUCE] = Versions(0, version)
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        sent = await producer.send("orders", b"x", partition=1)
    assert sent.offset == 0
    assert values(cluster, 1) == [b"x"]


async def test_the_new_leader_is_found_and_order_is_kept() -> None:
    cluster = FakeCluster(nodes=2)
    cluster.create_topic("orders")
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        for number in range(30):
            if number == 10:
                cluster.move("orders", 0, 2)
            producer.send_soon("orders", b"%d" % number)
            await asyncio.sleep(0.002)
        await producer.flush()
    assert values(cluster) == [b"%d" % number for number in range(30)]
    assert {node for node, key, *_ in cluster.requests if key is ApiKey.PRODUCE} == {1, 2}


async def test_a_broker_that_restarts_is_reached_again() -> None:
    cluster = FakeCluster()
    cluster.create_topic("orders")
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        await producer.send("orders", b"before")
        cluster.brokers[1].stop()
        meanwhile = producer.send_soon("orders", b"meanwhile")
        await asyncio.sleep(20)
        assert not meanwhile.done
        cluster.brokers[1].start()
        assert (await meanwhile).offset == 1
    assert values(cluster) == [b"before", b"meanwhile"]


async def test_what_cannot_be_delivered_says_why_and_when() -> None:
    cluster = FakeCluster()
    cluster.create_topic("orders")
    async with Producer(
        cluster.bootstrap, ports=cluster.ports, delivery_timeout_ms=10_000, request_timeout_ms=5_000
    ) as producer:
        await producer.send("orders", b"before")
        cluster.brokers[1].stop()
        start = asyncio.get_running_loop().time()
        with pytest.raises(TimedOut, match=r"orders-0 .* delivery_timeout_ms: node1:9092: Connection refused"):
            await producer.send("orders", b"lost")
        assert asyncio.get_running_loop().time() - start == pytest.approx(10, abs=0.1)


async def test_a_batch_in_flight_fails_at_its_deadline_too() -> None:
    cluster = FakeCluster()
    cluster.create_topic("orders")
    async with Producer(
        cluster.bootstrap, ports=cluster.ports, delivery_timeout_ms=4_000, request_timeout_ms=3_000
    ) as producer:
        cluster.mishap(ApiKey.PRODUCE, "silence", "silence")
        start = asyncio.get_running_loop().time()
        with pytest.raises(TimedOut):
            await producer.send("orders", b"lost")
        assert asyncio.get_running_loop().time() - start == pytest.approx(4, abs=0.1)
        assert (await producer.send("orders", b"kept")).offset >= 0
    assert values(cluster)[-1] == b"kept"


@pytest.mark.parametrize("code", [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD, ErrorCode.POLICY_VIOLATION])
async def test_a_final_refusal_fails_at_once_and_only_its_own_batch(code: ErrorCode) -> None:
    cluster = FakeCluster()
    cluster.create_topic("orders")
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        await producer.send("orders", b"first")
        cluster.mishap(ApiKey.PRODUCE, code)
        with pytest.raises(KafkaError) as raised:
            await producer.send("orders", b"refused")
        assert raised.value.code is code
        assert (await producer.send("orders", b"second")).offset == 1
    assert values(cluster) == [b"first", b"second"]


async def test_a_duplicate_counts_as_delivered() -> None:
    cluster = FakeCluster()
    cluster.create_topic("orders")
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        cluster.mishap(ApiKey.PRODUCE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
        assert (await producer.send("orders", b"x")).offset == -1


async def test_a_batch_whose_sequence_was_forgotten_behind_later_ones_is_not_written_again() -> None:
    cluster = FakeCluster()
    cluster.create_topic("orders")
    async with Producer(cluster.bootstrap, ports=cluster.ports, batch_bytes_max=70) as producer:
        await producer.send("orders", b"0")
        refused, forgotten = ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        cluster.mishap(ApiKey.PRODUCE, "lose", refused, None, forgotten)
        first = producer.send_soon("orders", b"1")
        await asyncio.sleep(0.05)
        second = producer.send_soon("orders", b"2")
        assert [(await first).offset, (await second).offset] == [NO_OFFSET, 2]
    assert values(cluster) == [b"0", b"1", b"2"]


async def test_a_producer_that_the_broker_forgot_starts_again() -> None:
    cluster = FakeCluster()
    topic = cluster.create_topic("orders")
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        for number in range(3):
            await producer.send("orders", b"%d" % number)
        cluster.mishap(ApiKey.PRODUCE, ErrorCode.UNKNOWN_PRODUCER_ID)
        await producer.send("orders", b"3")
    assert values(cluster) == [b"0", b"1", b"2", b"3"]
    last = read_header(topic.logs[0].batches[-1])
    assert (last.producer_epoch, last.base_sequence) == (1, 0)


async def test_epochs_that_run_out_are_replaced_by_a_new_producer_id() -> None:
    cluster = FakeCluster()
    topic = cluster.create_topic("orders")
    producer = await Producer(cluster.bootstrap, ports=cluster.ports).start()
    assert producer._sender is not None
    producer._sender._producer_epoch = 0x7FFE  # type: ignore[assignment]
    await producer.send("orders", b"0")
    cluster.mishap(ApiKey.PRODUCE, ErrorCode.UNKNOWN_PRODUCER_ID, None, ErrorCode.UNKNOWN_PRODUCER_ID)
    await producer.send("orders", b"1")
    await producer.send("orders", b"2")
    await producer.close()
    assert values(cluster) == [b"0", b"1", b"2"]
    assert [read_header(batch).producer_id for batch in topic.logs[0].batches] == [101, 101, 102]


async def test_an_answer_without_our_partition_is_a_failure_not_a_wait() -> None:
    cluster = FakeCluster()
    cluster.create_topic("orders")
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        cluster.handlers[ApiKey.PRODUCE] = lambda *_: ProduceResponse()
        with pytest.raises(KafkaError, match="did not answer for orders-0"):
            await producer.send("orders", b"x")


async def test_the_brokers_own_sentence_is_kept() -> None:
    cluster = FakeCluster()
    topic = cluster.create_topic("orders")
    refusal = PartitionProduceResponse(index=0, error_code=ErrorCode.INVALID_RECORD, error_message="no key")
    answer = ProduceResponse(
        responses=[TopicProduceResponse(name="orders", topic_id=topic.topic_id, partition_responses=[refusal])]
    )
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        cluster.handlers[ApiKey.PRODUCE] = lambda *_: answer
        with pytest.raises(KafkaError, match="no key"):
            await producer.send("orders", b"x")


async def test_a_throttled_producer_waits_as_long_as_it_was_told() -> None:
    cluster = FakeCluster()
    topic = cluster.create_topic("orders")
    part = PartitionProduceResponse(index=0)
    answer = ProduceResponse(
        responses=[TopicProduceResponse(name="orders", topic_id=topic.topic_id, partition_responses=[part])],
        throttle_time_ms=5_000,
    )
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        cluster.handlers[ApiKey.PRODUCE] = lambda *_: answer
        await producer.send("orders", b"x")
        start = asyncio.get_running_loop().time()
        await producer.send("orders", b"y")
        assert asyncio.get_running_loop().time() - start >= 4.9


async def test_batches_wait_while_the_brokers_window_is_full() -> None:
    cluster = FakeCluster(latency_seconds=1.0)
    cluster.window_bytes = 9_000
    cluster.create_topic("orders", 4)
    async with Producer(cluster.bootstrap, ports=cluster.ports, batch_bytes_max=3_000) as producer:
        for partition in range(4):
            producer.send_soon("orders", bytes(2_900), partition=partition)
        await producer.flush()
    asked = cluster.asked(ApiKey.PRODUCE)
    assert [sum(len(topic.partition_data) for topic in request.topic_data) for request in asked] == [2, 2]
    assert [len(values(cluster, partition)) for partition in range(4)] == [1] * 4


async def test_a_batch_larger_than_the_window_is_sent_alone() -> None:
    cluster = FakeCluster()
    cluster.window_bytes = 1_000
    cluster.create_topic("orders", 2)
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        for partition in range(2):
            producer.send_soon("orders", bytes(5_000), partition=partition)
        await producer.flush()
    assert len(cluster.asked(ApiKey.PRODUCE)) == 2


async def test_a_sender_knows_how_long_records_wait_and_why() -> None:
    cluster = FakeCluster()
    cluster.create_topic("orders")
    async with Producer(cluster.bootstrap, ports=cluster.ports, linger_ms=1_000) as producer:
        producer.send_soon("orders", b"first")
        await asyncio.sleep(0.9)
        assert producer.unanswered() == (0.0, None), "a record that lingers has nothing to complain of"
        await producer.flush()
        cluster.mishap(ApiKey.PRODUCE, *[ErrorCode.KAFKA_STORAGE_ERROR] * 6)
        producer.send_soon("orders", b"second")
        await asyncio.sleep(3)
        seconds, problem = producer.unanswered()
        assert 1.9 < seconds < 2.1
        assert problem is not None
        assert problem.code is ErrorCode.KAFKA_STORAGE_ERROR
        await producer.flush()
        assert producer.unanswered() == (0.0, None)
        cluster.mishap(ApiKey.PRODUCE, "silence")
        producer.send_soon("orders", b"third")
        await asyncio.sleep(4)
        assert 2.9 < producer.unanswered()[0] < 3.1
    assert values(cluster) == [b"first", b"second", b"third"]


async def test_records_of_an_unknown_topic_wait_for_the_cluster() -> None:
    cluster = FakeCluster()
    async with Producer(cluster.bootstrap, ports=cluster.ports) as producer:
        cluster.brokers[1].stop()
        delivery = producer.send_soon("orders", b"x")
        await asyncio.sleep(4)
        seconds, problem = producer.unanswered()
        assert 3 < seconds <= 4
        assert isinstance(problem, Unreachable)
        cluster.brokers[1].start()
        await delivery
