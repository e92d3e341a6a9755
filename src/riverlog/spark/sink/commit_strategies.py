"""How the output of a job's tasks becomes visible, once: the driver chooses a strategy, which travels to the tasks.

    AtLeastOnce             each task's producer by itself; what failed attempts wrote stays
    CheckpointTransaction   one shared transaction per batch; the checkpoint store ends it with `commits/N`
    SinkTransaction         one shared transaction per batch or job, which the sink's own commit() ends
    ListedTransactions      one transaction per task, all listed before the first is ended: where none can be shared

Messages carry the strategy as well: Spark commits the batch of a stream with a new writer, in another process.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from pyspark.sql.datasource import WriterCommitMessage

from riverlog.model.transactions import NOTHING_FOLLOWS
from riverlog.spark.refusal import Fenced, SinkRefused, TakenOver
from riverlog.spark.sink.counted_writes import Counted, check_same, what_is_written
from riverlog.spark.sink.options import CLIENT, SinkOptions
from riverlog.spark.worker.attempt import Attempt, StreamAttempt
from riverlog.spark.worker.pool import ResourcePool

if TYPE_CHECKING:
    import pyarrow as pa

    from riverlog.checkpoints.sink import SinkCalls
    from riverlog.client.network.cluster import Cluster
    from riverlog.client.producer.shared_transactions import Membership, SharedBatch, SharedTransactions
    from riverlog.client.producer.transaction_handover import HandedTransaction


@dataclass(frozen=True, slots=True)
class TaskCommitMessage(WriterCommitMessage):
    """A task's message to the driver: how it wrote, and as whom."""

    strategy: "CommitStrategy"
    batch: "SharedBatch | None" = None
    membership: "Membership | None" = None
    attempt: StreamAttempt | None = None
    handed: "HandedTransaction | None" = None


class CommitStrategy(Protocol):
    """How the output of tasks becomes visible."""

    def write(
        self, rows: "Iterator[pa.RecordBatch]", options: SinkOptions, attempt: Attempt | StreamAttempt
    ) -> TaskCommitMessage:
        """Write a task's rows, in the task."""
        ...

    def write_nothing(self, attempt: Attempt | StreamAttempt) -> TaskCommitMessage:
        """Return the message of a task without rows; nobody is asked for that."""
        ...

    def commit(self, messages: Sequence[TaskCommitMessage], options: SinkOptions) -> None:
        """Commit what these attempts wrote, and nothing else, in the driver; to repeat it changes nothing."""

    def abort(self, messages: Sequence[TaskCommitMessage], options: SinkOptions) -> None:
        """Take back what was written, unless it is committed."""


@dataclass(frozen=True, slots=True)
class AtLeastOnce:
    """Every record is written when its task has sent it."""

    def write(
        self, rows: "Iterator[pa.RecordBatch]", options: SinkOptions, attempt: Attempt | StreamAttempt
    ) -> TaskCommitMessage:
        from riverlog.client.producer.producer import Producer
        from riverlog.spark.sink.row_sender import send

        def producer(cluster: "Cluster") -> Producer:
            return Producer(options.cluster.bootstrap, cluster=cluster, **producer_arguments(options))

        send(rows, producer, Producer.flush, options, first_partition=first_partition(attempt))
        return TaskCommitMessage(self)

    def write_nothing(self, attempt: Attempt | StreamAttempt) -> TaskCommitMessage:
        return TaskCommitMessage(self)

    def commit(self, messages: Sequence[TaskCommitMessage], options: SinkOptions) -> None:
        """All is visible already."""

    def abort(self, messages: Sequence[TaskCommitMessage], options: SinkOptions) -> None:
        """Nothing can be taken back."""


