"""The transaction coordinators of this node: one machine per partition of `__transaction_state`.

Partitions ask here whether a batch belongs to an open transaction; for them this is a port.
"""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from riverlog.controller.metadata import MetadataDriver
from riverlog.drivers.coordinators import Coordinators
from riverlog.metadata.commands.topics import NewTopic
from riverlog.metadata.image import TRANSACTIONS_TOPIC
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.ports import Clock, Random
from riverlog.model.transactions import MarkerPort, Producer, TransactionVersion
from riverlog.observe.stats import TransactionStats
from riverlog.partitions.replicas import Replicas

if TYPE_CHECKING:
    from riverlog.drivers.transaction_coordinator import TransactionCoordinator
    from riverlog.drivers.transaction_markers import MarkerSender
    from riverlog.transactions.commands import (
        ClientCommand,
        EndTransaction,
        InitProducer,
        JoinBatch,
        PartitionsReply,
        ProducerReply,
        TransactionsCommand,
    )
    from riverlog.transactions.machine import TransactionsMachine

    _Coordinators: TypeAlias = Coordinators[TransactionsCommand, TransactionCoordinator]
else:
    _Coordinators = Coordinators


class Transactions(_Coordinators):
    """Finds the coordinator of a transactional id, and keeps all of them running."""

    TOPIC = TRANSACTIONS_TOPIC

    def __init__(
        self,
        metadata: MetadataDriver,
        replicas: Replicas,
        *,
        markers: MarkerPort,
        clock: Clock,
        random: Random,
        stats: TransactionStats,
    ) -> None:
        super().__init__(metadata, replicas, clock=clock, random=random)
        self._markers = markers
        self._stats = stats
        self._sender: MarkerSender | None = None

    async def close(self) -> None:
        """Send no more markers, and wait until all that was decided is committed."""
        if self._sender is not None:
            await self._sender.close()
        await super().close()

    def machines(self) -> "Iterator[TransactionsMachine]":
        """Give the machines that are there, for those who look and change nothing."""
        return (coordinator.machine for coordinator in self._there())

    def decide(self, command: "ClientCommand") -> "asyncio.Future[Any]":
        """Let the coordinator decide now, with an id that nobody had before if it needs one; Refusal if it cannot."""
        from riverlog.transactions.commands import EndTransaction, InitProducer, JoinBatch

        asked = self.submit(command.transactional_id, command)
        if isinstance(command, InitProducer | EndTransaction | JoinBatch) and _may_need_id(asked):
            return asyncio.ensure_future(self._with_id(command, asked))
        return asked

    async def _with_id(
        self, command: "InitProducer | EndTransaction | JoinBatch", asked: "asyncio.Future[Any]"
    ) -> "ProducerReply":
        from riverlog.transactions.commands import NeedsProducerId

        while isinstance(reply := await asked, NeedsProducerId):
            new_id = await self._metadata.next_producer_id()
            asked = self.submit(command.transactional_id, command.with_id(new_id))
        decided: ProducerReply = reply
        return decided

    def verify(
        self,
        transactional_id: str,
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        partition: TopicPartition,
        *,
        adds: bool,
    ) -> "asyncio.Future[ErrorCode]":
        """Say whether the partition belongs to the producer's open transaction; with `adds`, make it so first."""
        from riverlog.transactions.commands import AddPartitions, VerifyPartitions

        producer = Producer(producer_id, producer_epoch)
        command: TransactionsCommand = (
            AddPartitions(transactional_id, producer, (partition,), TransactionVersion.EPOCH_PER_TRANSACTION)
            if adds
            else VerifyPartitions(transactional_id, producer, (partition,))
        )
        try:
            asked = self.submit(transactional_id, command)
        except Refusal as refusal:
            return _known(refusal.code)
        if asked.done() and asked.exception() is None:
            return _known(asked.result().codes[0])
        return asyncio.ensure_future(_only_code(asked))

    def _new_topic(self) -> NewTopic:
        settings = self._metadata.settings
        return self._internal(
            settings.transaction_state_log_num_partitions,
            settings.transaction_state_log_replication_factor,
            {"compression.type": "uncompressed", "segment.bytes": str(settings.transaction_state_log_segment_bytes)},
        )

    def _new_coordinator(self, name: TopicPartition) -> "TransactionCoordinator":
        # A node without transactions starts without these.
        from riverlog.drivers.transaction_coordinator import TransactionCoordinator
        from riverlog.drivers.transaction_markers import MarkerSender

        if self._sender is None:
            self._sender = MarkerSender(self._markers, lambda: self._metadata.image, self._stats)
        return TransactionCoordinator(
            name,
            self._replicas,
            self._clock,
            settings=lambda: self._metadata.settings,
            image=lambda: self._metadata.image,
            sender=self._sender,
            stats=self._stats,
            failed=self._failed,
        )


def _may_need_id(asked: "asyncio.Future[Any]") -> bool:
    """Tell whether a coordinator may still want a new id; what it has decided already need not wait for a task."""
    from riverlog.transactions.commands import NeedsProducerId

    return not asked.done() or (asked.exception() is None and isinstance(asked.result(), NeedsProducerId))


def _known(code: ErrorCode) -> "asyncio.Future[ErrorCode]":
    known: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
    known.set_result(code)
    return known


async def _only_code(asked: "asyncio.Future[PartitionsReply]") -> ErrorCode:
    try:
        (code,) = (await asked).codes
    except Refusal as refusal:
        return refusal.code
    return code
