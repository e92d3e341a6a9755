"""Numbered records, and what the queries of `driver.py` must make of them: each once, in order, whatever is killed."""

import json
from collections import Counter
from typing import Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.e2e.clients import create_topic, read_all
from tests.spark.drivers import Query
from tests.support.waiting import until

INPUT: Final = "numbers"
PARTITIONS: Final = 2
KEYS: Final = 5
BATCH_RECORDS: Final = 8
SECONDS_MAX: Final = 300.0


class Numbers:
    """The input of the queries, and what they have made of it so far."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.written: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
        for topic in (INPUT, "copies", "tallies"):
            create_topic(bootstrap, topic, partitions=PARTITIONS)

    @property
    def count(self) -> int:
        return sum(map(len, self.written))

    def write(self, batches: int = 3) -> None:
        """Write as much as so many batches take."""
        for number in range(self.count, self.count + batches * BATCH_RECORDS):
            partition = number % PARTITIONS
            self._producer.produce(INPUT, str(number).encode(), key=str(number % KEYS).encode(), partition=partition)
            self.written[partition].append(number)
        assert self._producer.flush(SECONDS_MAX) == 0

    def query(self, name: str, checkpoints: str) -> Query:
        """Name a query over this input, with its checkpoint below this address."""
        return Query(
            query=name,
            bootstrap=self.bootstrap,
            checkpoint=f"{checkpoints}/pipelines/{name}",
            input=INPUT,
            output=name,
            records_max=BATCH_RECORDS,
        )

    # What came of it ----------------------------------------------------------------------------------------------

    def copies(self, *, isolation: str = "read_committed") -> list[list[int]]:
        """Read the copies of each partition."""
        return [
            [int(value.removeprefix(b"copy of ")) for _, value in self._read("copies", index, isolation)]
            for index in range(PARTITIONS)
        ]

    def tallies(self) -> dict[str, list[dict[str, Any]]]:
        """Read all tallies of each key, from the first to the last."""
        by_key: dict[str, list[dict[str, Any]]] = {}
        for index in range(PARTITIONS):
            for _, value in self._read("tallies", index, "read_committed"):
                tally = json.loads(value)
                by_key.setdefault(tally["key"], []).append(tally)
        return by_key

    def _read(self, name: str, partition: int, isolation: str) -> list[tuple[int, bytes]]:
        return read_all(self.bootstrap, TopicPartition(name, partition), isolation=isolation)

    def offsets(self, name: str) -> list[int]:
        """Return what the group of a query has committed, by partition."""
        asked = ConsumerGroupTopicPartitions(name, [TopicPartition(INPUT, index) for index in range(PARTITIONS)])
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        found = admin.list_consumer_group_offsets([asked])[name].result(SECONDS_MAX)
        return [max(each.offset, 0) for each in found.topic_partitions]

    # What must be so ----------------------------------------------------------------------------------------------

    def check_copies(self) -> None:
        """The copies that are seen are the first of those that are to be."""
        copies = self.copies()
        assert copies == [written[: len(seen)] for written, seen in zip(self.written, copies, strict=True)]

    def check_group(self) -> None:
        """The group of the copies stands directly behind what is seen, as soon as all markers have come."""
        until(
            lambda: list(map(len, self.copies())) == self.offsets("copies"),
            lambda: f"{list(map(len, self.copies()))} copies, and the group stands at {self.offsets('copies')}",
        )

    def check_tallies(self) -> None:
        """Every tally goes on from the one before it: what was seen is in the state, and the other way round."""
        for key, tallies in self.tallies().items():
            before: Counter[str] = Counter()
            for tally in tallies:
                tokens = Counter(tally["tokens"])
                assert before <= tokens, f"{key}: {before - tokens} was seen, and is not in the state"
                assert tally["weight"] == sum(int(token, 16) % 1_000_000 for token in tally["tokens"])
                before = tokens

    def is_done(self, name: str) -> bool:
        """Return whether a query has come to the end of what is written."""
        if name == "copies":
            return sum(map(len, self.copies())) >= self.count
        return sum(len(tally["tokens"]) for tally in self.last_tallies().values()) >= self.count

    def last_tallies(self) -> dict[str, dict[str, Any]]:
        return {key: tallies[-1] for key, tallies in self.tallies().items()}
