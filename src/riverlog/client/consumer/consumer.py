"""The consumer: a subscription in, records out.

    async with Consumer("127.0.0.1:9092", group="billing", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["orders"])
        async for record in consumer:
            print(record.offset, record.value)

Records of a partition come in order and each once; partitions take turns. Fetching goes on ahead of the reader, up to
`prefetch_bytes_max`. A position is the offset of the next record that the reader will be given. Members of a group
share the partitions of their topics, and go on where the group has committed; without a group, `assign` says what is
read.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, Self

from riverlog.client.arguments import check_whole, checked_offset, checked_partition, checked_text, checked_texts
from riverlog.client.consumer.assignors import ASSIGNORS, COOPERATIVE_STICKY
from riverlog.client.consumer.commits import CommittedOffset, GroupMetadata, checked_commit
from riverlog.client.consumer.fetched_records import AssignedPartition, ConsumerRecord
from riverlog.client.consumer.fetcher import Fetcher, FetchingRules
from riverlog.client.consumer.group import Group, GroupProtocol, Listener, Listeners
from riverlog.client.consumer.membership import GroupRules, Interest
from riverlog.client.errors import Closed, CorruptRecords, KafkaError
from riverlog.client.lifetime import Startable
from riverlog.client.network.cluster import Cluster
from riverlog.client.network.security import Security
from riverlog.client.offsets import FoundOffset, IsolationLevel, OffsetQuestion, list_offsets
from riverlog.client.ports import Ports
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_OFFSET, Offset, TopicPartition

_ISOLATION: Final = {
    "read_uncommitted": IsolationLevel.READ_UNCOMMITTED,
    "read_committed": IsolationLevel.READ_COMMITTED,
}


class Consumer(Startable):
    """Reads partitions. Use it as an async context manager, or call `start` and `close`."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        group: str | None = None,
        auto_offset_reset: Literal["earliest", "latest", "none"] = "latest",
        isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
        fetch_wait_ms_max: int = 500,
        fetch_bytes_min: int = 1,
        fetch_bytes_max: int = 50 * 1024 * 1024,
        partition_bytes_max: int = 1024 * 1024,
        prefetch_bytes_max: int = 64 * 1024 * 1024,
        group_protocol: GroupProtocol = "classic",
        group_instance_id: str | None = None,
        assignor: str | None = None,
        auto_commit: bool = True,
        auto_commit_interval_ms: int = 5_000,
        session_timeout_ms: int = 45_000,
        heartbeat_interval_ms: int = 3_000,
        max_poll_interval_ms: int = 300_000,
        metadata_age_max_ms: int = 300_000,
        request_timeout_ms: int = 30_000,
        retry_backoff_ms: int = 100,
        client_id: str = "riverlog-consumer",
        security: Security | None = None,
        ports: Ports | None = None,
    ) -> None:
        """Describe the consumer; nothing is connected before `start`.

        `auto_offset_reset` says where to read a partition that has no position, or whose position is gone: at its
        first record, behind its last, or nowhere ("none" raises OffsetOutOfRange).

        With a `group`, `subscribe` shares topics with its other members, and every `auto_commit_interval_ms` the
        positions of all records that were dealt with are committed: when the next ones are asked for. A member that
        asks for none within `max_poll_interval_ms` loses its partitions. `group_instance_id` names a member that keeps
        its place over a restart. `group_protocol="consumer"` lets the broker assign (KIP-848), by `assignor` "uniform"
        or "range"; with "classic" a member does, by "cooperative-sticky" or "range".
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
            metadata_age_max_ms=metadata_age_max_ms,
            security=security,
        )
        self._arrived = asyncio.Event()
        self._group: Group | None = None
        if group is not None:
            if group_instance_id is not None:
                checked_text("group_instance_id", group_instance_id)
            if group_protocol not in ("classic", "consumer"):
                raise ValueError(f'group_protocol={group_protocol!r}: choose "classic" or "consumer"')
            if group_protocol == "classic" and (assignor or COOPERATIVE_STICKY) not in ASSIGNORS:
                raise ValueError(f"assignor={assignor!r}: choose {' or '.join(map(repr, ASSIGNORS))}")
            self._group = Group(
                self._cluster,
                GroupRules(
                    group=checked_text("a group's name", group),
                    instance_id=group_instance_id,
                    assignor=assignor or (COOPERATIVE_STICKY if group_protocol == "classic" else None),
                    session_timeout_ms=session_timeout_ms,
                    heartbeat_interval_ms=heartbeat_interval_ms,
                    max_poll_interval_ms=max_poll_interval_ms,
                ),
                protocol=group_protocol,
                auto_commit_seconds=auto_commit_interval_ms / 1000 if auto_commit else None,
                require_stable=isolation_level == "read_committed",
                signal=self._arrived.set,
            )
        self._fetcher = Fetcher(self._cluster, self._rules, self._arrived.set)
        self._running: asyncio.Task[None] | None = None
        self._closed = False
        self._reading: _Reading | None = None
        self._turns: list[AssignedPartition] = []  # the partition to read from next comes first

    async def start(self) -> Self:
        """Reach the cluster; raise Unreachable where that fails, and then it may be tried again."""
        async with self._cluster.starting():
            pass
        self._running = asyncio.create_task(self._fetcher.run())
        return self

    async def close(self) -> None:
        """Commit and leave the group, let go of all connections; calls that wait end with Closed."""
        if self._group is not None and not self._closed:
            await self._group.unsubscribe(self)
        self._closed = True
        self._arrived.set()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        await self._cluster.close()

    @property
    def request_seconds(self) -> float:
        """Return for how long an answer is waited for."""
        return self._cluster.request_seconds

    @property
    def isolation_level(self) -> str:
        """Return "read_committed" or "read_uncommitted"."""
        return self._rules.isolation.name.lower()

    # What is read -----------------------------------------------------------------------------------------

    async def partitions(self, topic: str) -> list[TopicPartition]:
        """Return all partitions of a topic."""
        found = await self._cluster.topic(topic)
        return [TopicPartition(topic, partition.index) for partition in found.partitions]

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions and no others; those that were read before go on where they are."""
        if self._group is not None and self._group.is_subscribed:
            raise ValueError(
                "the group assigns this consumer's partitions; unsubscribe() first, or leave it to the group"
            )
        self.hold(dict.fromkeys(map(checked_partition, partitions)))

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | None = None,
        on_assigned: Listener | None = None,
        on_revoked: Listener | None = None,
        on_lost: Listener | None = None,
    ) -> None:
        """Share these topics, or all whose whole name matches the pattern, with the other members of the group.

        Partitions come and go while records are asked for. `on_assigned` is told of new ones before their first record,
        `on_revoked` of those that will be others' as soon as it returns, `on_lost` (or `on_revoked`, where there is
        none) of those that are others' already. All may be async functions.
        """
        if self._group is None:
            raise ValueError('subscribe() shares topics among a group: give its name, Consumer(..., group="billing")')
        interest = Interest(frozenset(checked_texts("a topic's name", topics)), pattern)
        if (pattern is None) is not bool(interest.topics):
            raise ValueError("subscribe to topics by name or by a pattern: give one of the two")
        if self._running is None:
            raise _not_started()
        if not self._group.is_subscribed:
            self.hold({})
        self._group.subscribe(interest, Listeners(on_assigned, on_revoked, on_lost))

    async def unsubscribe(self) -> None:
        """Commit, let go of all partitions and leave the group, or read nothing any more where there is none."""
        if self._group is not None:
            await self._group.unsubscribe(self)
        self.hold({})

    def held(self) -> dict[TopicPartition, Offset | None]:
        """Return the partitions that are read, with the position in each as far as it is known."""
        return {partition: state.position for partition, state in self._fetcher.assigned.items()}

    def hold(self, partitions: Mapping[TopicPartition, Offset | None]) -> None:
        """Read these and no others: new ones from this offset on, those that were read before where they are."""
        known = self._fetcher.assigned
        states: dict[TopicPartition, AssignedPartition] = {}
        for partition, offset in partitions.items():
            state = states[partition] = known.get(partition) or AssignedPartition(partition)
            if partition not in known and offset is not None:
                state.jump(offset)
        self._fetcher.assigned = states
        self._turns = list(states.values())
        self._cluster.watch({partition.topic for partition in states})
        if self._reading is not None and self._reading.state.partition not in states:
            self._reading = None
        self._fetcher.wake()

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that are read."""
        return list(self._fetcher.assigned)

    def is_settled(self) -> bool:
        """Return whether `assignment` is what the group gave this member, be it nothing; False while it joins."""
        return self._group is None or self._group.is_settled

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until `resume`; their positions stay."""
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
        if offset in (-1, -2):
            raise ValueError(f"offset {offset} cannot be sought; use seek_to_beginning or seek_to_end")
        self._jump(self._state(partition), checked_offset(offset))

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Read on at the first record; without arguments in all assigned partitions."""
        await self._seek_to("earliest", partitions)

    async def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Read on behind the last record; without arguments in all assigned partitions."""
        await self._seek_to("latest", partitions)

    async def seek_to_time(self, partition: TopicPartition, timestamp_ms: int) -> Offset:
        """Read on at the first record that is at least as young; give its offset, the end's where there is none."""
        state = self._state(partition)
        check_whole("timestamp_ms", timestamp_ms)
        found = (await self.list_offsets({state.partition: timestamp_ms}))[state.partition].offset
        if found == NO_OFFSET:
            found = (await self.list_offsets({state.partition: "latest"}))[state.partition].offset
        self._jump(state, found)
        return found

    async def position(self, partition: TopicPartition) -> Offset:
        """Return the offset of the next record that the reader will get."""
        state = self._state(partition)
        while state.position is None:
            self._raise_problem()
            await self._wait()
        return state.position

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset | int] | None = None) -> None:
        """Write down, for the whole group, where to go on: at these offsets, or where this reader stands.

        Of a partition whose position is not known yet there is nothing to write down.
        """
        group = self._require_group()
        if offsets is None:
            await group.commit_positions(self)
        else:
            await group.commit({checked_partition(partition): checked_commit(at) for partition, at in offsets.items()})

    def group_metadata(self) -> GroupMetadata:
        """Return the group and this member's place in it, for a transaction that commits its offsets."""
        return self._require_group().metadata()

    async def rewind(self) -> None:
        """Read on where the group has committed, or where nothing is, as `auto_offset_reset` says."""
        for partition, found in (await self.committed()).items():
            if partition in self._fetcher.assigned:
                self._jump(self._fetcher.assigned[partition], None if found is None else found.offset)

    async def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, CommittedOffset | None]:
        """Return what the group has committed, None where that is nothing; without arguments of all assigned ones."""
        wanted = [TopicPartition(*partition) for partition in partitions or self._fetcher.assigned]
        return await self._require_group().committed(wanted)

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Return the offset of each partition's first record."""
        found = await self.list_offsets(dict.fromkeys(partitions, "earliest"))
        return {partition: entry.offset for partition, entry in found.items()}

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Return the offset behind each partition's last record, as far as the isolation level lets it be read."""
        found = await self.list_offsets(dict.fromkeys(partitions, "latest"))
        return {partition: entry.offset for partition, entry in found.items()}

    async def list_offsets(self, questions: dict[TopicPartition, OffsetQuestion]) -> dict[TopicPartition, FoundOffset]:
        """Return offsets by place or time, as `Admin.list_offsets` does, at this consumer's isolation level."""
        return await list_offsets(self._cluster, questions, isolation=self._rules.isolation)

    # Reading ----------------------------------------------------------------------------------------------

    async def poll(self, timeout_ms: float = 500, max_records: int = 500) -> list[ConsumerRecord]:
        """Return what has been fetched after up to `timeout_ms` for the first record; an empty list when none came."""
        await asyncio.sleep(0)  # a reader with much in store must not keep others, nor its own fetches, from running
        group = self._group
        if group is not None:
            group.polled(self)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while True:
                    if group is not None and group.needs_attention():
                        await group.attend(self)
                        continue
                    records = self._take(max_records)
                    if records:
                        return records
                    await self._wait()
        except TimeoutError:
            return [] if group is not None and group.needs_attention() else self._take(max_records)

    def unanswered(self) -> tuple[float, KafkaError | None]:
        """Return for how many seconds the cluster has owed this reader an answer, and the last failure if any."""
        group_since = None if self._group is None else self._group.failing_since()
        group_problem = None if self._group is None else self._group.last_problem()
        known = (self._fetcher.unanswered_since(), self._cluster.waiting_since(), group_since)
        since = [at for at in known if at is not None]
        seconds = asyncio.get_running_loop().time() - min(since) if since else 0.0
        return max(0.0, seconds), self._cluster.last_problem or self._fetcher.last_problem() or group_problem

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        group = self._group
        if self._reading is None:
            await asyncio.sleep(0)
        if group is not None:
            group.polled(self)
        while True:
            if group is not None and group.needs_attention():
                await group.attend(self)
                continue
            records = self._take(1)
            if records:
                return records[0]
            await self._wait()

    def __repr__(self) -> str:
        partitions = ", ".join(map(str, self._fetcher.assigned)) or "nothing assigned"
        return f"<Consumer for {', '.join(map(str, self._cluster.bootstrap))}, {partitions}>"

    # Inside -----------------------------------------------------------------------------------------------

    def _take(self, max_records: int) -> list[ConsumerRecord]:
        """Return up to `max_records` of what is here, and move the positions behind them."""
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
            raise _not_started()
        if self._running.done() and not self._closed:
            self._running.result()
        self._arrived.clear()
        if self._group is None:
            await self._arrived.wait()
            return
        self._group.waits(yes=True)
        try:
            await self._arrived.wait()
        finally:
            self._group.waits(yes=False)

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

    def _require_group(self) -> Group:
        if self._group is None:
            raise ValueError('offsets are committed for a group: give its name, Consumer(..., group="billing")')
        return self._group

    def _states(self, partitions: Sequence[TopicPartition]) -> list[AssignedPartition]:
        return [self._state(partition) for partition in partitions or self._fetcher.assigned]

    def _state(self, partition: TopicPartition) -> AssignedPartition:
        state = self._fetcher.assigned.get(TopicPartition(*partition))
        if state is None:
            raise ValueError(f"{TopicPartition(*partition)} is not assigned; call consumer.assign([...]) first")
        return state


def _not_started() -> KafkaError:
    return KafkaError(
        ErrorCode.NETWORK_EXCEPTION,
        'the consumer is not started; write "async with Consumer(...) as consumer:", or await its start()',
    )


class _Reading:
    """A decoded batch that the reader is in."""

    __slots__ = ("index", "next_offset", "records", "state")

    def __init__(self, state: AssignedPartition, records: list[ConsumerRecord], next_offset: Offset) -> None:
        self.state = state
        self.records = records
        self.next_offset = next_offset
        self.index = 0
