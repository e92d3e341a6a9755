"""One transaction coordinator: the machine of one partition of `__transaction_state`, and the markers it wants sent.

A node without transactions does without: `transactions.py` imports this module when it needs the first coordinator.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from riverlog.drivers.partition_coordinator import PartitionCoordinator
from riverlog.drivers.replicas import Replicas
from riverlog.drivers.transaction_markers import MarkerSender
from riverlog.metadata.image import MetadataImage
from riverlog.model.ids import TopicPartition
from riverlog.model.ports import Clock
from riverlog.model.settings import NodeSettings
from riverlog.transactions import batches
from riverlog.transactions.commands import MarkersWritten, SendMarkers, TransactionsCommand, Woken
from riverlog.transactions.machine import TransactionsMachine
from riverlog.transactions.records import Fact


class TransactionCoordinator(PartitionCoordinator[TransactionsCommand, Fact, SendMarkers]):
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

    def _carry_out(self, effects: tuple[SendMarkers, ...]) -> None:
        topic = self._image().topic(self.name.topic)
        if topic is None:
            return
        epoch = topic.partition(self.name.partition).leader_epoch
        for wanted in effects:
            self._sender.send(wanted, epoch, written=partial(self._written, wanted))

    def _written(self, wanted: SendMarkers) -> None:
        """Let the machine know, if it is there; else it will want them sent again."""
        if self.loaded:
            self._tell(MarkersWritten(wanted.transactional_id, wanted.producer))
