"""An idempotent producer against brokers that drop, lose, delay, refuse and move: each record once, and in order."""

import asyncio

from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from riverlog.client.consumer.consumer import Consumer
from riverlog.client.errors import KafkaError
from riverlog.client.producer.producer import Producer
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.wire.apis import ApiKey
from tests.support.brokers import FakeCluster, Mishap
from tests.support.virtual_time import run

MISHAPS = st.lists(
    st.sampled_from(
        [
            None,
            "drop",
            "lose",
            "silence",
            "delay",
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            ErrorCode.REQUEST_TIMED_OUT,
            ErrorCode.KAFKA_STORAGE_ERROR,
        ]
    ),
    max_size=12,
)
FINAL_OR_NOT = [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.INVALID_RECORD]
MOVES = st.lists(st.tuples(st.integers(0, 59), st.integers(0, 1), st.integers(1, 2)), max_size=4)


@given(MISHAPS, MOVES, st.integers(1, 8), st.sampled_from([0, 2, 20]))
@hypothesis_settings(max_examples=60, deadline=None)
def test_every_record_ends_up_once_and_in_order(
    mishaps: list[Mishap | None], moves: list[tuple[int, int, int]], records_per_batch: int, linger_ms: int
) -> None:
    async def scenario() -> None:
        cluster = FakeCluster(nodes=2)
        topic = cluster.create_topic("orders", partitions=2)
        async with Producer(
            cluster.bootstrap,
            ports=cluster.ports,
            linger_ms=linger_ms,
            batch_bytes_max=61 + records_per_batch * 12,
            delivery_timeout_ms=3_600_000,
        ) as producer:
            cluster.mishap(ApiKey.PRODUCE, *mishaps)
            sent = []
            for number in range(60):
                for at, partition, node in moves:
                    if at == number:
                        cluster.move("orders", partition, node)
                sent.append(producer.send_soon("orders", b"%04d" % number, partition=number % 2))
                if number % 7 == 0:
                    await asyncio.sleep(0.001)
            outcomes = [await delivery for delivery in sent]
        for partition in (0, 1):
            values = [record.value for record in topic.logs[partition].records()]
            assert values == [b"%04d" % number for number in range(partition, 60, 2)]
        assert [outcome.offset for outcome in outcomes] == [number // 2 for number in range(60)]

    run(scenario())


@given(
    st.lists(st.sampled_from([None, "drop", "lose", "silence", "delay", *FINAL_OR_NOT]), min_size=4, max_size=30),
    st.integers(1, 4),
)
@example([None, "lose", ErrorCode.NOT_ENOUGH_REPLICAS, "delay", ErrorCode.NOT_ENOUGH_REPLICAS], 1)
@hypothesis_settings(max_examples=60, deadline=None)
def test_what_is_acknowledged_is_there_even_where_other_records_fail(
    mishaps: list[Mishap | None], records_per_batch: int
) -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        topic = cluster.create_topic("orders")
        producer = await Producer(
            cluster.bootstrap,
            ports=cluster.ports,
            batch_bytes_max=61 + records_per_batch * 12,
            request_timeout_ms=2_000,
            delivery_timeout_ms=3_000,
        ).start()
        cluster.mishap(ApiKey.PRODUCE, *mishaps)
        sent = []
        for number in range(40):
            sent.append(producer.send_soon("orders", b"%04d" % number))
            await asyncio.sleep(0.1)
        outcomes = await asyncio.gather(*sent, return_exceptions=True)
        await producer.close()
        values = [record.value for record in topic.logs[0].records()]
        assert values == sorted(set(values)), "repeated or out of order"
        for number, outcome in enumerate(outcomes):
            if isinstance(outcome, BaseException):
                assert isinstance(outcome, KafkaError)
            else:
                assert values[outcome.offset] == b"%04d" % number

    run(scenario())


@given(
    st.lists(
        st.sampled_from([None, "drop", "delay", ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR]),
        max_size=10,
    ),
    st.integers(1, 20),
)
@hypothesis_settings(max_examples=40, deadline=None)
def test_a_reader_sees_every_record_once_and_in_order(mishaps: list[Mishap | None], max_records: int) -> None:
    async def scenario() -> None:
        cluster = FakeCluster(nodes=2)
        cluster.create_topic("orders", partitions=2)
        for number in range(30):
            cluster.write("orders", number % 2, b"%d" % number, b"%d again" % number)
        async with Consumer(
            cluster.bootstrap, ports=cluster.ports, auto_offset_reset="earliest", partition_bytes_max=200
        ) as consumer:
            cluster.mishap(ApiKey.FETCH, *mishaps)
            consumer.assign([TopicPartition("orders", 0), TopicPartition("orders", 1)])
            offsets: dict[int, list[int]] = {0: [], 1: []}
            while sum(map(len, offsets.values())) < 60:
                for record in await consumer.poll(60_000, max_records):
                    offsets[record.partition].append(record.offset)
        assert offsets == {0: list(range(30)), 1: list(range(30))}

    run(scenario())
