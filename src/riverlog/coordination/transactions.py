"""The transaction coordinator of this node: a shard for each partition of `__transaction_state`.

Partitions ask it whether a batch belongs to an open transaction; for them it is a port. A node without transactions
does without the machine: that is imported with the first shard.
"""

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from riverlog.controller.metadata_requests import MetadataRequests
from riverlog.controller.producer_ids import ProducerIds
from riverlog.controller.view import MetadataView
from riverlog.coordination.futures import answered, concluded, refused, unwatched
from riverlog.coordination.shard import Shard
from riverlog.coordination.shards import Shards
from riverlog.metadata.commands.topics import TopicCreation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_NODE, LeaderEpoch, ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.internal_topics import TRANSACTIONS_TOPIC
from riverlog.model.ports import Clock, Random
from riverlog.model.transactions import MarkerPort, ProducerIdentity, TransactionOutcome, TransactionVersion
from riverlog.observe.stats import TransactionStats
from riverlog.partitions.replicas import Replicas
from riverlog.runner import Unwritable

if TYPE_CHECKING:
    from riverlog.coordination.marker_sender import MarkerSender
    from riverlog.coordination.remote_verification import RemoteVerification
    from riverlog.transactions.commands import (
        Effect,
        EndTransaction,
        InitProducer,
        JoinBatch,
        NeedsProducerId,
        PartitionsReply,
        ProducerReply,
        SendMarkers,
    )
    from riverlog.transactions.machine import TransactionsMachine
    from riverlog.transactions.records import StateFact


class TransactionCoordinator(Shards["TransactionsMachine", "StateFact"]):
    """Runs transactional ids, and sends the markers that end their transactions."""

    TOPIC = TRANSACTIONS_TOPIC

    def __init__(
        self,
        metadata: MetadataView,
        requests: MetadataRequests,
        replicas: Replicas,
        *,
        producer_ids: ProducerIds,
        markers: MarkerPort,
        clock: Clock,
        random: Random,
        stats: TransactionStats,
        elsewhere: "RemoteVerification | None" = None,
    ) -> None:
        """Build the coordinator; without a way to other brokers it is the only one."""
        super().__init__(metadata, requests, replicas, clock=clock, random=random)
        self._producer_ids = producer_ids
        self._markers = markers
        self._stats = stats
        self._elsewhere = elsewhere
        self._senders: dict[Shard[TransactionsMachine, StateFact], MarkerSender] = {}

    async def close(self) -> None:
        """Send no more markers, and wait until all that was decided is committed."""
        for sender in self._senders.values():
            await sender.close()
        await super().close()

    def decide(self, command: "InitProducer | EndTransaction | JoinBatch") -> "asyncio.Future[ProducerReply]":
        """Submit to the shard of the command's id now, with a producer id that nobody had before if it needs one."""
        from riverlog.transactions.commands import NeedsProducerId

        asked = self.submit(command.transactional_id, command)
        if asked.done():  # need not wait for a task
            if (error := asked.exception()) is not None:
                return refused(error)
            if not isinstance(reply := asked.result(), NeedsProducerId):
                return answered(reply)
        return unwatched(asyncio.ensure_future(self._with_id(command, asked)))

    async def _with_id(
        self,
        command: "InitProducer | EndTransaction | JoinBatch",
        asked: "asyncio.Future[ProducerReply | NeedsProducerId]",
    ) -> "ProducerReply":
        from riverlog.transactions.commands import NeedsProducerId

        while isinstance(reply := await asked, NeedsProducerId):
            new_id = await self._producer_ids.next()
            asked = self.submit(command.transactional_id, replace(command, new_id=new_id))
        return reply

    def verify(
        self,
        transactional_id: str,
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        partition: TopicPartition,
        *,
        adds: bool,
    ) -> "asyncio.Future[ErrorCode]":
        """Find out whether the partition belongs to the producer's open transaction; with `adds`, make it so first.

        Its coordinator is asked, on whichever broker it is.
        """
        from riverlog.transactions.commands import AddPartitions, VerifyPartitions

        producer = ProducerIdentity(producer_id, producer_epoch)
        if self._elsewhere is not None and not self._coordinates(transactional_id):
            leader = self.leader_of(self.partition_of(transactional_id))
            return self._elsewhere.verify(leader, transactional_id, producer, partition, adds=adds)
        asked = self.submit(
            transactional_id,
            AddPartitions(transactional_id, producer, (partition,), TransactionVersion.EPOCH_PER_TRANSACTION)
            if adds
            else VerifyPartitions(transactional_id, producer, (partition,)),
        )
        return answered(_only_code(asked)) if asked.done() else asyncio.ensure_future(concluded(asked, _only_code))

    def _coordinates(self, transactional_id: str) -> bool:
        """Return whether this broker coordinates a transactional id, or knows at once that nobody does."""
        try:
            name = self.partition_of(transactional_id)
        except Refusal:
            return True
        return self.is_here(name) or self.leader_of(name) == NO_NODE

    def _new_topic(self) -> TopicCreation:
        settings = self._metadata.settings
        return self._internal(
            settings.transaction_state_log_num_partitions,
            settings.transaction_state_log_replication_factor,
            {"compression.type": "uncompressed", "segment.bytes": str(settings.transaction_state_log_segment_bytes)},
        )

    def _new_shard(self, name: TopicPartition, epoch: LeaderEpoch) -> "Shard[TransactionsMachine, StateFact]":
        from riverlog.coordination.marker_sender import MarkerSender
        from riverlog.transactions import batches
        from riverlog.transactions.commands import TransactionTimerDue
        from riverlog.transactions.machine import TransactionsMachine

        sender = MarkerSender(self._markers, lambda: self._metadata.image, self._stats)
        shard = Shard(
            name,
            epoch,
            self._replicas,
            self._clock,
            new_machine=lambda: TransactionsMachine(self._metadata.settings),
            batches=batches,
            woken=TransactionTimerDue(),
            failed=self._failed,
            carry_out=partial(self._carry_out, sender),
        )
        self._senders[shard] = sender
        return shard

    def _resigned(self, shard: "Shard[TransactionsMachine, StateFact]") -> None:
        """Send no markers for a shard: the broker that coordinates from now on sends them in its own epoch."""
        self._senders.pop(shard).stop()

    def _carry_out(
        self, sender: "MarkerSender", shard: "Shard[TransactionsMachine, StateFact]", effects: "tuple[Effect, ...]"
    ) -> None:
        for effect in effects:
            if isinstance(effect, TransactionOutcome):
                self._stats.ended[effect] += 1
            else:
                sender.send(effect, shard.epoch, written=partial(self._written, shard, effect))

    def _written(self, shard: "Shard[TransactionsMachine, StateFact]", sent: "SendMarkers") -> None:
        """Report markers to the shard, if it is there; else it will want them sent again."""
        from riverlog.transactions.commands import MarkersWritten

        for _ in range(2):  # again where those who waited for it wanted too much: they are refused by now
            if shard.loaded:
                told = shard.tell(MarkersWritten(sent.transactional_id, sent.producer))
                if not (told.done() and isinstance(told.exception(), Unwritable)):
                    return


def _only_code(asked: "asyncio.Future[PartitionsReply]") -> ErrorCode:
    try:
        (code,) = asked.result().codes
    except Refusal as refusal:
        return refusal.code
    return code