@dataclass(frozen=True, slots=True)
class CheckpointTransaction:
    """The store of the query's checkpoint owns the transaction, and ends it with the RENAME to `commits/N`."""

    location: str

    def write(
        self, rows: "Iterator[pa.RecordBatch]", options: SinkOptions, attempt: Attempt | StreamAttempt
    ) -> TaskCommitMessage:
        assert isinstance(attempt, StreamAttempt)
        what = f"batch {attempt.batch} is not written"
        with self._calling(what) as calls:
            known = calls.begun(query=attempt.query, run=attempt.run, batch=attempt.batch)
            batch = known or self._begin(calls, options, attempt)
        try:
            return TaskCommitMessage(self, batch, write_as_member(rows, batch, options, attempt), attempt)
        except Fenced:
            with self._calling(what) as calls:
                self._begin(calls, options, attempt)  # the store knows whether it was another run, and says so
            raise

    def write_nothing(self, attempt: Attempt | StreamAttempt) -> TaskCommitMessage:
        assert isinstance(attempt, StreamAttempt)
        return TaskCommitMessage(self, attempt=attempt)

    def commit(self, messages: Sequence[TaskCommitMessage], options: SinkOptions) -> None:
        """Name the attempts that count; Spark's next step decides. Without rows in any task it is begun here."""
        attempt = messages[0].attempt
        assert attempt is not None
        memberships = [each.membership for each in messages if each.membership is not None]
        with self._calling(f"batch {attempt.batch} is not committed") as calls:
            if not memberships:
                self._begin(calls, options, attempt)
            calls.announce(**_named(attempt), memberships=memberships)

    def abort(self, messages: Sequence[TaskCommitMessage], options: SinkOptions) -> None:
        """Take it back; where it is committed, or another run has taken over, nothing of this one is left."""
        attempt = messages[0].attempt
        assert attempt is not None
        try:
            with self._calling("") as calls:
                calls.abort(**_named(attempt))
        except SinkRefused:
            pass

    def _begin(self, calls: "SinkCalls", options: SinkOptions, attempt: StreamAttempt) -> "SharedBatch":
        return calls.begin(query=attempt.query, run=attempt.run, batch=attempt.batch, timeout_ms=options.timeout_ms)

    @contextmanager
    def _calling(self, what: str) -> "Iterator[SinkCalls]":
        """Call the store; where that fails, say what is not done, and why."""
        from riverlog.checkpoints.files.refusals import DriverReplaced, RequestRefused
        from riverlog.checkpoints.sink import SinkCalls

        try:
            with CALLS.lend(self.location, lambda: SinkCalls(self.location)) as calls:
                yield calls
        except RequestRefused as refusal:
            kind = TakenOver if isinstance(refusal, DriverReplaced) else SinkRefused
            raise kind(f"{what}: {refusal.message}") from None
        except OSError as problem:
            raise SinkRefused(
                f"{what}: the store of the checkpoint {self.location} does not answer: {problem}"
            ) from None


@dataclass(frozen=True, slots=True)
class SinkTransaction:
    """Whoever plans a batch in the driver owns the transaction, which the sink's commit() ends."""

    transactional_id: str
    owner_id: int
    owner_epoch: int
    counted: Counted | None = None
    """How far the writes of a query's batches have come, where there may be several in each."""

    def write(
        self, rows: "Iterator[pa.RecordBatch]", options: SinkOptions, attempt: Attempt | StreamAttempt
    ) -> TaskCommitMessage:
        told = self.write_nothing(attempt)
        assert told.batch is not None
        return replace(told, membership=write_as_member(rows, told.batch, options, attempt))

    def write_nothing(self, attempt: Attempt | StreamAttempt) -> TaskCommitMessage:
        stream = attempt if isinstance(attempt, StreamAttempt) else None
        return TaskCommitMessage(self, self._batch(stream), attempt=stream)

    def commit(self, messages: Sequence[TaskCommitMessage], options: SinkOptions) -> None:
        """Decide about the batch, or this write of it."""
        from riverlog.client.errors import KafkaError, ProducerFenced, TransactionAborted

        batch = messages[0].batch
        assert batch is not None
        memberships = [each.membership for each in messages if each.membership is not None]

        async def end(owner: "SharedTransactions") -> None:
            is_job = messages[0].attempt is None
            marker = what_is_written(options) if self.counted else NOTHING_FOLLOWS if is_job else b""
            await owner.commit(batch, memberships, marker=marker)
            if self.counted is not None and messages[0].attempt is not None:
                check_same(await owner.committed(), batch.number, marker)
                counted = self.counted.after(messages[0].attempt)
                counter = replace(batch, incarnation=self.transactional_id, number=counted.number)
                await owner.commit(counter, (), marker=counted.marker())

        try:
            self._run(batch, options, end)
        except ProducerFenced:
            raise SinkRefused(f"batch {batch.number} is not committed: {REPLACED}") from None
        except TransactionAborted:
            raise SinkRefused(
                f"batch {batch.number} is not committed: it was open for more than {options.timeout_ms} ms, and "
                "nothing of it is kept; write smaller batches, or set a longer kafka.transaction.timeout.ms"
            ) from None
        except KafkaError as problem:
            raise SinkRefused(f"batch {batch.number} may not be committed: {problem}") from problem

    def abort(self, messages: Sequence[TaskCommitMessage], options: SinkOptions) -> None:
        from riverlog.client.errors import KafkaError

        batch = messages[0].batch if messages else self._batch(None)
        assert batch is not None
        try:
            self._run(batch, options, lambda owner: owner.abort(batch))
        except KafkaError:
            pass  # it is committed, or another has taken over, or time will do the same

    def _batch(self, attempt: StreamAttempt | None) -> "SharedBatch":
        """Return what is decided about: a batch of a query, or a job of its own."""
        from riverlog.client.producer.shared_transactions import SharedBatch

        incarnation, number = (self.transactional_id, 0) if attempt is None else (attempt.query, attempt.batch)
        if self.counted is not None and attempt is not None:
            incarnation = self.counted.incarnation(attempt)
        return SharedBatch(self.transactional_id, self.owner_id, self.owner_epoch, incarnation, number)

    def _run(
        self, batch: "SharedBatch", options: SinkOptions, act: "Callable[[SharedTransactions], Awaitable[None]]"
    ) -> None:
        """Do something as the owner of the transaction."""
        from riverlog.client.producer.shared_transactions import SharedTransactions
        from riverlog.spark.sink.retries import started

        async def run() -> None:
            owning = SharedTransactions(
                options.cluster.bootstrap,
                self.transactional_id,
                incarnation=batch.incarnation,
                owner=(self.owner_id, self.owner_epoch),
                **shared_arguments(options),
            )
            async with started(owning, seconds_max=options.patience_seconds) as owner:
                await act(owner)

        asyncio.run(run())


