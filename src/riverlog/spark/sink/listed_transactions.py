"""Exactly once on clusters without shared transactions: one per task, all of them listed before the first ends.

A driver that dies while it commits leaves the list, and the next start finishes it before anything else is written.
What remains is named: transactions are committed one after another, so readers may see a part of a batch for a moment;
and one whose time is up before its turn is lost, and that is reported.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from riverlog.client.errors import KafkaError, ProducerFenced
from riverlog.client.network.cluster import Cluster
from riverlog.client.producer.shared_transactions import CommittedBatch
from riverlog.client.producer.transaction_handover import AdoptingProducer, Ender, HandedTransaction, HandingProducer
from riverlog.spark.refusal import SinkRefused
from riverlog.spark.sink.commit_strategies import (
    REPLACED,
    TaskCommitMessage,
    client_arguments,
    first_partition,
    producer_arguments,
)
from riverlog.spark.sink.counted_writes import check_same, what_is_written
from riverlog.spark.sink.options import SinkOptions
from riverlog.spark.sink.retries import started
from riverlog.spark.sink.row_sender import send
from riverlog.spark.sink.transaction_lists import ListedBatch, last_list, write_list
from riverlog.spark.worker.attempt import Attempt, StreamAttempt

if TYPE_CHECKING:
    import pyarrow as pa

_ENDS_AT_ONCE: Final = 50


@dataclass(frozen=True, slots=True)
class ListedTransactions:
    """Each attempt of a task has a transaction of its own, and the sink's commit() ends those that count."""

    pipeline: str
    owner: tuple[int, int] | None = None
    """In whose name lists are written; None for a job, which nobody continues."""
    done: ListedBatch | None = None
    """What was listed last, which is committed by now."""
    is_one_of_several: bool = False
    """Whether a batch may have several writes, each with a list of its own."""

    def write(
        self, rows: "Iterator[pa.RecordBatch]", options: SinkOptions, attempt: Attempt | StreamAttempt
    ) -> TaskCommitMessage:
        """Write a task's rows, unless its batch is committed."""
        stream = attempt if isinstance(attempt, StreamAttempt) else None
        if stream is not None and self._is_committed(stream):
            for _ in rows:  # to the end all the same: Spark keeps a task's state when its rows are read
                pass
            return self.write_nothing(attempt)

        def producer(cluster: Cluster) -> HandingProducer:
            return HandingProducer(
                options.cluster.bootstrap,
                transactional_id=f"{self.pipeline}-{attempt.partition}-{attempt.retry}",
                transaction_timeout_ms=options.timeout_ms,
                cluster=cluster,
                **producer_arguments(options),
            )

        handed = send(rows, producer, HandingProducer.hand_over, options, first_partition=first_partition(attempt))
        return TaskCommitMessage(self, attempt=stream, handed=handed)

    def write_nothing(self, attempt: Attempt | StreamAttempt) -> TaskCommitMessage:
        """Return the message of a task without rows."""
        return TaskCommitMessage(self, attempt=attempt if isinstance(attempt, StreamAttempt) else None)

    def commit(self, messages: Sequence[TaskCommitMessage], options: SinkOptions) -> None:
        """Keep the list, then commit one after another."""
        attempt = messages[0].attempt
        handed = tuple(each.handed for each in messages if each.handed is not None)
        if not handed and not self.is_one_of_several:
            return
        listed = None if attempt is None else self._list(attempt, handed, options)
        name = "the job" if attempt is None else f"batch {attempt.batch}"
        try:
            asyncio.run(self._commit(listed, handed, options))
        except ProducerFenced:
            raise SinkRefused(f"{name} is not committed: {REPLACED}") from None
        except KafkaError as problem:
            raise SinkRefused(f"{name} may not be committed: {problem}") from problem

    def abort(self, messages: Sequence[TaskCommitMessage], options: SinkOptions) -> None:
        """Take back what was written; where that fails, time does the same."""
        handed = [each.handed for each in messages if each.handed is not None]
        try:
            asyncio.run(_end_all(handed, options, committed=False))
        except KafkaError:
            pass

    def _is_committed(self, attempt: StreamAttempt) -> bool:
        done = self.done
        if done is None or done.query != attempt.query or attempt.batch > done.batch:
            return False
        return attempt.batch < done.batch or not self.is_one_of_several or self._ordinal(attempt) <= done.writes

    def _ordinal(self, attempt: StreamAttempt) -> int:
        """Count the writes of the batch up to this one."""
        done = self.done
        is_next = done is not None and (done.query, done.run, done.batch) == (attempt.query, attempt.run, attempt.batch)
        return 1 + (done.seen if done is not None and is_next else 0)

    def _list(self, attempt: StreamAttempt, handed: tuple[HandedTransaction, ...], options: SinkOptions) -> ListedBatch:
        listed = ListedBatch(attempt.query, attempt.batch, handed)
        if not self.is_one_of_several:
            return listed
        done, ordinal = self.done, self._ordinal(attempt)
        topics = done.topics if done is not None and (done.query, done.batch) == (listed.query, listed.batch) else ()
        if ordinal <= len(topics):
            check_same(
                CommittedBatch(attempt.batch, topics[ordinal - 1].encode()), attempt.batch, what_is_written(options)
            )
        else:
            topics = (*topics, what_is_written(options).decode())
        return replace(listed, run=attempt.run, seen=ordinal, topics=topics)

    async def _commit(
        self, listed: ListedBatch | None, handed: Sequence[HandedTransaction], options: SinkOptions
    ) -> None:
        if listed is None or self.owner is None:
            await _end_all(handed, options, committed=True)
            return
        async with started(
            _writer(self.pipeline, self.owner, options), seconds_max=options.patience_seconds
        ) as producer:
            await write_list(producer, self.pipeline, listed)
            await _finish(producer, self.pipeline, listed, options)


