"""confluent-kafka: librdkafka behind Python."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from tests.conformance.adapters import (
    REQUEST_BYTES_MAX,
    WAIT_SECONDS_MAX,
    Administrator,
    Deadline,
    Joins,
    Member,
    Message,
    Placed,
    Protocol,
    Refused,
    Stored,
    WriteOptions,
)

T = TypeVar("T")


class ConfluentKafka(Administrator, Joins):
    name = "confluent-kafka"
    hashes_like_java = False

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    @staticmethod
    def version() -> str:
        return f"{confluent_kafka.__version__} (librdkafka {confluent_kafka.libversion()[0]})"

    def write(self, topic: str, messages: Sequence[Message], options: WriteOptions) -> list[Placed]:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "acks": options.acks,
                "compression.type": options.compression,
                "enable.idempotence": options.idempotent,
                "linger.ms": 2,
                "message.max.bytes": REQUEST_BYTES_MAX,
                "partitioner": "murmur2_random" if options.like_java else "consistent_random",
            }
        )
        placed: dict[int, Placed] = {}
        errors: list[KafkaError] = []

        for index, message in enumerate(messages):

            def delivered(error: KafkaError | None, stored: Any, index: int = index) -> None:
                if error is not None:
                    errors.append(error)
                else:
                    placed[index] = Placed(stored.partition(), -1 if options.acks == 0 else stored.offset())

            producer.produce(
                topic,
                message.value,
                message.key,
                partition=-1 if message.partition is None else message.partition,
                timestamp=message.timestamp_ms or 0,
                headers=list(message.headers),
                on_delivery=delivered,
            )
        if producer.flush(WAIT_SECONDS_MAX):
            raise TimeoutError("not everything was delivered")
        if errors:
            raise _refusal(errors[0])
        return [placed[index] for index in range(len(messages))]

    def consume(self, topic: str, partition: int, *, count: int, offset: int = 0) -> list[Stored]:
        consumer = self._consumer()
        consumer.assign([TopicPartition(topic, partition, offset)])
        deadline = Deadline()
        records: list[Stored] = []
        try:
            while len(records) < count:
                for message in consumer.consume(count - len(records), timeout=min(0.2, deadline.left())):
                    if (error := message.error()) is not None:
                        raise _refusal(error)
                    records.append(
                        Stored(
                            message.partition(),
                            message.offset(),
                            message.timestamp()[1],
                            message.key(),
                            message.value(),
                            tuple(message.headers() or ()),
                        )
                    )
        finally:
            consumer.close()
        return records

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        consumer = self._consumer()
        try:
            (found,) = consumer.offsets_for_times([TopicPartition(topic, partition, timestamp_ms)], WAIT_SECONDS_MAX)
        finally:
            consumer.close()
        return found.offset if found.offset >= 0 else None

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        consumer = self._consumer()
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, partition), WAIT_SECONDS_MAX)
        except KafkaException as error:
            raise _refusal(error.args[0]) from error
        finally:
            consumer.close()

    def partition_count(self, topic: str) -> int:
        return len(self._admin.list_topics(topic, WAIT_SECONDS_MAX).topics[topic].partitions)

    def create_topic(
        self, topic: str, *, partitions: int = 1, replicas: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        _done(self._admin.create_topics([NewTopic(topic, partitions, replicas, config=dict(configs or {}))]))

    def delete_topic(self, topic: str) -> None:
        _done(self._admin.delete_topics([topic]))

    def topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=WAIT_SECONDS_MAX).topics)

    def create_partitions(self, topic: str, total: int) -> None:
        _done(self._admin.create_partitions([NewPartitions(topic, total)]))

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        return int(_done(self._admin.delete_records([TopicPartition(topic, partition, before)])).low_watermark)

    def configs(self, topic: str) -> dict[str, str | None]:
        described = _done(self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))
        return {name: entry.value for name, entry in described.items()}

    def alter_config(self, topic: str, name: str, value: str) -> None:
        change = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
        _done(self._admin.incremental_alter_configs([resource]))

    def join(self, topic: str, group: str, protocol: Protocol) -> Member:
        return _Member(self.bootstrap, topic, group, protocol)

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "unused",  # the library demands a name, though nothing here joins a group
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 50,
            }
        )


class _Member(Member):
    def __init__(self, bootstrap: str, topic: str, group: str, protocol: Protocol) -> None:
        settings: dict[str, str | int | bool] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
        }
        if protocol == "classic":
            settings["heartbeat.interval.ms"] = 200
        self._consumer = Consumer(settings)
        self._consumer.subscribe([topic])

    def poll(self) -> list[Placed]:
        messages = self._consumer.consume(1000, 0.2)
        for message in messages:
            if error := message.error():
                raise _refusal(error)
        return [Placed(message.partition() or 0, message.offset() or 0) for message in messages]

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def leave(self) -> None:
        self._consumer.close()


def _done(futures: Mapping[Any, "Future[T]"]) -> T:
    """Wait for the one answer of an admin call."""
    (future,) = futures.values()
    try:
        return future.result(WAIT_SECONDS_MAX)
    except KafkaException as error:
        raise _refusal(error.args[0]) from error


def _refusal(error: KafkaError) -> Exception:
    """Turn the library's error into ours; its own verdicts on a broker's metadata are mapped back."""
    local = {KafkaError._UNKNOWN_TOPIC: 3, KafkaError._UNKNOWN_PARTITION: 3, KafkaError._AUTO_OFFSET_RESET: 1}
    code = local.get(error.code(), error.code())
    return Refused(code, error.str()) if code > 0 else KafkaException(error)
