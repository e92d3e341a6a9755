"""Readers in a simulated world: one for each topic's whole life, and one that reads everything in the end."""

import asyncio

from riverlog import Consumer
from riverlog.client.errors import CorruptRecords, KafkaError, OffsetOutOfRange
from riverlog.model.ids import Offset, TopicPartition
from tests.simulation.ledger import COMPACTED_TOPIC, Label
from tests.simulation.machine import ADDRESS
from tests.simulation.scene import Scene, Topic


class Readers:
    """Readers of all topics: what they are given goes to the ledger."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    async def read_on(self, topic: Topic, incarnation: int, partitions: int) -> None:
        """Read a topic from the beginning, for as long as it lives, across all that happens to the node."""
        positions = dict.fromkeys(range(partitions), 0)
        while True:
            await self._scene.machine.serving()
            try:
                await self._read_for_a_while(topic, incarnation, positions)
            except KafkaError as error:
                self._scene.say(f"reader of {topic.name}: {error.code.name}")
                await asyncio.sleep(0.02)

    async def _read_for_a_while(self, topic: Topic, incarnation: int, positions: dict[int, int]) -> None:
        ports = self._scene.machine.ports
        names = {index: TopicPartition(topic.name, index) for index in positions}
        async with Consumer(ADDRESS, ports=ports, auto_offset_reset="none", request_timeout_ms=1_500) as consumer:
            consumer.assign(names.values())
            for index, position in positions.items():
                await consumer.seek(names[index], position)
            while True:
                try:
                    records = await consumer.poll(timeout_ms=400)
                except OffsetOutOfRange as error:
                    await self._skip_deleted(consumer, error.partition, positions)
                    continue
                for record in records:
                    self.show(topic, incarnation, record.partition, record.offset, record.key, record.value)
                    gap = record.offset - positions[record.partition]
                    if gap < 0 or (gap and topic.name != COMPACTED_TOPIC):
                        self._scene.ledger.blame(
                            f"{topic.name}-{record.partition}: a reader at {positions[record.partition]} "
                            f"was given {record.offset}"
                        )
                    positions[record.partition] = record.offset + 1

    async def _skip_deleted(self, consumer: Consumer, partition: TopicPartition, positions: dict[int, int]) -> None:
        """Go to the first record that is left; a reader whose position is behind all records was shown too much."""
        (start,) = (await consumer.beginning_offsets([partition])).values()
        (end,) = (await consumer.end_offsets([partition])).values()
        position = positions[partition.partition]
        if position > end and self._scene.durable:
            self._scene.ledger.blame(f"{partition}: a reader stands at {position}, but the log ends at {end}")
        positions[partition.partition] = min(max(start, position), end)
        await consumer.seek(partition, positions[partition.partition])

    def show(
        self, topic: Topic, incarnation: int, index: int, offset: int, key: bytes | None, value: bytes | None
    ) -> Label | None:
        """Note that a reader of this incarnation was given a record."""
        label = self._scene.ledger.show(topic.name, index, offset, key, value)
        if label is not None and label.incarnation != incarnation:
            self._scene.ledger.blame(f"{label} was read from incarnation {incarnation}")
        self._scene.say(f"{topic.name}-{index} shows {offset} {label}")
        return label

    async def end(self, topic: Topic) -> None:
        """Make a topic's reader end."""
        if topic.reader is not None:
            topic.reader.cancel()
            await asyncio.wait([topic.reader])
            if not topic.reader.cancelled() and (error := topic.reader.exception()) is not None:
                raise error
            topic.reader = None

    async def read_back(self, topic: Topic, index: int, consumer: Consumer) -> list[tuple[int, Label]]:
        """Read a partition from the beginning to its end; what the node refuses must be damaged."""
        partition = TopicPartition(topic.name, index)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        (end,) = (await consumer.end_offsets([partition])).values()
        read: list[tuple[int, Label]] = []
        while await consumer.position(partition) < end:
            try:
                records = await consumer.poll(timeout_ms=1_000)
            except CorruptRecords as error:
                await consumer.seek(partition, self._lose(topic, index, error.offset))
                continue
            for record in records:
                label = self.show(topic, topic.incarnation, index, record.offset, record.key, record.value)
                if label is not None:
                    read.append((record.offset, label))
        return read

    def _lose(self, topic: Topic, index: int, offset: int) -> int:
        """Note which offsets the node refuses because they are damaged; give the one behind them."""
        ledger = self._scene.ledger.partition(topic.name, topic.incarnation, index)
        node = self._scene.machine.node
        partition = node and node.parts.replicas.get(topic.name, index)
        known = partition and partition.log.quarantine.at(Offset(offset))
        if not ledger.rotten or not known:
            self._scene.ledger.blame(f"{topic.name}-{index}: offset {offset} is refused, but nothing is wrong with it")
            return offset + 1
        ledger.lost.update(range(known.flaw.first_offset, known.flaw.next_offset))
        self._scene.say(f"{topic.name}-{index} refuses {offset}")
        self._scene.counts["refused"] += 1
        return known.flaw.next_offset
