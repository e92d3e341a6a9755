"""Sends what producers have collected: which batches go to which broker, when, and what an answer means.

One loop for all partitions. It sleeps until a batch is full, has lingered long enough, may be tried again, or has run
out of time; then it puts at most one batch per partition into each request. Every batch ends acknowledged or failed,
and none later than its deadline.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count, groupby
from typing import Final

from riverlog.client.arguments import checked_text
from riverlog.client.errors import KafkaError, RecordsRefused, TimedOut, check, failure
from riverlog.client.network.cluster import Cluster
from riverlog.client.producer.deliveries import Batch
from riverlog.client.producer.partition_queue import NEVER, PartitionQueue
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import (
    NO_OFFSET,
    NO_PRODUCER,
    NO_PRODUCER_EPOCH,
    NO_TOPIC_ID,
    NodeId,
    Offset,
    ProducerEpoch,
    ProducerId,
    TopicId,
    TopicPartition,
)
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from riverlog.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

PRODUCE_LANE: Final = "produce"
_EPOCH_MAX: Final = 0x7FFF
_FRAMING_BYTES_MAX: Final = 512  # what a request has around one batch: the longest topic name and some numbers
_LOST_SEQUENCE: Final = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})
_WRONG_METADATA: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


@dataclass(frozen=True, slots=True)
class SendingRules:
    """How a producer wants its batches sent."""

    acks: int
    linger_seconds: float
    batch_bytes_max: int
    request_bytes_max: int
    idempotent: bool
    transactional_id: str | None = None

    def __post_init__(self) -> None:
        """Refuse a transactional id that no request can hold."""
        if self.transactional_id is not None:
            checked_text("transactional_id", self.transactional_id)


class Sender:
    """Takes batches out of the queues and sees them through."""

    def __init__(self, cluster: Cluster, rules: SendingRules, finished: Callable[[Batch], None]) -> None:
        self.queues: dict[tuple[str, int], PartitionQueue] = {}
        self.hurry = False
        """Set while somebody waits for the queues to empty: no batch lingers."""
        self.admits: Callable[[TopicPartition], bool] = _always
        """Asked before a batch is sent: a partition may have to be taken into the transaction first."""
        self.version_max: int | None = None
        """The newest version of Produce that may be used."""
        self._cluster = cluster
        self._rules = rules
        self._finished = finished
        self._acknowledged_at = float("-inf")
        self._producer_id = NO_PRODUCER
        self._producer_epoch = NO_PRODUCER_EPOCH
        self._discarding: KafkaError | None = None  # why nothing is sent, nor tried again
        self._landed = asyncio.Event()
        self._wake = asyncio.Event()
        self._connecting: dict[NodeId, asyncio.Task[None]] = {}
        self._connect_failures: dict[NodeId, tuple[int, float]] = {}  # node -> failures in a row, not before
        cluster.on_update = self.wake

    def queue_of(self, topic: str, partition: int) -> PartitionQueue:
        queue = self.queues.get((topic, partition))
        if queue is None:
            queue = PartitionQueue(
                TopicPartition(topic, partition),
                idempotent=self._rules.idempotent,
                transactional=self._rules.transactional_id is not None,
            )
            self.queues[topic, partition] = queue
        return queue

    def wake(self) -> None:
        """Look at the queues again soon."""
        self._wake.set()

    def unanswered(self) -> tuple[float, KafkaError | None] | None:
        """Return since when batches have waited without any acknowledgement, and why; None where none has to wait."""
        waiting = [queue for queue in self.queues.values() if queue]
        if not waiting:
            return None
        oldest = min(next(queue.batches()).created for queue in waiting)
        problem = next((queue.last_problem for queue in waiting if queue.last_problem is not None), None)
        return max(oldest + self._rules.linger_seconds, self._acknowledged_at), problem

    def unfinished(self) -> list[Batch]:
        return [batch for queue in self.queues.values() for batch in queue.batches() if not batch.done]

    async def start(self) -> None:
        """Get a producer id, where records are to be sent exactly once; transactions bring their own."""
        if self._rules.idempotent and self._rules.transactional_id is None:
            await self._take_producer_id()

    async def run(self) -> None:
        """Send until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            now = loop.time()
            self._expire(now)
            if self._producer_epoch == _EPOCH_MAX and self._rules.transactional_id is None:
                await self._take_producer_id()
            wake_at = self._send_ready(now)
            try:
                async with asyncio.timeout_at(None if wake_at == NEVER else wake_at):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()

    def write_as(self, producer_id: ProducerId, producer_epoch: ProducerEpoch) -> None:
        """Number what is sent from now on for this producer, from 0; nothing may be under way."""
        self._producer_id = producer_id
        self._producer_epoch = producer_epoch
        for queue in self.queues.values():
            queue.start_epoch(producer_id, producer_epoch)

    def discard(self, error: KafkaError) -> None:
        """Fail all that is not under way, and what comes back from there without success, until `accept`."""
        self._discarding = error
        for queue in self.queues.values():
            for batch in queue.discard(error):
                self._finished(batch)

    def accept(self) -> None:
        """Send again after `discard`."""
        self._discarding = None

    async def landed(self) -> None:
        """Wait until nothing is under way."""
        while any(queue.in_flight for queue in self.queues.values()):
            self._landed.clear()
            await self._landed.wait()

    @property
    def has_gap(self) -> bool:
        """Return whether some broker may lack a sequence that no batch has any more."""
        return any(queue.has_gap for queue in self.queues.values())

    def abandon(self, error: KafkaError) -> None:
        """Fail all that is not finished."""
        for task in self._connecting.values():
            task.cancel()
        self.discard(error)
        for batch in self.unfinished():
            batch.fail(error)
            self._finished(batch)

    # Sending ----------------------------------------------------------------------------------------------

    def _send_ready(self, now: float) -> float:
        """Send all that may be sent; give the time at which to look again."""
        wake_at = NEVER
        ready: dict[NodeId, list[PartitionQueue]] = {}
        for queue in self.queues.values():
            if not queue:
                continue
            wake_at = min(wake_at, queue.next_deadline())
            queue.belongs_to(self._topic_id(queue.partition.topic))
            ready_at = self._ready_at(queue)
            if ready_at > now:
                wake_at = min(wake_at, ready_at)
                continue
            if not self.admits(queue.partition):
                continue
            leader = self._cluster.leader_of(queue.partition)
            if leader is None:
                self._cluster.watch((queue.partition.topic,))
                self._cluster.refresh_soon()
            elif queue.in_flight_node in (None, leader):  # after a move, what is in flight comes back first
                ready.setdefault(leader, []).append(queue)
        for node, queues in ready.items():
            wake_at = min(wake_at, self._send_to(node, queues, now))
        return wake_at

    def _ready_at(self, queue: PartitionQueue) -> float:
        rules = self._rules
        return queue.ready_at(
            linger_seconds=rules.linger_seconds, batch_bytes_max=rules.batch_bytes_max, hurry=self.hurry
        )

    def _send_to(self, node: NodeId, queues: list[PartitionQueue], now: float) -> float:
        """Send requests to one broker while it takes more; give the time at which to look again."""
        connection = self._cluster.open_connection(node, PRODUCE_LANE)
        if connection is None:
            return self._connect(node, now)
        connection.on_room = self.wake
        while queues and connection.has_room:
            room_bytes = connection.room_bytes
            batches, queues = self._take(node, queues, now, room_bytes=room_bytes, idle=not connection.in_flight)
            if not batches:
                break  # the broker's window is too full for any of them; each answer makes room
            request = self._request(batches)
            if self._rules.acks == 0:
                connection.send_unanswered(request)
                for batch in batches:
                    self._acknowledged(batch, NO_OFFSET, -1)
                continue
            answer = connection.send(request, version_max=self.version_max)
            answer.add_done_callback(partial(self._answered, request, batches))
        return now + connection.muted_seconds if connection.muted_seconds > 0 else NEVER

    def _take(
        self, node: NodeId, queues: list[PartitionQueue], now: float, *, room_bytes: int, idle: bool
    ) -> tuple[list[Batch], list[PartitionQueue]]:
        """Take one batch of each queue until the request is full; give them and the queues that have more."""
        batches: list[Batch] = []
        size = 0
        left: list[PartitionQueue] = []
        for queue in queues:
            size_then = size + queue.peek().size
            too_large = size_then > self._rules.request_bytes_max
            too_much = size_then + _FRAMING_BYTES_MAX * (len(batches) + 1) > room_bytes
            if (batches and (too_large or too_much)) or (too_much and not idle):
                left.append(queue)
                continue
            if queue.needs_new_epoch():
                self._producer_epoch = ProducerEpoch(self._producer_epoch + 1)
                queue.start_epoch(self._producer_id, self._producer_epoch)
            batch = queue.take(node)
            try:
                batch.close()
                if self._rules.idempotent:
                    queue.number(batch, self._producer_id, self._producer_epoch)
            except Exception as error:  # what its own records did: all others go on
                self._failed(batch, KafkaError(ErrorCode.INVALID_RECORD, f"a batch cannot be written: {error!r}"))
                if self._ready_at(queue) <= now:
                    left.append(queue)
                continue
            batches.append(batch)
            size += len(batch.bytes)
            if self._ready_at(queue) <= now:
                left.append(queue)
        return batches, left

    def _request(self, batches: list[Batch]) -> ProduceRequest:
        ordered = sorted(batches, key=lambda batch: batch.partition.topic)
        return ProduceRequest(
            transactional_id=self._rules.transactional_id,
            acks=self._rules.acks,
            timeout_ms=int(self._cluster.request_seconds * 1000),
            topic_data=[
                TopicProduceData(
                    name=topic,
                    topic_id=self._topic_id(topic),
                    partition_data=[
                        PartitionProduceData(index=batch.partition.partition, records=batch.bytes) for batch in group
                    ],
                )
                for topic, group in groupby(ordered, key=lambda batch: batch.partition.topic)
            ],
        )

    def _topic_id(self, topic: str) -> TopicId:
        known = self._cluster.topics.get(topic)
        return NO_TOPIC_ID if known is None else known.topic_id

    def _connect(self, node: NodeId, now: float) -> float:
        _, not_before = self._connect_failures.get(node, (0, 0.0))
        if node not in self._connecting and now >= not_before:
            self._connecting[node] = asyncio.create_task(self._open(node))
        return not_before if now < not_before else NEVER

    async def _open(self, node: NodeId) -> None:
        try:
            await self._cluster.connection(node, PRODUCE_LANE)
            self._connect_failures.pop(node, None)
        except KafkaError as error:
            failures = self._connect_failures.get(node, (0, 0.0))[0] + 1
            again = asyncio.get_running_loop().time() + self._cluster.backoff(failures)
            self._connect_failures[node] = (failures, again)
            for queue in self.queues.values():
                if queue and self._cluster.leader_of(queue.partition) == node:
                    queue.last_problem = error
            self._cluster.refresh_soon()
        finally:
            del self._connecting[node]
            self.wake()

    # Answers ----------------------------------------------------------------------------------------------

    def _answered(
        self, request: ProduceRequest, batches: list[Batch], answer: "asyncio.Future[ProduceResponse]"
    ) -> None:
        problem = answer.exception()
        if problem is None:
            results = dict(_results(request, answer.result()))
            for batch in batches:
                self._judge(batch, results.get(batch.partition))
        else:
            assert isinstance(problem, KafkaError), problem
            for batch in batches:
                self._try_again(batch, problem)
        self._landed.set()
        self.wake()

    def _judge(self, batch: Batch, result: PartitionProduceResponse | None) -> None:
        if result is None:
            problem = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the broker did not answer for {batch.partition}")
            self._failed(batch, problem)
            return
        code = result.error_code
        if code == ErrorCode.NONE:
            self._acknowledged(batch, Offset(result.base_offset), result.log_append_time_ms)
        elif code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._acknowledged(batch, NO_OFFSET, -1)  # it is in the log; the broker no longer knows where
        else:
            problem = _refusal(batch, result)
            if self._rules.idempotent and code in _LOST_SEQUENCE:
                self._out_of_order(batch, problem)
            elif problem.retriable:
                self._try_again(batch, problem)
            else:
                self._failed(batch, problem)

    def _acknowledged(self, batch: Batch, base_offset: Offset, log_append_time_ms: int) -> None:
        late = batch.done  # its time was up while it was in flight, and it was finished then
        self._acknowledged_at = asyncio.get_running_loop().time()
        self.queues[batch.partition].acknowledged(batch, base_offset, log_append_time_ms)
        if not late:
            self._finished(batch)

    def _failed(self, batch: Batch, problem: KafkaError) -> None:
        late = batch.done
        self.queues[batch.partition].failed(batch, problem)
        if not late:
            self._finished(batch)

    def _out_of_order(self, batch: Batch, problem: KafkaError) -> None:
        queue = self.queues[batch.partition]
        if queue.must_be_there(batch):
            self._acknowledged(batch, NO_OFFSET, -1)  # the broker has forgotten its sequence, behind later ones
            return
        lost = self._rules.transactional_id is not None and queue.is_first_under_way(batch)
        if lost or self._discarding is not None:
            self._failed(batch, self._discarding or problem)  # a transaction cannot begin its sequences again
        else:
            queue.out_of_order(batch, problem, not_before=self._later(queue))

    def _try_again(self, batch: Batch, problem: KafkaError) -> None:
        if self._discarding is not None:
            self._failed(batch, self._discarding)
            return
        queue = self.queues[batch.partition]
        queue.came_back(batch, problem, not_before=self._later(queue))
        if problem.code in _WRONG_METADATA:
            self._cluster.refresh_soon()

    def _later(self, queue: PartitionQueue) -> float:
        queue.attempts += 1
        return asyncio.get_running_loop().time() + self._cluster.backoff(queue.attempts)

    def _expire(self, now: float) -> None:
        for queue in self.queues.values():
            if queue and queue.next_deadline() <= now:
                why = f": {queue.last_problem.message}" if queue.last_problem else ""
                error = TimedOut(f"records for {queue.partition} were not acknowledged within delivery_timeout_ms{why}")
                for batch in queue.expire(now, error):
                    self._finished(batch)

    async def _take_producer_id(self) -> None:
        """Ask for a new producer id until there is one; raise KafkaError where asking again cannot help."""
        for attempt in count(1):
            try:
                response: InitProducerIdResponse = await self._cluster.ask_any(
                    InitProducerIdRequest(transaction_timeout_ms=60_000)
                )
                check(response.error_code, "no producer id was given")
            except KafkaError as problem:
                if not problem.retriable or attempt == _PRODUCER_ID_ATTEMPTS_MAX:
                    raise
                await asyncio.sleep(self._cluster.backoff(attempt))
                continue
            self._producer_id = ProducerId(response.producer_id)
            self._producer_epoch = ProducerEpoch(response.producer_epoch)
            return


