"""Offsets that a group commits in a transaction: the first of them begin the transaction in the group's partition.

So they are verified as the first batch of a producer is in any partition (KIP-890): the coordinator of the transaction
must say that it is open, and no marker may have come since it was asked.
"""

from typing import TYPE_CHECKING

from riverlog.coordination.groups import GroupCoordinator
from riverlog.coordination.verification import verify_one
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_NODE, NO_SEQUENCE, TopicPartition
from riverlog.model.ports import Clock
from riverlog.model.transactions import ProducerIdentity, VerifyTransaction
from riverlog.partitions.partition import Partition
from riverlog.partitions.recovery import Recovering
from riverlog.partitions.replicas import Replicas
from riverlog.transactions.verification import Question, VerificationRefused

if TYPE_CHECKING:
    from riverlog.coordination.remote_offsets import RemoteOffsets
    from riverlog.groups.commands import CodesReply, CommitOffsets


class TransactionalOffsets:
    """Commits offsets in transactions."""

    def __init__(
        self,
        groups: GroupCoordinator,
        replicas: Replicas,
        verify: VerifyTransaction,
        clock: Clock,
        elsewhere: "RemoteOffsets | None" = None,
    ) -> None:
        """Build it; without a way to other brokers all groups are here."""
        self._elsewhere = elsewhere
        self._groups = groups
        self._replicas = replicas
        self._verify = verify
        self._clock = clock

    async def commit_anywhere(self, transactional_id: str, command: "CommitOffsets") -> "CodesReply":
        """Add the group's partition to the transaction and store offsets as below, on whichever broker coordinates the
        group: the owner of a batch asks the coordinator of its transactions alone."""
        name = self._groups.partition_of(command.group_id)
        leader = self._groups.leader_of(name)
        if leader == NO_NODE:
            raise Refusal(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"Nobody coordinates the group {command.group_id!r} now."
            )
        if self._elsewhere is not None and not self._groups.is_here(name):
            return await self._elsewhere.commit(leader, transactional_id, command)
        return await self.commit(transactional_id, command, adds=True, knows_abortable=True)

    async def commit(
        self, transactional_id: str, command: "CommitOffsets", *, adds: bool, knows_abortable: bool
    ) -> "CodesReply":
        """Store offsets in the group until the transaction ends; Refusal says why not.

        With `adds`, the group's partition becomes part of the transaction first.
        """
        producer = command.producer
        assert producer is not None
        name = self._groups.partition_of(command.group_id)
        self._groups.check_loaded(name.partition)  # before its partition is opened: an unwritten one need not be read
        partition = self._partition(name)
        if not _has_begun(partition, producer):
            verifications = partition.verifications
            begun = verifications.begin(producer, NO_SEQUENCE, begins_epoch=adds, now_ms=self._clock.wall_ms())
            if begun is None:
                raise Refusal(
                    ErrorCode.INVALID_PRODUCER_EPOCH, f"another epoch of producer {producer.id} is about to commit here"
                )
            question = Question(name, transactional_id, verifications, begun, knows_abortable)
            answer = await verify_one(self._verify, question)
            if isinstance(answer, VerificationRefused):
                raise _in_words_of_coordinators(answer)
            if not verifications.stands(begun) and not _has_begun(partition, producer):
                raise Refusal(ErrorCode.INVALID_TXN_STATE, f"a transaction of {transactional_id!r} has ended meanwhile")
        _check_epoch(partition, producer)
        # Nothing has run since the checks: the coordinator's log takes what they let pass.
        return await self._groups.submit(command.group_id, command)

    def _partition(self, name: TopicPartition) -> Partition:
        try:
            partition = self._replicas.get(*name)
        except Recovering:
            partition = None
        if partition is None:
            raise Refusal(ErrorCode.NOT_COORDINATOR, f"{name} is not here now")
        return partition


def _has_begun(partition: Partition, producer: ProducerIdentity) -> bool:
    """Return whether the producer's transaction has begun in the partition."""
    known = partition.log.producers.get(producer.id)
    return known is not None and known.epoch == producer.epoch and known.transaction_offset >= 0


def _check_epoch(partition: Partition, producer: ProducerIdentity) -> None:
    known = partition.log.producers.get(producer.id)
    if known is not None and known.epoch > producer.epoch:
        raise Refusal(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {producer.id} is at epoch {known.epoch}; offsets of epoch {producer.epoch} came too late",
        )


def _in_words_of_coordinators(no: VerificationRefused) -> Refusal:
    """Members ask a group's coordinator again for other errors than producers a partition."""
    is_to_be_repeated = no.code is ErrorCode.NOT_ENOUGH_REPLICAS
    return Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE if is_to_be_repeated else no.code, no.message)
