"""Keeps fetching ahead of the reader, for every partition that has room.

A Fetch waits at the broker until there is something to read. A partition that becomes ready meanwhile (it was sought
in, resumed, or the reader made room) need not wait as well: each broker may have a second one in flight, on a
connection of its own. What is fetched and not yet read is bounded, per partition and in all. Leaders that moved are
found again, offsets that are gone are replaced as the reset policy says, and what cannot be mended is left in
the partition's `problem`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Final

from riverlog.client.consumer.fetched_records import AssignedPartition, Chunk
from riverlog.client.errors import CorruptRecords, KafkaError, OffsetOutOfRange, failure
from riverlog.client.network.cluster import Cluster
from riverlog.client.offsets import IsolationLevel, OffsetQuestion, list_offsets
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_OFFSET, NodeId, Offset, ProducerId, TopicPartition
from riverlog.model.ports import FileRange
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData

FETCH_LANES: Final = ("fetch", "fetch beside")
_NEVER: Final = float("inf")


@dataclass(frozen=True, slots=True)
class FetchingRules:
    """How a consumer wants to be supplied."""

    isolation: IsolationLevel
    reset: OffsetQuestion | None
    wait_ms_max: int
    fetch_bytes_min: int
    fetch_bytes_max: int
    partition_bytes_max: int
    prefetch_bytes_max: int


class Fetcher:
    """Fills the assigned partitions; `run` it beside the reader."""

    def __init__(self, cluster: Cluster, rules: FetchingRules, arrived: Callable[[], None]) -> None:
        self.assigned: dict[TopicPartition, AssignedPartition] = {}
        self._cluster = cluster
        self._rules = rules
        self._arrived = arrived
        self._wake = asyncio.Event()
        self._fetching: dict[tuple[NodeId, str], int] = {}  # fetches in flight, with the bytes they may bring
        self._due: dict[tuple[NodeId, str], float] = {}  # when the answers to them should be here at the latest
        self._tasks: set[asyncio.Task[None]] = set()
        cluster.on_update = self.wake

    def wake(self) -> None:
        """Look again soon whether something should be fetched."""
        self._wake.set()

    def unanswered_since(self) -> float | None:
        """Return since when an answer is overdue, or attempts have failed; None while records could come."""
        read = [state for state in self.assigned.values() if not state.paused]
        failing = [state.failing_since for state in read if state.failing_since is not None]
        return min([*self._due.values(), *failing], default=None)

    def last_problem(self) -> KafkaError | None:
        """Return why the last attempt failed, unless a later one has not."""
        return next((state.last_problem for state in self.assigned.values() if state.last_problem is not None), None)

    async def run(self) -> None:
        """Fetch until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                wake_at = self._fetch_ready(loop.time())
                try:
                    async with asyncio.timeout_at(None if wake_at == _NEVER else wake_at):
                        await self._wake.wait()
                except TimeoutError:
                    pass
                self._wake.clear()
        finally:
            for task in self._tasks:
                task.cancel()

    def _fetch_ready(self, now: float) -> float:
        """Start every fetch and look-up that is due; give the time at which to look again."""
        wake_at = _NEVER
        buffered = sum(state.buffered_bytes for state in self.assigned.values())
        by_leader: dict[NodeId, list[AssignedPartition]] = {}
        unplaced: list[AssignedPartition] = []
        for state in self.assigned.values():
            if state.problem is not None or state.paused or state.resolving:
                continue
            if state.not_before > now:
                wake_at = min(wake_at, state.not_before)
                continue
            if state.position is None:
                unplaced.append(state)
                continue
            if state.is_being_fetched or state.is_fetched:
                continue
            if state.buffered_bytes >= self._rules.partition_bytes_max:
                continue
            leader = self._cluster.leader_of(state.partition)
            if leader is None:
                self._cluster.watch((state.partition.topic,))
                self._cluster.refresh_soon()
            else:
                by_leader.setdefault(leader, []).append(state)
        if unplaced:
            for state in unplaced:
                state.resolving = True
            self._start(self._look_up(unplaced))
        bytes_free = self._rules.prefetch_bytes_max - buffered - sum(self._fetching.values())
        for leader, states in by_leader.items():
            bytes_max = min(
                self._rules.fetch_bytes_max,
                len(states) * self._rules.partition_bytes_max,
                bytes_free // len(by_leader),
            )
            lane = next((lane for lane in FETCH_LANES if (leader, lane) not in self._fetching), None)
            if bytes_max > 0 and lane is not None:
                self._fetching[leader, lane] = bytes_max
                self._due[leader, lane] = now + self._rules.wait_ms_max / 1000
                generations = [state.begin_fetch() for state in states]
                self._start(self._fetch(leader, lane, states, generations, bytes_max))
        return wake_at

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Fetching ---------------------------------------------------------------------------------------------

    async def _fetch(
        self, leader: NodeId, lane: str, states: list[AssignedPartition], generations: list[int], bytes_max: int
    ) -> None:
        asked = {state.partition: (state, number) for state, number in zip(states, generations, strict=True)}
        request = self._request(states, bytes_max)
        try:
            connection = await self._cluster.connection(leader, lane)
            seconds = self._cluster.request_seconds + self._rules.wait_ms_max / 1000
            response: FetchResponse = await connection.request(request, seconds=seconds)
            if response.error_code != ErrorCode.NONE:
                raise failure(response.error_code, f"a fetch from {connection.address}")
        except KafkaError as problem:
            for state in states:
                self._trouble(state, problem)
            self._cluster.refresh_soon()
        else:
            names = {topic.topic_id: topic.topic for topic in request.topics}
            for topic in response.responses:
                for data in topic.partitions:
                    name = topic.topic or names.get(topic.topic_id, "")
                    self._received(asked.get(TopicPartition(name, data.partition_index)), data)
        finally:
            for state, generation in asked.values():
                state.end_fetch(generation)
            del self._fetching[leader, lane], self._due[leader, lane]
            self.wake()

    def _request(self, states: list[AssignedPartition], bytes_max: int) -> FetchRequest:
        rules = self._rules
        topics: dict[str, FetchTopic] = {}
        for state in states:
            name, index = state.partition
            known = self._cluster.topics[name]
            topic = topics.setdefault(name, FetchTopic(topic=name, topic_id=known.topic_id))
            topic.partitions.append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=known.partitions[index].leader_epoch,
                    fetch_offset=state.fetch_offset,
                    partition_max_bytes=rules.partition_bytes_max,
                )
            )
        return FetchRequest(
            max_wait_ms=rules.wait_ms_max,
            min_bytes=rules.fetch_bytes_min,
            max_bytes=bytes_max,
            isolation_level=rules.isolation,
            topics=list(topics.values()),
        )

    def _received(self, asked: tuple[AssignedPartition, int] | None, data: PartitionData) -> None:
        if asked is None:
            return
        state, generation = asked
        if state.generation != generation or self.assigned.get(state.partition) is not state:
            return  # the reader has jumped, or no longer reads this partition
        match data.error_code:
            case ErrorCode.NONE:
                state.attempts = 0
                state.failing_since = state.last_problem = None
                state.high_watermark = Offset(data.high_watermark)
                self._keep(state, data)
            case ErrorCode.OFFSET_OUT_OF_RANGE | ErrorCode.CORRUPT_MESSAGE as code:
                offset = state.fetch_offset
                if state.chunks:  # first let the reader have what is there; then ask again
                    state.not_before = self._later(state)
                elif code == ErrorCode.CORRUPT_MESSAGE:
                    state.problem = CorruptRecords(state.partition, offset, "the broker does not serve it")
                    self._arrived()
                elif self._rules.reset is None:
                    state.problem = OffsetOutOfRange(state.partition, offset)
                    self._arrived()
                else:
                    state.jump(None)
            case code:
                self._trouble(state, failure(code, f"a fetch of {state.partition}"))
                self._cluster.refresh_soon()

    def _keep(self, state: AssignedPartition, data: PartitionData) -> None:
        if not data.records:
            return
        assert not isinstance(data.records, FileRange)
        aborted = [
            (Offset(entry.first_offset), ProducerId(entry.producer_id)) for entry in data.aborted_transactions or ()
        ]
        read_committed = self._rules.isolation is IsolationLevel.READ_COMMITTED
        chunk = Chunk(data.records, aborted, read_committed=read_committed)
        if chunk.next_offset == NO_OFFSET:
            state.problem = KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"the batch at offset {state.fetch_offset} of {state.partition} is larger than the "
                f"{self._rules.partition_bytes_max} bytes of partition_bytes_max, or it is of an old format",
            )
        else:
            state.add(chunk)
        self._arrived()

    def _trouble(self, state: AssignedPartition, problem: KafkaError) -> None:
        if problem.retriable:
            state.not_before = self._later(state)
            state.failing_since = state.failing_since or asyncio.get_running_loop().time()
            state.last_problem = problem
        else:
            state.problem = problem
            self._arrived()

    def _later(self, state: AssignedPartition) -> float:
        state.attempts += 1
        return asyncio.get_running_loop().time() + self._cluster.backoff(state.attempts)

    # Positions --------------------------------------------------------------------------------------------

    async def _look_up(self, states: list[AssignedPartition]) -> None:
        """Find where to start in partitions that have no position."""
        asked = {state: state.generation for state in states}
        try:
            if self._rules.reset is None:
                for state in states:
                    state.problem = OffsetOutOfRange(state.partition, NO_OFFSET)
                return
            questions = {state.partition: self._rules.reset for state in states}
            found = await list_offsets(self._cluster, questions, isolation=self._rules.isolation)
            for state, generation in asked.items():
                if state.generation == generation:
                    state.jump(found[state.partition].offset)
        except KafkaError as problem:
            unknown = problem.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # asked for often enough by now
            for state in states:
                if unknown:
                    state.problem = problem
                else:
                    self._trouble(state, problem)
        except Exception as mistake:  # our own: whoever reads is told, instead of asking again and again
            for state in states:
                state.problem = mistake
        finally:
            for state in states:
                state.resolving = False
            self._arrived()
            self.wake()
