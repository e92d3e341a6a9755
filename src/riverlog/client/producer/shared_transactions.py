"""Transactions with many writers: the owner decides about a batch that members in other processes have written.

    async with SharedTransactions("127.0.0.1:9092", "orders-pipeline", incarnation="2f1c") as pipeline:
        batch = pipeline.batch(7)                          # hand it to every task; it can be pickled
        ...
        await pipeline.commit(batch, memberships)          # what the tasks gave back

    async with Member("127.0.0.1:9092", batch, task=3, attempt=0) as member:      # in a task
        await member.write(records)
        membership = await member.finish()                 # hand it back to the owner

What members wrote that are not listed is aborted; one that is closed before it has finished says so, and what it wrote
is aborted at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

from riverlog.client.consumer.commits import CommittedOffset, by_topic
from riverlog.client.errors import KafkaError, TimedOut, TransactionAborted
from riverlog.client.lifetime import Startable
from riverlog.client.network.cluster import Cluster
from riverlog.client.network.coordinator import FENCED, TransactionCoordinator, asking_again
from riverlog.client.network.security import Security
from riverlog.client.ports import Ports
from riverlog.client.producer.deliveries import EncodedBatch
from riverlog.client.producer.exactly_once import NewRecord, send_all
from riverlog.client.producer.producer import Producer
from riverlog.client.producer.sender import Sender
from riverlog.client.producer.transactions import Idle, Open, Transactions
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_PRODUCER, TopicPartition
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_batches import DescribeBatchesRequest, DescribeBatchesResponse
from riverlog.wire.messages.end_transaction import (
    EndTransactionMember,
    EndTransactionPartition,
    EndTransactionRequest,
    EndTransactionResponse,
    EndTransactionTopic,
)
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from riverlog.wire.messages.join_transaction import JoinTransactionRequest, JoinTransactionResponse

T = TypeVar("T")

_LEAVE_SECONDS_MAX: Final = 1.0
"""How long a member that gives up waits for somebody to hear it."""
_FENCED: Final = FENCED - {ErrorCode.INVALID_PRODUCER_EPOCH}
"""The epoch of the member that commits the offsets may be refused, and that is not the owner's."""


@dataclass(frozen=True, slots=True)
class SharedBatch:
    """One batch of a pipeline, and in whose name it is written: what a task needs to join it."""

    transactional_id: str
    owner_id: int
    owner_epoch: int
    incarnation: str
    number: int


@dataclass(frozen=True, slots=True)
class Membership:
    """Who wrote a task's part of a batch; None where the batch was committed before, and nothing was written."""

    producer: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """The last batch of an incarnation that is committed."""

    number: int
    marker: bytes


