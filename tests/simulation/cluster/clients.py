"""The clients of a simulated cluster, each on a host of its own: administrators, producers, and consumers.

An administrator sends each request once, to a broker that it picks, and notes what came of it: done, refused, or not
known. What is not known may still be done later, so it lets that topic be. In the end the topics must be as noted.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from riverlog.client.consumer.consumer import Consumer
from riverlog.client.errors import KafkaError
from riverlog.client.network.connection import Connection
from riverlog.client.producer.producer import Producer
from riverlog.metadata.image import ConfigResourceType, MetadataImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address, TopicPartition
from riverlog.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from riverlog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.simulation.cluster.hosts import ClientHost

GROUP: Final = "readers"
Place = tuple[TopicPartition, int]
_ANSWER_SECONDS: Final = 8.0
_CONNECT_SECONDS: Final = 2.0
_UNKNOWN: Final = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION, ErrorCode.UNKNOWN_SERVER_ERROR)
_SETTING: Final = "retention.ms"


@dataclass
class KnownTopic:
    """What one topic must be, as far as its administrator knows."""

    name: str
    exists: bool = False
    partitions: int = 0
    retention: str | None = None
    is_known: bool = True
    """Whether all that was asked for it has an answer."""


@dataclass
class Acknowledged:
    """What was acknowledged to the clients and shown to them."""

    topics: dict[str, KnownTopic] = field(default_factory=dict)
    records: dict[Place, bytes] = field(default_factory=dict)
    shown: dict[Place, bytes] = field(default_factory=dict)
    given: dict[Place, bytes] = field(default_factory=dict)
    """What was shown to members of the group."""
    sent: set[bytes] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)


class Administrator:
    """Creates, changes and deletes topics of its own, through any broker."""

    def __init__(
        self, host: ClientHost, brokers: tuple[Address, ...], ledger: Acknowledged, report: Callable[[str], None]
    ) -> None:
        self._host = host
        self._brokers = brokers
        self._ledger = ledger
        self._report = report
        self._made = 0
        self._mine: list[KnownTopic] = []

    async def work(self) -> None:
        """Go on for ever."""
        while True:
            await asyncio.sleep(self._host.random.random() * 0.3)
            await self.ask_something()

    async def ask_something(self) -> None:
        """Ask for one change."""
        random = self._host.random
        mine = [topic for topic in self._mine if topic.is_known and topic.exists]
        if len(mine) < 3 or random.random() < 0.3:
            await self.create(random.randrange(1, 5))
            return
        topic = random.choice(mine)
        what = random.random()
        if what < 0.3:
            await self._delete(topic)
        elif what < 0.6:
            await self._grow(topic)
        else:
            await self._configure(topic)

    def forget(self, topic: KnownTopic) -> None:
        """Leave a topic as it is."""
        self._mine.remove(topic)

    async def create(self, partitions: int, name: str = "") -> KnownTopic:
        """Ask for a topic with a name that was never used."""
        self._made += 1
        topic = KnownTopic(name or f"{self._host.name}-{self._made}")
        self._mine.append(topic)
        self._ledger.topics[topic.name] = topic
        code = await self._ask(
            topic, CreateTopicsRequest([CreatableTopic(topic.name, partitions, 1)], timeout_ms=5_000), "topics"
        )
        if code is ErrorCode.NONE:
            topic.exists, topic.partitions = True, partitions
        elif code is ErrorCode.TOPIC_ALREADY_EXISTS:
            self._report(f"{topic.name} was asked for once, and exists already")
        return topic

    async def _delete(self, topic: KnownTopic) -> None:
        request = DeleteTopicsRequest([DeleteTopicState(topic.name)], timeout_ms=5_000)
        code = await self._ask(topic, request, "responses")
        if code is ErrorCode.NONE:
            topic.exists = False
        elif code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._report(f"{topic.name} is gone, or was never created")

    async def _grow(self, topic: KnownTopic) -> None:
        count = topic.partitions + self._host.random.randrange(1, 3)
        request = CreatePartitionsRequest([CreatePartitionsTopic(topic.name, count, None)], timeout_ms=5_000)
        code = await self._ask(topic, request, "results")
        if code is ErrorCode.NONE:
            topic.partitions = count
        elif code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_PARTITIONS):
            self._report(f"{topic.name} does not have {topic.partitions} partitions: {code.name}")

    async def _configure(self, topic: KnownTopic) -> None:
        value = str(self._host.random.randrange(10**9, 2 * 10**9))
        resource = AlterConfigsResource(ConfigResourceType.TOPIC, topic.name, [AlterableConfig(_SETTING, 0, value)])
        code = await self._ask(topic, IncrementalAlterConfigsRequest([resource]), "responses")
        if code is ErrorCode.NONE:
            topic.retention = value
        elif code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._report(f"{topic.name} is gone, or was never created")

    async def _ask(self, topic: KnownTopic, request: Any, parts: str) -> ErrorCode | None:
        """Send a request once; return what it was answered with, None where that is not known."""
        ports, address = self._host.ports(), self._host.random.choice(self._brokers)
        counts = self._ledger.counts
        try:
            connection = await Connection.open(
                ports.network,
                address,
                client_id=self._host.name,
                connect_seconds=_CONNECT_SECONDS,
                request_seconds=_CONNECT_SECONDS,
            )
        except KafkaError:
            counts["not asked"] += 1
            return ErrorCode.NETWORK_EXCEPTION
        topic.is_known = False
        try:
            response = await connection.request(request, seconds=_ANSWER_SECONDS)
        except KafkaError:
            counts["unknown"] += 1
            return None
        finally:
            connection.close()
        code = ErrorCode(getattr(response, parts)[0].error_code)
        topic.is_known = code not in _UNKNOWN
        counts["changes" if code is ErrorCode.NONE else code.name] += 1
        return code


async def produce(host: ClientHost, bootstrap: list[str], topic: str, ledger: Acknowledged) -> None:
    """Send numbered records for ever, and note what was acknowledged."""
    number = 0
    while True:
        try:
            async with Producer(
                bootstrap, ports=host.ports(), request_timeout_ms=3_000, delivery_timeout_ms=15_000, block_ms_max=5_000
            ) as producer:
                while True:
                    number += 1
                    await asyncio.sleep(host.random.random() * 0.2)
                    value = b"%s %d" % (host.name.encode(), number)
                    ledger.sent.add(value)
                    sent = await producer.send(topic, value, partition=number % 3)
                    ledger.counts["records"] += 1
                    if sent.offset >= 0:
                        ledger.records[TopicPartition(topic, sent.partition), sent.offset] = value
        except KafkaError:
            ledger.counts["records in doubt"] += 1
            await asyncio.sleep(host.random.random())


async def consume(host: ClientHost, bootstrap: list[str], topic: str, ledger: Acknowledged, partitions: int) -> None:
    """Read for ever, from the beginning now and then, and note what was shown."""
    while True:
        try:
            async with Consumer(bootstrap, ports=host.ports(), request_timeout_ms=3_000) as consumer:
                names = [TopicPartition(topic, index) for index in range(partitions)]
                consumer.assign(names)
                await consumer.seek_to_beginning(*names)
                ends_at = asyncio.get_running_loop().time() + 8
                while asyncio.get_running_loop().time() < ends_at:
                    for record in await consumer.poll():
                        place = (TopicPartition(record.topic, record.partition), record.offset)
                        ledger.counts["shown"] += 1
                        ledger.shown.setdefault(place, record.value or b"")
                        if ledger.shown[place] != record.value:
                            ledger.counts["altered"] += 1
        except KafkaError:
            await asyncio.sleep(host.random.random())


async def consume_in_group(host: ClientHost, bootstrap: list[str], topic: str, ledger: Acknowledged) -> None:
    """Read as a member of the group, leave and come back, and note what was shown; what was dealt with is committed."""
    while True:
        try:
            async with Consumer(
                bootstrap,
                group=GROUP,
                auto_offset_reset="earliest",
                auto_commit_interval_ms=500,
                session_timeout_ms=6_000,
                heartbeat_interval_ms=1_000,
                request_timeout_ms=3_000,
                ports=host.ports(),
            ) as consumer:
                consumer.subscribe([topic])
                ends_at = asyncio.get_running_loop().time() + 2 + host.random.random() * 15
                while asyncio.get_running_loop().time() < ends_at:
                    for record in await consumer.poll():
                        ledger.counts["shown to the group"] += 1
                        place = (TopicPartition(record.topic, record.partition), record.offset)
                        ledger.given[place] = record.value or b""
        except KafkaError:
            ledger.counts["groups asked in vain"] += 1
            await asyncio.sleep(host.random.random())


def wrong_commits(ledger: Acknowledged, committed: dict[TopicPartition, int], found: Iterable[Place]) -> list[str]:
    """Return what lies below a committed offset and was given to no member of the group."""
    return [
        f"{partition} at {offset} was given to nobody, and {committed[partition]} is committed"
        for partition, offset in found
        if offset < committed[partition] and (partition, offset) not in ledger.given
    ]


def wrong_topics(ledger: Acknowledged, image: MetadataImage) -> list[str]:
    """Return which topics are not as was acknowledged."""
    wrong = []
    for known in ledger.topics.values():
        topic = image.topic(known.name)
        if not known.is_known:
            continue
        if (topic is not None) is not known.exists:
            wrong.append(f"{known.name} {'was acknowledged and is lost' if known.exists else 'is there, unasked'}")
        elif topic is not None:
            if topic.partition_count != known.partitions:
                wrong.append(f"{known.name} has {topic.partition_count} partitions instead of {known.partitions}")
            if image.topic_overrides(known.name).get(_SETTING) != known.retention:
                wrong.append(f"{known.name} has not the settings that were acknowledged")
    return wrong