_PRODUCER_ID_ATTEMPTS_MAX: Final = 20


def _always(_partition: TopicPartition) -> bool:
    return True


def _results(
    request: ProduceRequest, response: ProduceResponse
) -> Iterator[tuple[TopicPartition, PartitionProduceResponse]]:
    """Pair partitions with their results; the answer names topics as the request did, by name or by id."""
    names = {topic.topic_id: topic.name for topic in request.topic_data}
    for topic in response.responses:
        name = topic.name or names.get(topic.topic_id, "")
        for result in topic.partition_responses:
            yield TopicPartition(name, result.index), result


def _refusal(batch: Batch, result: PartitionProduceResponse) -> KafkaError:
    """Return why a batch was refused; where the broker names records, why each of them was."""
    named = {
        each.batch_index: failure(
            result.error_code, str(batch.partition), each.batch_index_error_message or _reason(result)
        )
        for each in result.record_errors
        if 0 <= each.batch_index < batch.count
    }
    return RecordsRefused(named) if named else failure(result.error_code, str(batch.partition), _reason(result))


def _reason(result: PartitionProduceResponse) -> str | None:
    if result.error_message:
        return result.error_message
    if result.error_code == ErrorCode.MESSAGE_TOO_LARGE:
        return (
            "the batch is larger than the topic's max.message.bytes; use a smaller batch_bytes_max or raise the limit"
        )
    return None
