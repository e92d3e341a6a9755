"""The producer: records in, acknowledgements out.

    async with Producer("127.0.0.1:9092") as producer:
        sent = await producer.send("orders", b"anvil", key=b"acme")
        print(sent.partition, sent.offset)

Records are collected into batches per partition. With `idempotent` (the default) each record ends up in the log once
and in order, whatever is sent again on the way; without it, a retry may repeat or reorder records. All that is
accepted and not yet acknowledged is bounded by `buffer_bytes_max`.

With a `transactional_id` records are written in transactions, all or nothing:

    async with producer.transaction():
        producer.send_soon("invoices", b"...")
        await producer.send_offsets(consumer)
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from operator import index
from types import TracebackType
from typing import Final, Literal, Protocol, Self, TypeVar

from riverlog.client.arguments import CheckedRecord, check_topic, checked_partition, new_record, too_large
from riverlog.client.consumer.commits import CommittedOffset, GroupMetadata, checked_commit
from riverlog.client.errors import BufferFull, Closed, KafkaError, TimedOut
from riverlog.client.lifetime import Startable
from riverlog.client.limits import FAILURES_REMEMBERED_MAX
from riverlog.client.network.cluster import Cluster, Topic
from riverlog.client.network.security import Security
from riverlog.client.ports import Ports
from riverlog.client.producer.deliveries import Batch, Delivery, EncodedBatch, RecordMetadata
from riverlog.client.producer.partitioner import DefaultPartitioner, Partitioner, RoundRobin
from riverlog.client.producer.sender import Sender, SendingRules
from riverlog.client.producer.transactions import (
    Broken,
    Ending,
    Open,
    Settling,
    Transaction,
    TransactionRules,
    Transactions,
)
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset, TopicPartition
from riverlog.records.batch import HEADER_BYTES, Compression
from riverlog.records.record import HeadersLike, record_bytes_max

K = TypeVar("K", bound=Transactions)

Acks = Literal[0, 1, -1, "0", "1", "-1", "all"]
_ACKS: Final[dict[object, int]] = {0: 0, 1: 1, -1: -1, "0": 0, "1": 1, "-1": -1, "all": -1}


class OffsetSource(Protocol):
    """What a transaction needs of the consumer whose offsets it commits."""

    def group_metadata(self) -> GroupMetadata:
        """Return the group and this member's place in it."""
        ...

    def held(self) -> dict[TopicPartition, Offset | None]:
        """Return the partitions that are read and where the reader stands in each, if that is known."""
        ...


