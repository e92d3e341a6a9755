"""Spark's own Kafka connector against the broker: in batches and streams, in real-time mode, in both directions."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from bench import connector
from bench.cache import cache_folder
from bench.trial import NotRun
from tests.conformance.adapters import CODECS, WAIT_SECONDS_MAX, Message, Stored
from tests.conformance.adapters.confluent import ConfluentKafka
from tests.conformance.behaviours import LONG_AGO_MS, odd_records, read_all
from tests.conformance.transacting import COMMITTED, EVERYTHING
from tests.support.waiting import until

NewTopic = Callable[..., str]
CORES: Final = 4
"""The tasks of a query in real-time mode do not end: each of its partitions has a core to itself."""
QUERY_SECONDS_MAX: Final = 90
EARLIEST: Final = {"startingOffsets": "earliest"}

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Yield one Spark for all tests: to start it takes longer than most of them."""
    folder, settings = tmp_path_factory.mktemp("spark"), {"spark.master": f"local[{CORES}]"}
    try:
        connector.archives(cache_folder())
    except NotRun as reason:
        pytest.skip(str(reason))
    with connector.session(cache_folder(), folder, settings) as session:
        yield session


@pytest.fixture
def client(bootstrap: str) -> ConfluentKafka:
    """Return a client that writes what Spark reads, and reads what Spark writes."""
    return ConfluentKafka(bootstrap)


class Topics:
    """Topics of the broker as Spark's sources and sinks."""

    def __init__(self, spark: SparkSession, bootstrap: str, folder: Path) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._checkpoint = folder / "checkpoint"

    def read(self, topic: str, **options: str) -> DataFrame:
        return self._addressed(self._spark.read, {"subscribe": topic, **options}).load()

    def read_stream(self, topic: str, **options: str) -> DataFrame:
        return self._addressed(self._spark.readStream, {"subscribe": topic, **EARLIEST, **options}).load()

    def write(self, rows: DataFrame, **options: str) -> None:
        self._addressed(rows.write, options).save()

    @contextmanager
    def copying(self, rows: DataFrame, topic: str, **trigger: Any) -> Iterator[StreamingQuery]:
        """Make a query write these rows to a topic; another one in the same test goes on where it stops."""
        options = {"topic": topic, "checkpointLocation": str(self._checkpoint)}
        query = self._addressed(rows.writeStream, options).outputMode("update").trigger(**trigger).start()
        try:
            yield query
            assert query.exception() is None
        finally:
            query.stop()

    def copy_available(self, rows: DataFrame, topic: str) -> list[int]:
        """Copy what is there, and tell how many rows each batch had."""
        with self.copying(rows, topic, availableNow=True) as query:
            assert query.awaitTermination(QUERY_SECONDS_MAX)
            return [progress["numInputRows"] for progress in query.recentProgress]

    def _addressed(self, direction: Any, options: Mapping[str, str]) -> Any:
        return direction.format("kafka").options(**{"kafka.bootstrap.servers": self._bootstrap, **options})


@pytest.fixture
def topics(spark: SparkSession, bootstrap: str, tmp_path: Path) -> Topics:
    return Topics(spark, bootstrap, tmp_path)


def stored(rows: DataFrame) -> list[Stored]:
    """Return the rows as any other client gives its records."""
    shown = rows.selectExpr("*", "unix_millis(timestamp) AS timestamp_ms").orderBy("partition", "offset").collect()
    return [
        Stored(
            row.partition,
            row.offset,
            row.timestamp_ms,
            row.key and bytes(row.key),
            row.value if row.value is None else bytes(row.value),
            tuple((header.key, header.value and bytes(header.value)) for header in row.headers or ()),
        )
        for row in shown
    ]


def values(rows: DataFrame) -> list[bytes]:
    return [bytes(row.value) for row in rows.orderBy("partition", "offset").select("value").collect()]


def written(client: ConfluentKafka, topic: str) -> list[bytes | None]:
    """Read all partitions of a topic, and give the values in the order of the numbers they are."""
    records = [
        record for partition in range(client.partition_count(topic)) for record in read_all(client, topic, partition)
    ]
    return sorted((record.value for record in records), key=lambda value: int(value or b"0"))


def numbers(begin: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(begin, end)]


def send(client: ConfluentKafka, topic: str, sent: list[bytes]) -> None:
    partitions = client.partition_count(topic)
    client.produce(topic, [Message(value, partition=index % partitions) for index, value in enumerate(sent)])


