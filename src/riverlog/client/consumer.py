"""The consumer: partitions and positions in, records out.

    async with Consumer("127.0.0.1:9092", auto_offset_reset="earliest") as consumer:
        consumer.assign(await consumer.partitions("orders"))
        async for record in consumer:
            print(record.offset, record.value)

Records of a partition come in order and each once; partitions take turns. Fetching goes on ahead of the reader, up to
`prefetch_bytes_max`. A position is the offset of the next record that the reader will be given.
"""

import asyncio
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Final, Literal, Self

from riverlog.client.cluster import Cluster
from riverlog.client.errors import Closed, CorruptRecords, KafkaError
from riverlog.client.fetched import AssignedPartition, ConsumerRecord
from riverlog.client.fetcher import Fetcher, FetchingRules
from riverlog.client.offsets import FoundOffset, IsolationLevel, OffsetQuestion, list_offsets
from riverlog.client.ports import Ports
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_OFFSET, Offset, TopicPartition

_ISOLATION: Final = {
    "read_uncommitted": IsolationLevel.READ_UNCOMMITTED,
    "read_committed": IsolationLevel.READ_COMMITTED,
}


class Consumer:
    """Reads partitions. Use it as an async context manager, or call `start` and `close`."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        auto_offset_reset: Literal["earliest", "latest", "none"] = "latest",
        isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
        fetch_wait_ms_max: int = 500,
        fetch_bytes_min: int = 1,
        fetch_bytes_max: int = 50 * 1024 * 1024,
        partition_bytes_max: int = 1024 * 1024,
        prefetch_bytes_max: int = 64 * 1024 * 1024,
        request_timeout_ms: int = 30_000,
        retry_backoff_ms: int = 100,
        client_id: str = "riverlog-consumer",
        ports: Ports | None = None,
    ) -> None:
        """Describe the consumer; nothing is connected before `start`.

        `auto_offset_reset` says where to read a partition that has no position, or whose position is gone: at its
        first record, behind its last, or nowhere ("none" raises OffsetOutOfRange).
        """
        if auto_offset_reset not in ("earliest", "latest", "none"):
            raise ValueError(f'auto_offset_reset={auto_offset_reset!r}: choose "earliest", "latest" or "none"')
        if isolation_level not in _ISOLATION:
            raise ValueError(f'isolation_level={isolation_level!r}: choose "read_uncommitted" or "read_committed"')
        self._rules = FetchingRules(
            isolation=_ISOLATION[isolation_level],
            reset=None if auto_offset_reset == "none" else auto_offset_reset,
            wait_ms_max=fetch_wait_ms_max,
            fetch_bytes_min=fetch_bytes_min,
            fetch_bytes_max=fetch_bytes_max,
            partition_bytes_max=partition_bytes_max,
            prefetch_bytes_max=prefetch_bytes_max,
        )
        self._cluster = Cluster(
            bootstrap,
            ports=ports,
            client_id=client_id,
            request_timeout_ms=request_timeout_ms,
            retry_backoff_ms=retry_backoff_ms,
        )
        self._arrived = asyncio.Event()
        self._fetcher = Fetcher(self._cluster, self._rules, self._arrived.set)
        self._running: asyncio.Task[None] | None = None
        self._closed = False
        self._reading: _Reading | None = None
        self._turns: list[AssignedPartition] = []  # the partition to read from next comes first

    async def start(self) -> Self:
        """Reach the cluster; raise Unreachable where that fails."""
        try:
            await self._cluster.start()
        except BaseException:
            await self._cluster.close()
            raise
        self._running = asyncio.create_task(self._fetcher.run())
        return self

    async def close(self) -> None:
        """Let go of all connections; calls that wait end with Closed."""
        self._closed = True
        self._arrived.set()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        await self._cluster.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.close()

    # What is read -----------------------------------------------------------------------------------------

    async def partitions(self, topic: str) -> list[TopicPartition]:
        """Give all partitions of a topic."""
        found = await self._cluster.topic(topic)
        return [TopicPartition(topic, partition.index) for partition in found.partitions]

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions and no others; those that were read before go on where they are."""
        wanted = list(dict.fromkeys(TopicPartition(*partition) for partition in partitions))
        known = self._fetcher.assigned
        self._fetcher.assigned = {partition: known.get(partition, AssignedPartition(partition)) for partition in wanted}
        self._turns = list(self._fetcher.assigned.values())
        self._cluster.watch({partition.topic for partition in wanted})
        if self._reading is not None and self._reading.state.partition not in self._fetcher.assigned:
            self._reading = None
        self._fetcher.wake()

    def assignment(self) -> list[TopicPartition]:
        """Give the partitions that are read."""
        return list(self._fetcher.assigned)

    def pause(self, *partitions: TopicPartition) -> None:
        """Give out no records of these partitions until `resume`; their positions stay."""
        for state in self._states(partitions):
            state.paused = True
            if self._reading is not None and self._reading.state is state:
                self._jump(state, state.position)

    def resume(self, *partitions: TopicPartition) -> None:
        for state in self._states(partitions):
            state.paused = False
        self._fetcher.wake()

    # Positions --------------------------------------------------------------------------------------------

    async def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read on at this offset. Async like its siblings, though nobody needs to be asked."""
        if offset < 0:
            raise ValueError(f"offset {offset} cannot be sought; use seek_to_beginning or seek_to_end")
        self._jump(self._state(partition), Offset(offset))

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Read on at the first record; without arguments in all assigned partitions."""
        await self._seek_to("earliest", partitions)

    async def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Read on behind the last record; without arguments in all assigned partitions."""
        await self._seek_to("latest", partitions)

    async def seek_to_time(self, partition: TopicPartition, timestamp_ms: int) -> Offset:
        """Read on at the first record that is at least as young; give its offset, the end's where there is none."""
        state = self._state(partition)
        found = (await self.list_offsets({state.partition: timestamp_ms}))[state.partition].offset
        if found == NO_OFFSET:
            found = (await self.list_offsets({state.partition: "latest"}))[state.partition].offset
        self._jump(state, found)
        return found

    async def position(self, partition: TopicPartition) -> Offset:
        """Give the offset of the next record that the reader will get."""
        state = self._state(partition)
        while state.position is None:
            self._raise_problem()
            await self._wait()
        return state.position

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Give the offset of each partition's first record."""
        found = await self.list_offsets(dict.fromkeys(partitions, "earliest"))
        return {partition: entry.offset for partition, entry in found.items()}

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Give the offset behind each partition's last record, as far as the isolation level lets it be read."""
        found = await self.list_offsets(dict.fromkeys(partitions, "latest"))
        return {partition: entry.offset for partition, entry in found.items()}

    async def list_offsets(self, questions: dict[TopicPartition, OffsetQuestion]) -> dict[TopicPartition, FoundOffset]:
        """Give offsets by place or time, as `Admin.list_offsets` does, at this consumer's isolation level."""
        return await list_offsets(self._cluster, questions, isolation=self._rules.isolation)

    # Reading ----------------------------------------------------------------------------------------------

    async def poll(self, timeout_ms: float = 500, max_records: int = 500) -> list[ConsumerRecord]:
        """Give what has been fetched, waiting up to `timeout_ms` for the first record; an empty list when none came."""
        await asyncio.sleep(0)  # a reader with much in store must not keep others, nor its own fetches, from running
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while True:
                    records = self._take(max_records)
                    if records:
                        return records
                    await self._wait()
        except TimeoutError:
            return self._take(max_records)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        if self._reading is None:
            await asyncio.sleep(0)
        while True:
            records = self._take(1)
            if records:
                return records[0]
            await self._wait()

    def __repr__(self) -> str:
        partitions = ", ".join(map(str, self._fetcher.assigned)) or "nothing assigned"
        return f"<Consumer for {', '.join(map(str, self._cluster.bootstrap))}, {partitions}>"

    # Inside -----------------------------------------------------------------------------------------------

    def _take(self, max_records: int) -> list[ConsumerRecord]:
        """Give up to `max_records` of what is here, and move the positions behind them."""
        self._raise_problem()
        taken: list[ConsumerRecord] = []
        while len(taken) < max_records:
            reading = self._reading
            if reading is None:
                try:
                    reading = self._reading = self._next_reading()
                except CorruptRecords:
                    if taken:
                        break  # these first; the next call comes to the same place again
                    raise
                if reading is None:
                    break
            part = reading.records[reading.index : reading.index + max_records - len(taken)]
            taken += part
            reading.index += len(part)
            if reading.index == len(reading.records):
                reading.state.position = reading.next_offset
                self._reading = None
            else:
                reading.state.position = reading.records[reading.index].offset
        return taken

    def _next_reading(self) -> "_Reading | None":
        """Decode the next batch of the next partition that has one; a partition keeps its turn for a whole chunk."""
        for _ in range(len(self._turns)):
            state = self._turns[0]
            if state.position is not None and not state.paused:
                chunks = len(state.chunks)
                try:
                    batch = state.next_batch()
                except CorruptRecords:
                    state.jump(state.position)  # perhaps the wire broke it: the next fetch will tell
                    self._fetcher.wake()
                    raise
                if len(state.chunks) < chunks:
                    self._fetcher.wake()
                if batch is not None:
                    return _Reading(state, batch.records, batch.next_offset)
            self._turns.append(self._turns.pop(0))
        return None

    def _raise_problem(self) -> None:
        if self._closed:
            raise Closed("consumer")
        for state in self._fetcher.assigned.values():
            if state.problem is not None:
                problem, state.problem = state.problem, None
                self._fetcher.wake()
                raise problem

    async def _wait(self) -> None:
        """Wait until something new may be there."""
        if self._running is None:
            raise KafkaError(
                ErrorCode.NETWORK_EXCEPTION,
                'the consumer is not started; write "async with Consumer(...) as consumer:", or await its start()',
            )
        if self._running.done() and not self._closed:
            self._running.result()
        self._arrived.clear()
        await self._arrived.wait()

    async def _seek_to(self, place: OffsetQuestion, partitions: Sequence[TopicPartition]) -> None:
        states = self._states(partitions)
        found = await self.list_offsets({state.partition: place for state in states})
        for state in states:
            self._jump(state, found[state.partition].offset)

    def _jump(self, state: AssignedPartition, offset: Offset | None) -> None:
        state.jump(offset)
        if self._reading is not None and self._reading.state is state:
            self._reading = None
        self._fetcher.wake()

    def _states(self, partitions: Sequence[TopicPartition]) -> list[AssignedPartition]:
        return [self._state(partition) for partition in partitions or self._fetcher.assigned]

    def _state(self, partition: TopicPartition) -> AssignedPartition:
        state = self._fetcher.assigned.get(TopicPartition(*partition))
        if state is None:
            raise ValueError(f"{TopicPartition(*partition)} is not assigned; call consumer.assign([...]) first")
        return state


class _Reading:
    """A decoded batch that the reader is in."""

    __slots__ = ("index", "next_offset", "records", "state")

    def __init__(self, state: AssignedPartition, records: list[ConsumerRecord], next_offset: Offset) -> None:
        self.state = state
        self.records = records
        self.next_offset = next_offset
        self.index = 0
