"""One transaction coordinator: the machine of one partition of `__transaction_state`, and the markers it wants sent.

A node without transactions does without: `transactions.py` imports this module when it needs the first coordinator.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, assert_never

from riverlog.drivers.coordinator import Unwritable
from riverlog.drivers.partition_coordinator import PartitionCoordinator
from riverlog.drivers.transaction_markers import MarkerSender
from riverlog.metadata.image import MetadataImage
from riverlog.model.ids import TopicPartition
from riverlog.model.ports import Clock
from riverlog.model.settings import NodeSettings
from riverlog.model.transactions import Outcome
from riverlog.observe.stats import TransactionStats
from riverlog.partitions.replicas import Replicas
from riverlog.transactions import batches
from riverlog.transactions.commands import Effect, MarkersWritten, SendMarkers, TransactionsCommand, Woken
from riverlog.transactions.machine import TransactionsMachine
from riverlog.transactions.records import Fact


class TransactionCoordinator(PartitionCoordinator[TransactionsCommand, Fact, Effect]):
    """Runs the transactional ids of one partition."""

    def __init__(
        self,
        name: TopicPartition,
        replicas: Replicas,
        clock: Clock,
        *,
        settings: Callable[[], NodeSettings],
        image: Callable[[], MetadataImage],
        sender: MarkerSender,
        stats: TransactionStats,
        failed: Callable[[Any, Exception], None],
    ) -> None:
        super().__init__(
            name,
            replicas,
            clock,
            new_machine=lambda: TransactionsMachine(settings()),
            batches=batches,
            woken=Woken(),
            failed=failed,
        )
        self._image = image
        self._sender = sender
        self._stats = stats

    @property
    def machine(self) -> TransactionsMachine:
        """Give the machine, for those who look and change nothing."""
        machine = self._coordinator.machine
        assert isinstance(machine, TransactionsMachine)
        return machine

    def _carry_out(self, effects: tuple[Effect, ...]) -> None:
        topic = self._image().topic(self.name.topic) if effects else None
        if topic is None:
            return
        epoch = topic.partition(self.name.partition).leader_epoch
        for effect in effects:
            match effect:
                case SendMarkers():
                    self._sender.send(effect, epoch, written=partial(self._written, effect))
                case Outcome():
                    self._stats.ended[effect] += 1
                case _:
                    assert_never(effect)

    def _written(self, wanted: SendMarkers) -> None:
        """Let the machine know, if it is there; else it will want them sent again."""
        if not self.loaded:
            return
        told = self._tell(MarkersWritten(wanted.transactional_id, wanted.producer))
        if told.done() and isinstance(told.exception(), Unwritable):  # those who waited for it wanted too much
            self._tell(MarkersWritten(wanted.transactional_id, wanted.producer))