class Producer(Startable):
    """Sends records to a cluster. Use it as an async context manager, or call `start` and `close`."""

    _creates_topics = True  # by asking for them

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        acks: Acks = "all",
        idempotent: bool | None = None,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
        compression: str | None = None,
        compression_level: int | None = None,
        linger_ms: float = 0,
        batch_bytes_max: int = 128 * 1024,
        request_bytes_max: int = 1024 * 1024,
        buffer_bytes_max: int = 32 * 1024 * 1024,
        delivery_timeout_ms: int = 120_000,
        request_timeout_ms: int = 30_000,
        block_ms_max: int = 60_000,
        partitioner: Literal["default", "round_robin"] | Partitioner = "default",
        retry_backoff_ms: int = 100,
        client_id: str = "riverlog-producer",
        security: Security | None = None,
        ports: Ports | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        """Describe the producer; nothing is connected before `start`.

        `idempotent` is on unless acks is not "all". `linger_ms` lets batches fill: with 0 a record is sent as soon as
        its broker takes it, and batches grow by themselves under load.

        `transactional_id` names whoever writes the transactions, over restarts: `start` fences the one before and
        aborts what it left open. A transaction that is open for longer than `transaction_timeout_ms` is aborted by the
        cluster, and the producer is fenced.

        `cluster` is one that somebody keeps for several producers (`KeptCluster`), and that is reached as it says.
        """
        if acks not in _ACKS:
            raise ValueError(f'acks={acks!r}: choose 0 (none), 1 (the leader) or "all" (every in-sync replica)')
        if idempotent and _ACKS[acks] != -1:
            raise ValueError(f'idempotent=True needs acks="all"; with acks={acks!r} a lost record cannot be noticed')
        if transactional_id is not None and (idempotent is False or _ACKS[acks] != -1):
            raise ValueError('transactional_id needs acks="all" and idempotent writing')
        if transactional_id == "":
            raise ValueError("transactional_id is a name, and must not be empty")
        if delivery_timeout_ms < linger_ms + request_timeout_ms:
            raise ValueError("delivery_timeout_ms must not be smaller than linger_ms and request_timeout_ms together")
        self._rules = SendingRules(
            acks=_ACKS[acks],
            linger_seconds=linger_ms / 1000,
            batch_bytes_max=batch_bytes_max,
            request_bytes_max=request_bytes_max,
            idempotent=_ACKS[acks] == -1 if idempotent is None else idempotent,
            transactional_id=transactional_id,
        )
        self._transaction_timeout_ms = transaction_timeout_ms
        self._compression = _compression(compression)
        self._level = compression_level
        self._buffer_bytes_max = buffer_bytes_max
        self._delivery_seconds = delivery_timeout_ms / 1000
        self._block_seconds = block_ms_max / 1000
        self._cluster = cluster or Cluster(
            bootstrap,
            ports=ports,
            client_id=client_id,
            request_timeout_ms=request_timeout_ms,
            retry_backoff_ms=retry_backoff_ms,
            create_topics=self._creates_topics,
            security=security,
        )
        self._clock = self._cluster.ports.clock
        self._choose_default = DefaultPartitioner(self._cluster.ports.random, batch_bytes_max)
        self._choose: Partitioner | None = None
        if partitioner == "round_robin":
            self._choose = RoundRobin()
        elif partitioner != "default":
            self._choose = partitioner
        self._sender: Sender | None = None
        self._transactions: Transactions | None = None
        self._running: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: KafkaError | None = None
        self._buffered = 0
        self._room: asyncio.Event | None = None
        self._placing: dict[str, _Placing] = {}
        self._flushes = 0
        self._failed: deque[Batch | Delivery] = deque(maxlen=FAILURES_REMEMBERED_MAX)  # unless somebody asked already

    async def start(self) -> Self:
        """Reach the cluster; raise Unreachable where that fails, and then it may be tried again."""
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Event()
        async with self._cluster.starting():
            sender = Sender(self._cluster, self._rules, self._finished)
            await sender.start()
            if self._rules.transactional_id is not None:
                self._transactions = await self._start_transactions(sender)
        self._sender = sender
        self._running = asyncio.create_task(sender.run())
        self._running.add_done_callback(self._stopped)
        return self

    async def send(
        self,
        topic: str,
        value: bytes | str | None = None,
        *,
        key: bytes | str | None = None,
        headers: HeadersLike = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Send one record and wait until it is acknowledged; wait before that while the buffer is full."""
        self._check_accepts()
        record = self._new_record(topic, value, key, headers, partition, timestamp_ms)
        await self._wait_for_room(record.size)
        return await self._accept(topic, record)

    def send_soon(
        self,
        topic: str,
        value: bytes | str | None = None,
        *,
        key: bytes | str | None = None,
        headers: HeadersLike = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Accept one record and return at once; await the Delivery to learn where it went.

        Raises BufferFull where there is no room: `await producer.ready()` waits for it. A failure of a delivery
        that nobody awaits is raised by `flush` and `close`.
        """
        self._check_accepts()
        return self._accept(topic, self._new_record(topic, value, key, headers, partition, timestamp_ms))

    async def send_encoded(self, batch: EncodedBatch) -> None:
        """Accept a batch as it is, waiting while the buffer is full; what becomes of it is told by `flush`.

        Its partition is one that `partitions` has counted. With a transactional id it is marked as transactional.
        """
        await self._accept_encoded(batch)

    async def partitions(self, topic: str) -> int:
        """Count the partitions of a topic, which is created where the cluster allows that; KafkaError without one."""
        return len((await self._cluster.topic(topic, seconds=self._block_seconds)).partitions)

    async def ready(self, size: int | None = None) -> None:
        """Wait, so that others run, until there is room for `size` bytes more, by default a quarter of the buffer.

        A loop around `send_soon` awaits this every so many records, so that sending goes on beside it. TimedOut
        after `block_ms_max`.
        """
        await asyncio.sleep(0)
        await self._wait_for_room(self._buffer_bytes_max // 4 if size is None else size)

    async def flush(self) -> None:
        """Send all that was accepted and wait for the outcome; raise the first failure that nobody has seen."""
        await self._settle()
        if self._transactions is not None and isinstance(self._transactions.state, Broken):
            self._transactions.check_open()
        self._raise_unseen()

    async def close(self) -> None:
        """Flush, then let go of all connections; raises as `flush` does. A transaction that is open is aborted."""
        try:
            await self._finish()
        finally:
            await self._shut()

    # Transactions -----------------------------------------------------------------------------------------

    def transaction(self) -> Transaction:
        """Begin a transaction with `async with`: its end commits, an exception aborts.

        TransactionAborted says that it could not be committed: nothing of it took effect, and it may be repeated.
        ProducerFenced says that another producer has taken over.
        """
        return Transaction(self._require_transactions())

    async def begin(self) -> None:
        """Begin a transaction; `commit` or `abort` ends it."""
        await self._require_transactions().begin()

    async def commit(self) -> None:
        """Commit all that was sent since `begin`, or abort it and raise TransactionAborted.

        After TimedOut it is not known whether it is committed; the same call may be repeated.
        """
        await self._require_transactions().commit()

    @property
    def in_doubt(self) -> bool:
        """Return whether a commit was asked for and nobody has said yet whether it is done."""
        return self._transactions is not None and self._transactions.state == Ending(committed=True)

    async def abort(self) -> None:
        """Take back all that was sent since `begin`."""
        await self._require_transactions().abort()

    async def send_offsets(
        self,
        source: OffsetSource | GroupMetadata,
        offsets: Mapping[TopicPartition, CommittedOffset | int] | None = None,
    ) -> None:
        """Commit offsets for a consumer's group as part of the transaction: where its reader stands, or these.

        The consumer itself must not commit: give it `auto_commit=False`. In another process than the consumer's, pass
        on what its `group_metadata()` gives.
        """
        transactions = self._require_transactions()
        if isinstance(source, GroupMetadata):
            if offsets is None:
                raise ValueError("group metadata alone has no offsets; name them: send_offsets(metadata, {...})")
            metadata = source
        else:
            metadata = transactions.metadata_of(source.group_metadata)
            offsets = (
                {at: offset for at, offset in source.held().items() if offset is not None}
                if offsets is None
                else offsets
            )
        await transactions.send_offsets(
            metadata, {checked_partition(partition): checked_commit(at) for partition, at in offsets.items()}
        )

    def unanswered(self) -> tuple[float, KafkaError | None]:
        """Return for how many seconds records have waited without any acknowledgement, and the last failure if any."""
        since = self._cluster.waiting_since() if self._placing or self._sender is None else None
        since, problem = (since, None) if self._sender is None else self._sender.unanswered() or (since, None)
        seconds = 0.0 if since is None else asyncio.get_running_loop().time() - since
        return max(0.0, seconds), problem or self._cluster.last_problem

    def backoff(self, attempt: int) -> float:
        """Return the seconds to wait before something is tried again, the first attempt being 1."""
        return self._cluster.backoff(attempt)

    async def __aexit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.close()
            return
        try:  # the caller's exception is the one to see; what was accepted is still sent, unless all is being cancelled
            if not issubclass(kind, asyncio.CancelledError):
                await self._finish()
        except KafkaError:
            pass
        finally:
            await self._shut()

    def __repr__(self) -> str:
        state = "closed" if self._end else f"{self._buffered} bytes under way"
        return f"<Producer for {', '.join(map(str, self._cluster.bootstrap))}, {state}>"

    # Inside -----------------------------------------------------------------------------------------------

    async def _start_transactions(self, sender: Sender) -> Transactions:
        transactions = self._transactions_as(Transactions, sender)
        await transactions.start()
        return transactions

    def _transactions_as(self, kind: type[K], sender: Sender) -> K:
        assert self._rules.transactional_id is not None, "it is the name of the transactions"
        rules = TransactionRules(self._rules.transactional_id, self._transaction_timeout_ms, self._block_seconds)
        return kind(self._cluster, rules, sender, settle=self._settle, drop=self._drop_unplaced)

    def _new_record(
        self,
        topic: str,
        value: bytes | str | None,
        key: bytes | str | None,
        headers: HeadersLike,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> CheckedRecord:
        if topic not in self._cluster.topics:
            check_topic(topic)
        return new_record(key, value, headers, partition, timestamp_ms, request_bytes_max=self._rules.request_bytes_max)

    def _accept(self, topic: str, record: CheckedRecord) -> Delivery:
        """Put a record that was checked on its way, if there is room."""
        self._check_accepts()
        if self._buffered + record.size > self._buffer_bytes_max and self._buffered:
            raise BufferFull(self._buffer_bytes_max)
        timestamp_ms = record.timestamp_ms
        delivery = Delivery(self._clock.wall_ms() if timestamp_ms is None else timestamp_ms)
        known = self._cluster.topics.get(topic)
        if known is None or topic in self._placing:
            self._place_later(topic, (delivery, record))
        else:
            self._place(known, delivery, record)
        return delivery

    async def _accept_encoded(self, batch: EncodedBatch) -> Batch:
        size = len(batch.content)
        if size > self._rules.request_bytes_max:
            raise too_large(size, self._rules.request_bytes_max)
        await self._wait_for_room(size)
        sender = self._check_accepts()
        assert self._loop is not None
        now = self._loop.time()
        queue = sender.queue_of(*batch.partition)
        accepted = queue.add(batch, now=now, deadline=now + self._delivery_seconds, loop=self._loop)
        self._buffered += size
        sender.wake()
        return accepted

    def _check_accepts(self) -> Sender:
        """Return the sender, or raise why nothing may be written now."""
        if self._sender is None:
            raise self._end or _not_started()
        if self._transactions is not None:
            self._transactions.check_open()
        return self._sender

    def _require_transactions(self) -> Transactions:
        if self._rules.transactional_id is None:
            raise ValueError('transactions need a name: give one, Producer(..., transactional_id="orders-copier")')
        if self._transactions is None or self._sender is None:
            raise self._end or _not_started()
        return self._transactions

    async def _finish(self) -> None:
        """See all that was accepted through, or take it back where it belongs to a transaction."""
        if self._transactions is None:
            await self.flush()
        elif isinstance(self._transactions.state, Open | Settling | Broken):
            await self.abort()

    async def _settle(self) -> None:
        """Wait until everything that was accepted is acknowledged or failed."""
        if self._sender is None:
            return
        self._flushes += 1
        self._sender.hurry = True
        try:
            placing = [entry.future for entry in self._placing.values()]
            if placing:
                await asyncio.wait(placing)
            self._sender.wake()
            pending = [batch.future for batch in self._sender.unfinished()]
            if pending:
                await asyncio.wait(pending)
        finally:
            self._flushes -= 1
            if self._sender is not None:
                self._sender.hurry = self._flushes > 0

    async def _drop_unplaced(self, reason: KafkaError) -> None:
        for entry in self._placing.values():
            entry.problem = reason
        await self._stop_placing()

    async def _stop_placing(self) -> None:
        tasks = [entry.task for entry in self._placing.values() if entry.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _wait_for_room(self, size: int) -> None:
        if self._buffered + size + _RECORD_OVERHEAD <= self._buffer_bytes_max or not self._buffered:
            return
        assert self._room is not None
        try:
            async with asyncio.timeout(self._block_seconds):
                while self._buffered and self._buffered + size + _RECORD_OVERHEAD > self._buffer_bytes_max:
                    self._room.clear()
                    await self._room.wait()
        except TimeoutError:
            raise TimedOut(
                f"the buffer of {self._buffer_bytes_max} bytes stayed full for {self._block_seconds:g} s"
            ) from None

    def _place(self, topic: Topic, delivery: Delivery, record: CheckedRecord) -> None:
        """Put a record into the open batch of its partition."""
        key, value, headers, partition, _timestamp_ms, size = record
        sender, loop = self._sender, self._loop
        assert sender is not None
        assert loop is not None
        count = len(topic.partitions)
        if partition is None:
            if self._choose is None:
                partition = self._choose_default.choose(topic.name, key, size, count, topic.available)
            else:
                partition = index(self._choose(topic.name, key, value, count))
        if not 0 <= partition < count:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {topic.name!r} has partitions 0 to {count - 1}, not {partition}",
            )
        queue = sender.queue_of(topic.name, partition)
        batch = queue.open_batch(size, self._rules.batch_bytes_max)
        if batch is None:
            now = loop.time()
            batch = queue.start_batch(
                self._compression, self._level, now=now, deadline=now + self._delivery_seconds, loop=loop
            )
            self._buffered += HEADER_BYTES
            sender.wake()
        before = batch.size
        delivery.place(batch, batch.append(key, value, headers, delivery.timestamp_ms))
        self._buffered += batch.size - before
        if batch.size >= self._rules.batch_bytes_max:
            sender.wake()

    def _place_later(self, topic: str, record: "_Unplaced") -> None:
        """Keep a record of a topic that is not known yet; all such records are placed in order once it is."""
        entry = self._placing.get(topic)
        if entry is None:
            assert self._loop is not None
            entry = _Placing(self._loop.create_future())
            self._placing[topic] = entry
            entry.task = self._loop.create_task(self._look_up(topic, entry))
            entry.task.add_done_callback(lambda _: self._end_placing(topic, entry))  # it may be cancelled unbegun
        entry.records.append(record)
        record[0].wait_for_place(entry.future)
        self._buffered += record[1].size

    async def _look_up(self, topic: str, entry: "_Placing") -> None:
        try:
            found = await self._cluster.topic(topic, seconds=self._block_seconds)
        except KafkaError as error:
            entry.problem = error
        else:
            for record in entry.records:
                try:
                    if self._transactions is not None:
                        self._transactions.check_goes_on()
                    self._place(found, *record)
                except KafkaError as error:
                    record[0].refuse(error)
                except Exception as error:  # of a partitioner that is not ours: the other records go on
                    record[0].refuse(KafkaError(ErrorCode.INVALID_RECORD, f"no partition was found: {error!r}"))
            entry.future.set_result(None)
        finally:
            self._end_placing(topic, entry)

    def _end_placing(self, topic: str, entry: "_Placing") -> None:
        """Release the records that have a place now, and refuse the others."""
        if self._placing.get(topic) is not entry:
            return
        del self._placing[topic]
        self._buffered -= sum(record[1].size for record in entry.records)
        if not entry.future.done():
            entry.future.set_exception(entry.problem)
            entry.future.exception()
        for delivery in [record[0] for record in entry.records if record[0].error is not None]:
            self._note_failure(delivery)

    def _finished(self, batch: Batch) -> None:
        self._buffered -= batch.size
        assert self._buffered >= 0
        assert self._room is not None
        self._room.set()
        if batch.error is not None:
            self._note_failure(batch)

    def _note_failure(self, failed: Batch | Delivery) -> None:
        assert failed.error is not None
        if self._transactions is not None:
            self._transactions.broke(failed.error)
        elif not failed.observed:
            self._failed.append(failed)

    def _raise_unseen(self) -> None:
        unseen = [failed for failed in self._failed if not failed.observed]
        self._failed.clear()
        if unseen:
            error = unseen[0].error
            assert error is not None
            count = sum(failed.count for failed in unseen)
            lost = "1 record was" if count == 1 else f"{count} records were"
            raise KafkaError(error.code, f"{lost} not delivered: {error.message}") from error

    def _stopped(self, task: "asyncio.Task[None]") -> None:
        """The sender only ends when it is cancelled or cannot go on; nothing may wait for it then."""
        sender, self._sender = self._sender, None
        if sender is None:
            return
        error = None if task.cancelled() else task.exception()
        if isinstance(error, KafkaError):
            self._end = error
        else:
            self._end = Closed("producer")
            self._end.__cause__ = error
        sender.abandon(self._end)

    async def _shut(self) -> None:
        await self._stop_placing()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        await self._cluster.close()


_Unplaced = tuple[Delivery, CheckedRecord]


class _Placing:
    """Records that wait for the metadata of their topic."""

    __slots__ = ("future", "problem", "records", "task")

    def __init__(self, future: "asyncio.Future[None]") -> None:
        self.future = future
        self.records: list[_Unplaced] = []
        self.problem: KafkaError = Closed("producer")
        self.task: asyncio.Task[None] | None = None


_RECORD_OVERHEAD: Final = record_bytes_max(None, None) + HEADER_BYTES


def _compression(name: str | None) -> Compression:
    try:
        return Compression[(name or "none").upper()]
    except KeyError:
        known = ", ".join(repr(codec.name.lower()) for codec in Compression)
        raise ValueError(f"compression={name!r} is not known; choose one of {known}") from None


def _not_started() -> KafkaError:
    how = 'write "async with Producer(...) as producer:" or "await producer.start()"'
    return KafkaError(ErrorCode.NETWORK_EXCEPTION, f"the producer is not started; {how}")