class SharedTransactions(Startable):
    """The owner of a pipeline's transactional id. `start` fences the one before and aborts what it left open."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        transactional_id: str,
        *,
        incarnation: str,
        owner: tuple[int, int] | None = None,
        transaction_timeout_ms: int = 60_000,
        request_timeout_ms: int = 30_000,
        block_ms_max: int = 60_000,
        client_id: str = "riverlog-pipeline",
        security: Security | None = None,
        ports: Ports | None = None,
    ) -> None:
        """Describe the owner; nothing is connected before `start`.

        `incarnation` names the run of the pipeline whose batches are counted: one that begins from nothing has another
        name. A batch that is open for longer than `transaction_timeout_ms` is aborted by the cluster. `owner` is the id
        and epoch of one who took over before, and in whose name this one goes on: nobody is fenced then.
        """
        if not transactional_id or not incarnation:
            raise ValueError("transactional_id and incarnation are names, and must not be empty")
        self._transactional_id = transactional_id
        self._incarnation = incarnation
        self._timeout_ms = transaction_timeout_ms
        self._block_seconds = block_ms_max / 1000
        self._cluster = Cluster(
            bootstrap,
            ports=ports,
            client_id=client_id,
            request_timeout_ms=request_timeout_ms,
            security=security,
        )
        self._coordinator = TransactionCoordinator(self._cluster, transactional_id)
        self._owner = InitProducerIdResponse(producer_id=NO_PRODUCER)
        if owner is not None:
            self._owner = InitProducerIdResponse(producer_id=owner[0], producer_epoch=owner[1])
        self._goes_on = owner is not None
        self._in_doubt: EndTransactionRequest | None = None
        """The commit of which nobody has said whether it took effect."""

    async def start(self) -> Self:
        """Take over the transactional id, unless there is an owner to go on as."""
        async with self._cluster.starting():
            if not self._goes_on:
                self._owner = await self._again(self._take_over)
        return self

    async def close(self) -> None:
        """Release all connections. A batch that is open stays so until its time is up, or another takes over."""
        await self._cluster.close()

    async def is_offered(self) -> bool:
        """Return whether the cluster has shared transactions: riverlog's own does."""
        connection = await self._coordinator.connection()
        return connection.offers(ApiKey.JOIN_TRANSACTION)

    async def committed(self) -> CommittedBatch | None:
        """Return the last batch that is committed, if one is: those up to it need not be written again."""
        response = await self._again(self._describe)
        if response.committed_batch < 0:
            return None
        return CommittedBatch(response.committed_batch, bytes(response.marker))

    async def open_batch(self) -> int | None:
        """Return the batch that somebody has joined and that is not ended, if there is one."""
        response = await self._again(self._describe)
        return None if response.open_batch < 0 else response.open_batch

    def batch(self, number: int) -> SharedBatch:
        """Name a batch for those who are to write in it."""
        if self._owner.producer_id == NO_PRODUCER:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "nobody owns the transactional id yet; await start() first")
        return SharedBatch(
            self._transactional_id, self._owner.producer_id, self._owner.producer_epoch, self._incarnation, number
        )

    async def commit(
        self,
        batch: SharedBatch,
        memberships: Iterable[Membership],
        *,
        group: str | None = None,
        offsets: Mapping[TopicPartition, int] | None = None,
        marker: bytes = b"",
    ) -> None:
        """Commit what these members wrote, and the group's offsets with it; abort what all others wrote.

        TransactionAborted says that the batch was aborted before, for its time was up: it may be written again. After
        TimedOut it is not known whether it is committed; the same call may be repeated, and changes nothing then.
        """
        if offsets and group is None:
            raise ValueError("offsets belong to a group; name it: commit(batch, memberships, group=..., offsets=...)")
        request = _request(batch, committed=True)
        request.members = [EndTransactionMember(*each.producer) for each in memberships if each.producer is not None]
        request.group_id = group if offsets else None
        request.topics = _topics(offsets or {})
        request.marker = marker
        self._in_doubt = request
        try:
            await self._again(lambda: self._end(request))
        except KafkaError as problem:
            if problem.retriable:
                raise self._unknown(batch.number, "commit", problem) from problem
            self._in_doubt = None
            if problem.code is ErrorCode.TRANSACTION_ABORTABLE:
                raise TransactionAborted(self._transactional_id, problem) from problem
            raise
        self._in_doubt = None

    async def abort(self, batch: SharedBatch) -> None:
        """Take back all that was written in a batch; it may be written again. A committed one is refused.

        A commit that is in doubt is asked for once more: it may be decided, or arrive yet, and is not taken back then.
        """
        if self._in_doubt is not None and _names(self._in_doubt, batch):
            await self._settle(self._in_doubt)
        await self._again(lambda: self._end(_request(batch, committed=False)))

    async def _settle(self, commit: EndTransactionRequest) -> None:
        """Return where a commit in doubt was refused; raise where it is decided, or nobody says."""
        try:
            await self._again(lambda: self._end(commit))
        except KafkaError as problem:
            if problem.retriable:
                raise self._unknown(commit.batch, "abort", problem) from problem
            self._in_doubt = None
            return
        self._in_doubt = None
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"batch {commit.batch} of {self._transactional_id!r} is committed, though the answer to its commit was "
            "lost: nothing is left to abort, and nothing to write again",
        )

    def _unknown(self, batch: int, call: str, problem: KafkaError) -> TimedOut:
        return TimedOut(
            f"it is not known yet whether batch {batch} of {self._transactional_id!r} is committed; "
            f"{call}() may be called again: {problem.message}"
        )

    async def _take_over(self) -> InitProducerIdResponse:
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=NO_PRODUCER,
            producer_epoch=-1,
        )
        response: InitProducerIdResponse = await self._coordinator.ask(request)
        self._coordinator.check(response.error_code, "the right to write", fenced=_FENCED)
        return response

    async def _describe(self) -> DescribeBatchesResponse:
        request = DescribeBatchesRequest(self._transactional_id, self._incarnation)
        response: DescribeBatchesResponse = await self._coordinator.ask(request)
        self._coordinator.check(response.error_code, "the batches", fenced=_FENCED)
        return response

    async def _end(self, request: EndTransactionRequest) -> None:
        response: EndTransactionResponse = await self._coordinator.ask(request)
        what = f"the end of batch {request.batch}"
        self._coordinator.check(response.error_code, what, response.error_message, fenced=_FENCED)

    async def _again(self, ask: Callable[[], Awaitable[T]]) -> T:
        return await asking_again(self._cluster, ask, seconds=self._block_seconds)