def test_every_kind_of_record_is_read(topics: Topics, client: ConfluentKafka, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    for codec in CODECS:
        records = [
            Message(each.value, each.key, each.headers, LONG_AGO_MS + index, partition=index % 2)
            for index, each in enumerate(odd_records(client))
        ]
        client.produce(topic, records, compression=codec)
    expected = [record for partition in range(2) for record in read_all(client, topic, partition)]
    assert stored(topics.read(topic, includeHeaders="true")) == expected
    assert len(expected) == len(CODECS) * len(odd_records(client))


def test_ranges_are_read_by_offset_and_by_time(topics: Topics, client: ConfluentKafka, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    records = [
        Message(b"%d" % number, partition=number % 2, timestamp_ms=LONG_AGO_MS + 1_000 * number) for number in range(20)
    ]
    client.produce(topic, records)
    some = topics.read(
        topic,
        startingOffsets=json.dumps({topic: {"0": 3, "1": -2}}),
        endingOffsets=json.dumps({topic: {"0": -1, "1": 2}}),
    )
    assert values(some) == [*(b"%d" % number for number in range(6, 20, 2)), b"1", b"3"]
    later = topics.read(topic, startingTimestamp=str(LONG_AGO_MS + 14_500), endingTimestamp=str(LONG_AGO_MS + 18_000))
    assert values(later) == [b"16", b"15", b"17"]
    split = topics.read(topic, minPartitions="6")
    assert split.rdd.getNumPartitions() >= 6
    assert sorted(values(split), key=int) == numbers(0, 20)


def test_a_pattern_finds_topics(
    topics: Topics, spark: SparkSession, bootstrap: str, client: ConfluentKafka, new_topic: NewTopic
) -> None:
    first, second = new_topic(), new_topic()
    send(client, first, numbers(0, 3))
    send(client, second, numbers(3, 5))
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    found = reader.option("subscribePattern", f"{first}|{second}").load()
    assert {(row.topic, bytes(row.value)) for row in found.collect()} == {
        *((first, value) for value in numbers(0, 3)),
        *((second, value) for value in numbers(3, 5)),
    }


@pytest.mark.parametrize("codec", CODECS)
def test_rows_are_written_with_all_their_columns(
    topics: Topics, spark: SparkSession, client: ConfluentKafka, new_topic: NewTopic, codec: str
) -> None:
    topic = new_topic(partitions=3)
    rows = spark.range(12).selectExpr(
        f"'{topic}' AS topic",
        "CAST(id % 3 AS INT) AS partition",
        "IF(id % 4 = 0, NULL, concat('key ', id)) AS key",
        "IF(id % 5 = 0, NULL, concat('value ', id)) AS value",
        "array(struct('number' AS key, CAST(CAST(id AS STRING) AS BINARY) AS value)) AS headers",
    )
    topics.write(rows, includeHeaders="true", **{"kafka.compression.type": codec})
    for partition in range(3):
        assert {record.content for record in read_all(client, topic, partition)} == {
            (
                b"key %d" % number if number % 4 else None,
                b"value %d" % number if number % 5 else None,
                (("number", b"%d" % number),),
            )
            for number in range(partition, 12, 3)
        }


def test_aborted_records_are_left_out(
    topics: Topics, bootstrap: str, new_topic: NewTopic, fresh_name: Callable[[], str]
) -> None:
    topic = new_topic()
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": fresh_name()})
    producer.init_transactions(WAIT_SECONDS_MAX)
    for number, value in enumerate(EVERYTHING):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(WAIT_SECONDS_MAX)
        (producer.commit_transaction if number % 4 != 3 else producer.abort_transaction)(WAIT_SECONDS_MAX)
    isolation = "kafka.isolation.level"
    assert values(topics.read(topic, **{isolation: "read_committed"})) == COMMITTED
    assert values(topics.read(topic, **{isolation: "read_uncommitted"})) == EVERYTHING
    output = new_topic()
    topics.copy_available(topics.read_stream(topic, **{isolation: "read_committed"}), output)
    assert values(topics.read(output)) == COMMITTED


def test_a_query_takes_what_is_there_and_the_next_one_goes_on(
    topics: Topics, client: ConfluentKafka, new_topic: NewTopic
) -> None:
    topic, output = new_topic(partitions=2), new_topic(partitions=2)
    stream = topics.read_stream(topic, maxOffsetsPerTrigger="40")
    for begin, end, batches in ((0, 100, [40, 40, 20]), (100, 130, [30])):
        send(client, topic, numbers(begin, end))
        assert [rows for rows in topics.copy_available(stream, output) if rows] == batches
        assert written(client, output) == numbers(0, end)


def test_partitions_that_are_added_are_read(topics: Topics, client: ConfluentKafka, new_topic: NewTopic) -> None:
    topic, output = new_topic(), new_topic(partitions=3)
    stream = topics.read_stream(topic, **{"kafka.metadata.max.age.ms": "500"})
    with topics.copying(stream, output, processingTime="100 milliseconds") as query:
        send(client, topic, numbers(0, 50))
        await_values(client, output, numbers(0, 50), query)
        client.create_partitions(topic, 3)
        client.produce(topic, [Message(value, partition=2) for value in numbers(50, 60)])
        await_values(client, output, numbers(0, 60), query)


def test_records_pass_in_real_time_and_a_restart_goes_on(
    topics: Topics, client: ConfluentKafka, new_topic: NewTopic
) -> None:
    topic, output = new_topic(partitions=2), new_topic(partitions=2)
    send(client, topic, numbers(0, 100))
    stream = topics.read_stream(topic)
    with topics.copying(stream, output, realTime="5 seconds") as query:
        await_values(client, output, numbers(0, 100), query)
        send(client, topic, numbers(100, 200))  # into a batch that is running already
        await_values(client, output, numbers(0, 200), query)
        until(lambda: len(query.recentProgress) > 1, lambda: f"batches do not end: {query.status}")
        send(client, topic, numbers(200, 300))
        await_values(client, output, numbers(0, 300), query)
        ended = query.lastProgress["batchId"]
        until(lambda: query.lastProgress["batchId"] > ended + 1, lambda: f"batches do not end: {query.status}")
    send(client, topic, numbers(300, 400))
    with topics.copying(stream, output, realTime="5 seconds") as query:
        await_values(client, output, numbers(0, 400), query)


def await_values(client: ConfluentKafka, topic: str, expected: list[bytes], query: StreamingQuery) -> None:
    """Wait until a topic holds so many records; they must be exactly these."""

    def count() -> int:
        return sum(client.bounds(topic, partition)[1] for partition in range(client.partition_count(topic)))

    until(
        lambda: count() >= len(expected) or not query.isActive,
        lambda: f"{count()} of {len(expected)} records came; {query.status}",
        seconds_max=QUERY_SECONDS_MAX,
    )
    assert query.exception() is None
    assert written(client, topic) == expected