def _named(attempt: StreamAttempt) -> dict[str, Any]:
    """Name the write of a batch to the store."""
    return {
        "query": attempt.query,
        "run": attempt.run,
        "batch": attempt.batch,
        "write": str(attempt.write) if attempt.write else "",
    }


def write_as_member(
    rows: "Iterator[pa.RecordBatch]", batch: "SharedBatch", options: SinkOptions, attempt: Attempt | StreamAttempt
) -> "Membership":
    """Write a task's rows in a shared transaction."""
    from riverlog.client.errors import ProducerFenced
    from riverlog.client.producer.shared_transactions import Member
    from riverlog.spark.sink.row_sender import send

    def member(cluster: "Cluster") -> Member:
        return Member(
            options.cluster.bootstrap,
            batch,
            task=attempt.task if isinstance(attempt, StreamAttempt) else attempt.partition,
            attempt=attempt.number,
            cluster=cluster,
            **producer_arguments(options),
        )

    try:
        return send(rows, member, Member.finish, options, first_partition=first_partition(attempt))
    except ProducerFenced:
        raise Fenced(f"batch {batch.number} is not written: {REPLACED}") from None


def producer_arguments(options: SinkOptions) -> dict[str, Any]:
    """Return the arguments of whoever writes a task's rows."""
    return {**CLIENT, **options.cluster.client, **options.producer}


def shared_arguments(options: SinkOptions) -> dict[str, Any]:
    """Return the arguments of whoever owns a shared transaction."""
    own = {"transaction_timeout_ms": options.timeout_ms, "block_ms_max": options.producer["block_ms_max"]}
    return client_arguments(options) | own


def client_arguments(options: SinkOptions) -> dict[str, Any]:
    """Return the arguments of any other client."""
    client = {**CLIENT, **options.cluster.client}
    client.pop("retry_backoff_ms", None)
    return client


def first_partition(attempt: Attempt | StreamAttempt) -> int:
    """Return where a task begins: tasks at different partitions, and small batches not all at the same."""
    return attempt.partition + (attempt.batch if isinstance(attempt, StreamAttempt) else 0)


CALLS: Final[ResourcePool["SinkCalls"]] = ResourcePool()

REPLACED: Final = (
    "another driver has taken over this query, or the transaction was open for longer than "
    "kafka.transaction.timeout.ms; nothing that this one writes from here on is kept"
)
