"""A checkpoint store without a node: its topic is two lists in memory, which may be compacted, or fail in mid-write."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from random import Random

from riverlog.checkpoints.records import CHUNKS, FACTS, CheckpointRecord, chunk_owner
from riverlog.checkpoints.store import Store
from riverlog.client.consumer.fetched_records import ConsumerRecord
from riverlog.client.ports import Ports
from riverlog.model.ids import NO_TOPIC_ID, LeaderEpoch, Offset
from tests.support.network import MemoryNetwork
from tests.support.virtual_time import VirtualClock


class MemoryTopic:
    """What is kept: it outlives every store."""

    def __init__(self) -> None:
        self.partitions: tuple[list[ConsumerRecord], list[ConsumerRecord]] = ([], [])
        self.ends = [0, 0]
        self.writer = 0
        """How many journals were opened: the last one may write."""

    def append(self, record: CheckpointRecord) -> int:
        offset = self.ends[record.partition]
        self.ends[record.partition] += 1
        self.partitions[record.partition].append(
            ConsumerRecord("t", record.partition, Offset(offset), 0, record.key, record.value, (), LeaderEpoch(0))
        )
        return offset

    def compact(self) -> None:
        """Keep the last word about each key, and no tombstone."""
        for partition in self.partitions:
            last = {record.key: record.offset for record in partition}
            partition[:] = [
                record for record in partition if last[record.key] == record.offset and record.value is not None
            ]

    def chunk_owners(self) -> set[str]:
        """Name the files that have chunks."""
        last = {record.key: record.value for record in self.partitions[CHUNKS]}
        return {owner[0] for key, value in last.items() if value is not None and (owner := chunk_owner(key))}


class MemoryJournal:
    """The Journal's interface over a MemoryTopic."""

    def __init__(self, topic: MemoryTopic) -> None:
        self.topic = topic
        self.transactions: list[int] = []
        """How many records each transaction had."""
        self.fails = False
        self.topic_id = NO_TOPIC_ID
        self._number = -1

    async def open(self) -> None:
        self.topic.writer += 1
        self._number = self.topic.writer

    async def close(self) -> None:
        await asyncio.sleep(0)

    async def check(self) -> None:
        await asyncio.sleep(0)

    async def facts(self) -> AsyncIterator[ConsumerRecord]:
        for record in list(self.topic.partitions[FACTS]):
            yield record

    async def chunks(self, first_offset: int) -> AsyncIterator[ConsumerRecord]:
        for record in list(self.topic.partitions[CHUNKS]):
            if record.offset >= first_offset:
                yield record

    async def chunks_end(self) -> int:
        return self.topic.ends[CHUNKS]

    async def read(self, partition: int, offset: int) -> ConsumerRecord | None:
        await asyncio.sleep(0)
        return next((record for record in self.topic.partitions[partition] if record.offset == offset), None)

    async def write(self, records: Sequence[CheckpointRecord]) -> list[int]:
        await asyncio.sleep(0.001)
        if self.fails or self._number != self.topic.writer:
            raise ConnectionError("the topic is out of reach")
        self.transactions.append(len(records))
        return [self.topic.append(record) for record in records]


class NoOwners:
    """No sink has said anything, so that nobody is asked about batches."""

    async def close(self) -> None:
        await asyncio.sleep(0)


class NoGroups(NoOwners):
    """What groups would show goes nowhere."""

    async def commit(self, group: str, offsets: object) -> None:
        await asyncio.sleep(0)


def memory_store(topic: MemoryTopic) -> Store:
    """Make a store that is to be opened, on virtual time."""
    ports = Ports(MemoryNetwork(), VirtualClock(), Random(topic.writer))
    return Store(MemoryJournal(topic), NoOwners(), NoGroups(), ports)  # type: ignore[arg-type]


async def opened(topic: MemoryTopic) -> Store:
    store = memory_store(topic)
    await store.open()
    return store


async def put(store: Store, path: str, content: bytes, *, overwrite: bool = True) -> None:
    """Upload a file in parts, as the network brings them."""
    upload = store.upload(path, overwrite=overwrite, user="ada")
    try:
        for start in range(0, len(content), 100_000):
            await upload.write(content[start : start + 100_000])
        await upload.finish()
    except BaseException:
        await upload.discard()
        raise


async def read(store: Store, path: str, offset: int = 0, length: int = 2**40) -> bytes:
    file = store.storage.file(path)
    return b"".join([part async for part in store.storage.content(file, offset, min(length, file.facts.size - offset))])