class Member(Startable):
    """An attempt of a task that writes in a batch. Whatever it leaves unfinished is aborted."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        batch: SharedBatch,
        *,
        task: int,
        attempt: int,
        **options: Any,
    ) -> None:
        """Describe the member; nothing is connected before `start`.

        No two attempts of a task have the same number. `options` are those of `Producer`.
        """
        self._producer = _MemberProducer(bootstrap, batch, task, attempt, **options)

    async def start(self) -> Self:
        """Join the batch; ProducerFenced where another owner has taken over."""
        await self._producer.start()
        return self

    @property
    def membership(self) -> Membership:
        """Return who the member writes as."""
        return self._producer.part.membership

    @property
    def is_needed(self) -> bool:
        """Return whether there is anything to write: not where the batch is committed already."""
        return self.membership.producer is not None

    async def write(self, records: Iterable[NewRecord]) -> None:
        """Send records, waiting where too much is under way; without effect where the member is not needed."""
        if self.is_needed:
            await send_all(self._producer, records)

    async def send_encoded(self, batch: EncodedBatch) -> None:
        """Send a batch as it is, as `Producer.send_encoded` does; without effect where the member is not needed."""
        if self.is_needed:
            await self._producer.send_encoded(batch)

    async def partitions(self, topic: str) -> int:
        """Count the partitions of a topic, as `Producer.partitions` does."""
        return await self._producer.partitions(topic)

    async def flush(self) -> None:
        """Wait until all that was sent so far is kept; raise where it is not."""
        if self.is_needed:
            await self._producer.flush()
            self._producer.part.check_open()

    async def finish(self) -> Membership:
        """Wait until all that was sent is kept, and give what the owner needs to commit it."""
        await self.flush()
        return self._producer.part.finish()

    async def close(self) -> None:
        """Release all connections; what was not sent yet is not sent any more."""
        await self._producer.close()


class _MemberProducer(Producer):
    """A producer whose one transaction is part of a batch: others begin and end it."""

    part: "_Part"

    def __init__(
        self, bootstrap: str | Sequence[str], batch: SharedBatch, task: int, attempt: int, **options: Any
    ) -> None:
        super().__init__(bootstrap, transactional_id=batch.transactional_id, **options)
        self._named = (batch, task, attempt)

    async def _start_transactions(self, sender: Sender) -> Transactions:
        self.part = self._transactions_as(_Part, sender)
        await self.part.join(*self._named)
        return self.part


class _Part(Transactions):
    """A member's part of a batch: open from the join on, and ended by the owner."""

    membership = Membership(None)

    async def join(self, batch: SharedBatch, task: int, attempt: int) -> None:
        request = JoinTransactionRequest(
            transactional_id=batch.transactional_id,
            owner_id=batch.owner_id,
            owner_epoch=batch.owner_epoch,
            incarnation=batch.incarnation,
            batch=batch.number,
            task=task,
            attempt=attempt,
        )
        await self._again(lambda: self._join(request))

    def finish(self) -> Membership:
        """Write nothing any more."""
        self._state = Idle()
        return self.membership

    async def abort(self) -> None:
        """Send nothing any more, and let what was sent be aborted; if nobody hears that, it is with the batch."""
        has_written, self._state = self._touched, Idle()
        reason = KafkaError(ErrorCode.TRANSACTION_ABORTABLE, "the member was closed before it had finished")
        await self._drop(reason)
        self._sender.discard(reason)
        await self._sender.landed()
        if has_written:
            try:
                async with asyncio.timeout(_LEAVE_SECONDS_MAX):
                    await self._ask_for_end(committed=False)
            except (KafkaError, TimeoutError):
                pass

    async def _join(self, request: JoinTransactionRequest) -> None:
        response: JoinTransactionResponse = await self._coordinator.ask(request)
        self._coordinator.check(response.error_code, f"a place in batch {request.batch}")
        if response.producer_id == NO_PRODUCER:
            return
        self._by_epoch = True
        self._write_as(response.producer_id, response.producer_epoch)
        self.membership = Membership((response.producer_id, response.producer_epoch))
        self._state = Open()


def _names(request: EndTransactionRequest, batch: SharedBatch) -> bool:
    return (request.incarnation, request.batch) == (batch.incarnation, batch.number)


def _request(batch: SharedBatch, *, committed: bool) -> EndTransactionRequest:
    return EndTransactionRequest(
        transactional_id=batch.transactional_id,
        owner_id=batch.owner_id,
        owner_epoch=batch.owner_epoch,
        incarnation=batch.incarnation,
        batch=batch.number,
        committed=committed,
    )


def _topics(offsets: Mapping[TopicPartition, int]) -> list[EndTransactionTopic]:
    committed = {partition: CommittedOffset.at(offset) for partition, offset in offsets.items()}
    return [
        EndTransactionTopic(topic, partitions) for topic, partitions in by_topic(committed, EndTransactionPartition)
    ]