async def take_over(
    pipeline: str, owner: tuple[int, int], options: SinkOptions, *, is_one_of_several: bool = False
) -> ListedTransactions:
    """Finish what the driver before has listed, and return the strategy of this one."""
    listed = await last_list(options.cluster.bootstrap, pipeline, client_arguments(options))
    if listed is None:
        return ListedTransactions(pipeline, owner, is_one_of_several=is_one_of_several)
    if not listed.is_done:
        async with started(_writer(pipeline, owner, options), seconds_max=options.patience_seconds) as producer:
            await _finish(producer, pipeline, listed, options)
            owner = producer.identity
    return ListedTransactions(pipeline, owner, listed, is_one_of_several)


async def _finish(producer: AdoptingProducer, pipeline: str, listed: ListedBatch, options: SinkOptions) -> None:
    """Commit all that is listed, and note that it is done, also where a part is lost: it will not come back."""
    try:
        await _end_all(listed.transactions, options, committed=True)
    except ProducerFenced as lost:
        await write_list(producer, pipeline, listed.done())
        raise SinkRefused(
            f"a part of batch {listed.batch} is lost, and the rest of it is committed: {lost.message}. It was open for "
            f"longer than kafka.transaction.timeout.ms={options.timeout_ms}; started again, the query "
            "continues after it"
        ) from lost
    await write_list(producer, pipeline, listed.done())


async def _end_all(handed: Sequence[HandedTransaction], options: SinkOptions, *, committed: bool) -> None:
    """End all of them, also behind one that cannot be ended; raise the first problem."""
    turns = asyncio.Semaphore(_ENDS_AT_ONCE)
    ending = Ender(options.cluster.bootstrap, **client_arguments(options))
    async with started(ending, seconds_max=options.patience_seconds) as ender:

        async def end(each: HandedTransaction) -> None:
            async with turns:
                await ender.end(each, committed=committed)

        outcomes = await asyncio.gather(*(end(each) for each in handed), return_exceptions=True)
    problems = [each for each in outcomes if isinstance(each, BaseException)]
    if problems:
        raise problems[0]


def _writer(pipeline: str, owner: tuple[int, int], options: SinkOptions) -> AdoptingProducer:
    """Return who may write lists, in the name of the driver that took over last."""
    client = client_arguments(options)
    return AdoptingProducer(options.cluster.bootstrap, transactional_id=pipeline, producer=owner, **client)
