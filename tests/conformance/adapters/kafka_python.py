"""kafka-python: pure Python, threads inside."""

import re
from collections.abc import Mapping, Sequence

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

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
    placed,
    refusals,
    stored,
)


class KafkaPython(Administrator, Joins):
    name = "kafka-python"
    writes_null_headers = False

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    @staticmethod
    def version() -> str:
        return str(kafka.__version__)

    def close(self) -> None:
        self._admin.close()

    def write(self, topic: str, messages: Sequence[Message], options: WriteOptions) -> list[Placed]:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            acks=options.acks,
            compression_type=options.codec,
            enable_idempotence=options.idempotent,
            linger_ms=2,
            max_request_size=REQUEST_BYTES_MAX,
        )
        with refusals(KafkaError):
            try:
                futures = [
                    producer.send(
                        topic,
                        message.value,
                        message.key,
                        list(message.headers),
                        message.partition,
                        message.timestamp_ms,
                    )
                    for message in messages
                ]
                places = [future.get(WAIT_SECONDS_MAX) for future in futures]
            finally:
                producer.close(WAIT_SECONDS_MAX)
        return [Placed(place.partition, -1 if options.acks == 0 else place.offset) for place in places]

    def consume(self, topic: str, partition: int, *, count: int, offset: int = 0) -> list[Stored]:
        place = TopicPartition(topic, partition)
        deadline = Deadline()
        records: list[Stored] = []
        with refusals(KafkaError), self._consumer() as consumer:
            consumer.assign([place])
            consumer.seek(place, offset)
            while len(records) < count:
                polled = consumer.poll(min(200, 1000 * deadline.left()), max_records=count - len(records))
                records += map(stored, polled.get(place, ()))
        return records

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        place = TopicPartition(topic, partition)
        with refusals(KafkaError), self._consumer() as consumer:
            found = consumer.offsets_for_times({place: timestamp_ms})[place]
        return None if found is None else int(found.offset)

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        place = TopicPartition(topic, partition)
        with refusals(KafkaError), self._consumer() as consumer:
            return consumer.beginning_offsets([place])[place], consumer.end_offsets([place])[place]

    def partition_count(self, topic: str) -> int:
        (described,) = self._admin.describe_topics([topic])
        return len(described["partitions"])

    def create_topic(
        self, topic: str, *, partitions: int = 1, replicas: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        options = {"num_partitions": partitions, "replication_factor": replicas, "configs": dict(configs or {})}
        with refusals(KafkaError):
            self._admin.create_topics({topic: options})

    def delete_topic(self, topic: str) -> None:
        with refusals(KafkaError):
            self._admin.delete_topics([topic])

    def topics(self) -> set[str]:
        return set(self._admin.list_topics())

    def create_partitions(self, topic: str, total: int) -> None:
        with refusals(KafkaError):
            self._admin.create_partitions({topic: total})

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        place = TopicPartition(topic, partition)
        with refusals(KafkaError):
            return int(self._admin.delete_records({place: before})[place]["low_watermark"])

    def configs(self, topic: str) -> dict[str, str | None]:
        with refusals(KafkaError):
            described = self._admin.describe_configs(
                [ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all"
            )
        return {name: entry["value"] for name, entry in described["topic"][topic].items()}

    def alter_config(self, topic: str, name: str, value: str) -> None:
        with refusals(KafkaError):
            change = ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})
            outcome = self._admin.alter_configs([change], raise_on_unknown=False)["topic"][topic]
        if code := re.match(r"\[Error (\d+)\]", outcome):
            raise Refused(int(code[1]), outcome)

    def join(self, topic: str, group: str, protocol: Protocol) -> Member:
        assert protocol == "classic"
        return _Member(self.bootstrap, topic, group)

    def _consumer(self) -> KafkaConsumer:
        return KafkaConsumer(
            bootstrap_servers=self.bootstrap, group_id=None, auto_offset_reset="none", fetch_max_wait_ms=50
        )


class _Member(Member):
    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self._consumer = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
            heartbeat_interval_ms=200,
        )

    def poll(self) -> list[Placed]:
        return placed(self._consumer.poll(timeout_ms=200))

    def commit(self) -> None:
        self._consumer.commit()

    def leave(self) -> None:
        self._consumer.close(autocommit=False)
