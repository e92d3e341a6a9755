"""The list of the transactions that belong to a batch, kept in a topic before the first of them is committed.

A pipeline has a topic of its own with one partition, whose last record counts. It is written in transactions of the
pipeline's transactional id: a driver that was replaced cannot write it.
"""

import json
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any, Final

from riverlog.client.admin.admin import Admin
from riverlog.client.consumer.consumer import Consumer
from riverlog.client.errors import KafkaError
from riverlog.client.producer.transaction_handover import AdoptingProducer, HandedTransaction
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition

_KEY: Final = b"batch"
_OFFSETS_BACK: Final = 1_000
"""How far the last record may lie before the end: behind it are markers, and what drivers before have left."""


@dataclass(frozen=True, slots=True)
class ListedBatch:
    """What is to be committed; `is_done` where all of it is."""

    query: str
    batch: int
    transactions: tuple[HandedTransaction, ...]
    is_done: bool = False
    run: str = ""
    """Which run of the query has listed it, where a batch may have several writes."""
    seen: int = 0
    """How many writes of the batch this run has made: those that were committed before count."""
    topics: tuple[str, ...] = ()
    """What each write of the batch that is committed has written, or with this list."""

    @property
    def writes(self) -> int:
        """Count the writes of the batch that are committed; one that was listed without counting was the only one."""
        return max(1, len(self.topics))

    def done(self) -> "ListedBatch":
        """Note that all of it is committed."""
        return replace(self, transactions=(), is_done=True)

    def write(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def read(cls, content: bytes) -> "ListedBatch":
        facts: dict[str, Any] = json.loads(content)
        transactions = tuple(HandedTransaction(**each) for each in facts.pop("transactions"))
        topics = tuple(facts.pop("topics", ()))
        return cls(transactions=transactions, topics=topics, **facts)


def topic_of(pipeline: str) -> str:
    """Name the topic of a pipeline's lists."""
    return f"__riverlog_sink_{sha256(pipeline.encode()).hexdigest()[:32]}"


async def last_list(bootstrap: str, pipeline: str, client: dict[str, Any]) -> ListedBatch | None:
    """Read what was listed last, and make the topic where there is none. No transaction of the pipeline is open."""
    topic = topic_of(pipeline)
    async with Admin(bootstrap, client_id=client["client_id"]) as admin:
        try:
            await admin.create_topic(topic, partitions=1, configs={"cleanup.policy": "compact"})
        except KafkaError as problem:
            if problem.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        else:
            return None
    partition = TopicPartition(topic, 0)
    async with Consumer(bootstrap, isolation_level="read_committed", **client) as consumer:
        consumer.assign([partition])
        end = (await consumer.end_offsets([partition]))[partition]
        start = (await consumer.beginning_offsets([partition]))[partition]
        await consumer.seek(partition, max(start, end - _OFFSETS_BACK))
        found = None
        while (consumer.held()[partition] or 0) < end:
            for record in await consumer.poll():
                if record.value is not None:
                    found = record.value
        return None if found is None else ListedBatch.read(found)


async def write_list(producer: AdoptingProducer, pipeline: str, listed: ListedBatch) -> None:
    """Keep a list; ProducerFenced where another driver has taken over."""
    async with producer.transaction():
        producer.send_soon(topic_of(pipeline), listed.write(), key=_KEY, partition=0)
