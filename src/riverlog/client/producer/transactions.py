"""A producer's transactions: one after another under one transactional id, each committed or aborted as a whole.

    Idle ---> Open ---> Settling ---> Ending(committed) ---> Idle
                |           |
                +-----------+--> Broken ---> Ending(aborted) ---> Idle

A record or an offset that cannot be written breaks the transaction: nothing more is sent, and it can only be aborted.
A producer that was replaced is Unusable. An end whose answer does not come stays Ending, and may be asked for
again: the coordinator knows a repetition. Where the cluster runs `transaction.version` 2 (KIP-890) writing takes a
partition into the transaction by itself and each end brings the epoch of the next; elsewhere partitions and groups are
announced first, and a new epoch is asked for when a sequence was lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from types import TracebackType
from typing import Final, Self

from riverlog.client.consumer.commits import CommittedOffset, GroupMetadata, by_topic, check_commit
from riverlog.client.errors import (
    CommitFailed,
    KafkaError,
    ProducerFenced,
    TimedOut,
    TransactionAborted,
)
from riverlog.client.network.cluster import Cluster
from riverlog.client.network.connection import Connection
from riverlog.client.network.coordinator import FENCED, GroupCoordinator, TransactionCoordinator, asking_again
from riverlog.client.producer.sender import Sender
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_PRODUCER, NO_PRODUCER_EPOCH, ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.transactions import TransactionVersion
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from riverlog.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from riverlog.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from riverlog.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

_FEATURE: Final = "transaction.version"
_FIRST_BY_EPOCH: Final = {ApiKey.PRODUCE: 12, ApiKey.END_TXN: 5, ApiKey.TXN_OFFSET_COMMIT: 5}
"""The versions that make a transaction one with an epoch of its own; clients of the older kind stay below them."""
_ADD_PARTITIONS_VERSION_MAX: Final = 3  # those above are for brokers
_FIRST_INIT_THAT_GOES_ON: Final = 3
_LAST_SECONDS_MAX: Final = 5.0
"""How long one who is being cancelled waits for an abort; without it the time-out of the transaction does the same."""


@dataclass(frozen=True, slots=True)
class Idle:
    """No transaction is open."""


@dataclass(frozen=True, slots=True)
class Open:
    """Records and offsets are taken."""


@dataclass(frozen=True, slots=True)
class Settling:
    """A commit was asked for; what was accepted is on its way."""


@dataclass(frozen=True, slots=True)
class Broken:
    """Something could not be written: only an abort is possible."""

    cause: KafkaError


@dataclass(frozen=True, slots=True)
class Ending:
    """The coordinator was asked for the end, and has not answered yet."""

    committed: bool


@dataclass(frozen=True, slots=True)
class Unusable:
    """The producer can do nothing any more."""

    error: KafkaError


State = Idle | Open | Settling | Broken | Ending | Unusable


@dataclass(frozen=True, slots=True)
class TransactionRules:
    """How a producer wants its transactions."""

    transactional_id: str
    timeout_ms: int
    seconds_max: float
    """How long the coordinator is asked before the caller is told."""


class Transactions:
    """All transactions of one producer."""

    def __init__(
        self,
        cluster: Cluster,
        rules: TransactionRules,
        sender: Sender,
        *,
        settle: Callable[[], Awaitable[None]],
        drop: Callable[[KafkaError], Awaitable[None]],
    ) -> None:
        """`settle` waits until each accepted record has its outcome, `drop` lets go of those that have no place yet."""
        self._cluster = cluster
        self._rules = rules
        self._sender = sender
        self._settle = settle
        self._drop = drop
        self._coordinator = TransactionCoordinator(cluster, rules.transactional_id)
        self._groups: dict[str, GroupCoordinator] = {}
        self._state: State = Idle()
        self._producer_id = NO_PRODUCER
        self._producer_epoch = NO_PRODUCER_EPOCH
        self._by_epoch = False
        self._touched = False  # the coordinator may know of this transaction
        self._added: set[TopicPartition] = set()
        self._wanted: set[TopicPartition] = set()
        self._adding: asyncio.Task[None] | None = None
        self._added_groups: set[str] = set()
        sender.admits = self.admits

    @property
    def transactional_id(self) -> str:
        return self._rules.transactional_id

    @property
    def state(self) -> State:
        return self._state

    async def start(self) -> None:
        """Take over the transactional id: whoever had it is fenced, and what it left open is aborted."""
        await self._again(self._take_over)
        self._sender.version_max = self._version_max(ApiKey.PRODUCE)

    def check_open(self) -> None:
        """Raise where no record may be written now."""
        match self._state:
            case Open():
                return
            case Broken(cause):
                raise KafkaError(
                    ErrorCode.TRANSACTION_ABORTABLE, f"the transaction can only be aborted: {cause.message}"
                ) from cause
            case _:
                raise self._refusal()

    def check_goes_on(self) -> None:
        """Raise where a record that was accepted before is not to be written any more."""
        if not isinstance(self._state, Open | Settling):
            raise _aborted_unsent()

    def broke(self, cause: KafkaError) -> None:
        """Take note that something of the open transaction could not be written."""
        if isinstance(cause, ProducerFenced) or cause.code in FENCED:
            self._lose(cause if isinstance(cause, ProducerFenced) else ProducerFenced(self.transactional_id))
        elif isinstance(self._state, Open | Settling):
            self._state = Broken(cause)
            self._sender.discard(cause)

    # The life of one --------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Open a transaction; finish first what was aborted before, where that is not known to be done."""
        if self._state == Ending(committed=False):
            await self.abort()
        if not isinstance(self._state, Idle):
            raise self._refusal()
        self._state = Open()

    async def commit(self) -> None:
        """Commit, or abort and raise TransactionAborted; where the answer does not come it may be called again."""
        if isinstance(self._state, Open | Settling):
            self._state = Settling()
            await self._settle()
            if isinstance(self._state, Settling):
                self._state = Ending(committed=True)
        if self._state == Ending(committed=True):
            try:
                await self._end(committed=True)
            except KafkaError as problem:
                if problem.retriable:
                    raise TimedOut(
                        f"it is not known yet whether the transaction of {self.transactional_id!r} is committed; "
                        f"commit() may be called again: {problem.message}"
                    ) from problem
                if not self._is_aborted(problem):
                    raise
                self._state = Broken(problem)
        elif not isinstance(self._state, Broken):
            raise self._refusal()
        if isinstance(self._state, Broken):
            cause = self._state.cause
            await self.abort()
            raise TransactionAborted(self.transactional_id, cause) from cause

    async def abort(self) -> None:
        """Take everything back that was written since `begin`; where the answer does not come call it again."""
        if not isinstance(self._state, Open | Settling | Broken) and self._state != Ending(committed=False):
            raise self._refusal()
        reason = self._state.cause if isinstance(self._state, Broken) else _aborted_unsent()
        self._state = Ending(committed=False)
        await self._drop(reason)
        self._sender.discard(reason)
        if self._adding is not None:
            await asyncio.wait([self._adding])
        await self._sender.landed()
        await self._end(committed=False)

    async def give_up(self, error: BaseException) -> None:
        """Abort because of an exception; raise another one where that says better what became of the transaction."""
        if isinstance(self._state, Idle) or self._state == Ending(committed=True):
            return
        cause = self._state.cause if isinstance(self._state, Broken) else None
        try:
            async with asyncio.timeout(None if isinstance(error, Exception) else _LAST_SECONDS_MAX):
                await self.abort()
        except TimeoutError:
            return
        except KafkaError as problem:
            if isinstance(error, KafkaError) and error is not problem and not problem.retriable:
                raise problem from error
            return  # where it can be repeated, the next transaction does so first
        if cause is not None and isinstance(error, KafkaError):
            raise TransactionAborted(self.transactional_id, cause) from error

    # Partitions and offsets -------------------------------------------------------------------------------

    def admits(self, partition: TopicPartition) -> bool:
        """Return whether a batch may be sent now; a partition that must be announced first is."""
        if not isinstance(self._state, Open | Settling):
            return False
        if self._by_epoch:
            self._touched = True
            return True
        if partition in self._added:
            return True
        self._wanted.add(partition)
        if self._adding is None:
            self._adding = asyncio.create_task(self._add_wanted())
        return False

    async def send_offsets(self, metadata: GroupMetadata, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Commit that the group goes on here if the transaction is committed."""
        self.check_open()
        if not offsets:
            return
        self._touched = True
        coordinator = self._groups.setdefault(metadata.group, GroupCoordinator(self._cluster, metadata.group))
        try:
            if not self._by_epoch and metadata.group not in self._added_groups:
                await self._again(lambda: self._add_group(metadata.group))
                self._added_groups.add(metadata.group)
            await self._again(lambda: self._send_offsets(coordinator, metadata, offsets))
        except KafkaError as problem:
            self.broke(problem)
            raise

    def metadata_of(self, member: Callable[[], GroupMetadata]) -> GroupMetadata:
        """Ask a member for its place in its group; one that has none any more breaks the transaction."""
        try:
            return member()
        except CommitFailed as problem:
            self.broke(problem)
            raise

    async def _add_wanted(self) -> None:
        try:
            while self._wanted and isinstance(self._state, Open | Settling):
                wanted = sorted(self._wanted)
                self._touched = True
                await self._again(lambda: self._add_partitions(wanted))  # noqa: B023 - awaited before it changes
                self._added.update(wanted)
                self._wanted.difference_update(wanted)
        except KafkaError as problem:
            self.broke(problem)
        finally:
            self._adding = None
            self._sender.wake()

    # Requests ---------------------------------------------------------------------------------------------

    async def _learn_rules(self) -> None:
        self._by_epoch = is_by_epoch(await self._coordinator.connection())

    async def _take_over(self) -> None:
        """Become the producer, or the one with the next epoch; decide by which rules transactions are made."""
        connection = await self._coordinator.connection()
        goes_on = self._producer_id != NO_PRODUCER
        if goes_on and connection.version_of(ApiKey.INIT_PRODUCER_ID) < _FIRST_INIT_THAT_GOES_ON:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "a record was lost, and the broker is too old to let this producer go on; close it and start a new one",
            )
        if not goes_on:
            self._by_epoch = is_by_epoch(connection)
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._rules.timeout_ms,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
        )
        response: InitProducerIdResponse = await self._coordinator.ask(request)
        if response.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            raise KafkaError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"transaction_timeout_ms={self._rules.timeout_ms} is not allowed: it must be above 0 and at most the "
                "cluster's transaction.max.timeout.ms",
            )
        self._coordinator.check(response.error_code, "a producer id")
        self._write_as(response.producer_id, response.producer_epoch)

    async def _add_partitions(self, partitions: list[TopicPartition]) -> None:
        self.check_goes_on()
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=[each.partition for each in group])
                for topic, group in groupby(partitions, key=lambda partition: partition.topic)
            ],
        )
        response: AddPartitionsToTxnResponse = await self._coordinator.ask(
            request, version_max=_ADD_PARTITIONS_VERSION_MAX
        )
        for topic in response.results_by_topic_v3_and_below:
            for entry in topic.results_by_partition:
                self._coordinator.check(
                    entry.partition_error_code, f"{topic.name}-{entry.partition_index} in a transaction"
                )

    async def _add_group(self, group: str) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            group_id=group,
        )
        response: AddOffsetsToTxnResponse = await self._coordinator.ask(request)
        self._coordinator.check(response.error_code, f"offsets of group {group!r} in a transaction")

    async def _send_offsets(
        self,
        coordinator: GroupCoordinator,
        metadata: GroupMetadata,
        offsets: Mapping[TopicPartition, CommittedOffset],
    ) -> None:
        identity = metadata.identity
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=metadata.group,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            generation_id=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.instance_id,
            topics=[
                TxnOffsetCommitRequestTopic(topic, partitions)
                for topic, partitions in by_topic(offsets, TxnOffsetCommitRequestPartition)
            ],
        )
        response: TxnOffsetCommitResponse = await coordinator.ask(
            request, version_max=self._version_max(ApiKey.TXN_OFFSET_COMMIT)
        )
        for topic in response.topics:
            for entry in topic.partitions:
                if entry.error_code in FENCED:
                    raise ProducerFenced(self.transactional_id)
                check_commit(coordinator, entry.error_code, "offsets")

    async def _end(self, *, committed: bool) -> None:
        try:
            if self._touched:
                await self._again(lambda: self._ask_for_end(committed=committed))
            if not self._by_epoch and self._sender.has_gap:
                await self._again(self._take_over)
        except KafkaError as problem:
            if not problem.retriable and not (committed and self._is_aborted(problem)):
                self._lose(problem)
            raise
        self._touched = False
        self._added.clear()
        self._added_groups.clear()
        self._wanted.clear()
        self._sender.accept()
        self._state = Idle()

    def _is_aborted(self, problem: KafkaError) -> bool:
        """Return whether a commit was refused because the transaction is aborted, or has to be: its time may be up."""
        ended = problem.code is ErrorCode.INVALID_TXN_STATE and self._by_epoch
        return ended or problem.code is ErrorCode.TRANSACTION_ABORTABLE

    async def _ask_for_end(self, *, committed: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            committed=committed,
        )
        response: EndTxnResponse = await self._coordinator.ask(request, version_max=self._version_max(ApiKey.END_TXN))
        never_began = response.error_code == ErrorCode.INVALID_TXN_STATE and not committed and not self._by_epoch
        if not never_began:  # what should have opened it may not have arrived
            self._coordinator.check(response.error_code, "the end of a transaction")
        if self._by_epoch:
            self._write_as(response.producer_id, response.producer_epoch)
        self._touched = False  # it is decided: should the next step fail, this one is not repeated

    def _write_as(self, producer_id: int, producer_epoch: int) -> None:
        self._producer_id = ProducerId(producer_id)
        self._producer_epoch = ProducerEpoch(producer_epoch)
        self._sender.write_as(self._producer_id, self._producer_epoch)

    async def _again(self, ask: Callable[[], Awaitable[None]]) -> None:
        await asking_again(self._cluster, ask, seconds=self._rules.seconds_max)

    def _version_max(self, key: ApiKey) -> int | None:
        return None if self._by_epoch else _FIRST_BY_EPOCH[key] - 1

    def _lose(self, error: KafkaError) -> None:
        if not isinstance(self._state, Unusable):
            self._state = Unusable(error)
            self._sender.discard(error)

    def _refusal(self) -> KafkaError:
        """Return why what was asked for is not possible now."""
        match self._state:
            case Unusable(error):
                return error
            case Idle():
                why = 'no transaction is open; write "async with producer.transaction():", or await producer.begin()'
            case Open() | Broken():
                why = "a transaction is open; commit or abort it first"
            case Ending(committed=True):
                why = "it is not known yet whether the transaction is committed; call commit() again"
            case _:
                why = "the transaction is about to end"
        return KafkaError(ErrorCode.INVALID_TXN_STATE, why)


def is_by_epoch(connection: Connection) -> bool:
    """Return whether the cluster gives each transaction an epoch of its own."""
    return connection.features.get(_FEATURE, 0) >= TransactionVersion.EPOCH_PER_TRANSACTION


def version_max(key: ApiKey, connection: Connection) -> int | None:
    """Return the newest version of a request that may be used in transactions of this cluster; None for any."""
    return None if is_by_epoch(connection) else _FIRST_BY_EPOCH[key] - 1


class Transaction:
    """What `producer.transaction()` gives: committed at the end of its block, aborted by an exception."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    async def __aenter__(self) -> Self:
        await self._transactions.begin()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if error is not None:
            await self._transactions.give_up(error)
        elif not isinstance(self._transactions.state, Idle):  # in the block it may have been ended by hand
            await self._transactions.commit()


def _aborted_unsent() -> KafkaError:
    return KafkaError(ErrorCode.TRANSACTION_ABORTABLE, "the transaction was aborted before the record was written")
