"""One group coordinator: the machine of one partition of `__consumer_offsets`, and what it learns about topics.

Importing the machine takes a while, and a node without groups does without: `groups.py` imports this module when it
needs the first coordinator.
"""

from collections.abc import Callable
from typing import Any, Never

from riverlog.drivers.partition_coordinator import PartitionCoordinator
from riverlog.groups import batches
from riverlog.groups.commands import GroupsCommand, TopicsChanged, TopicsDeleted, Woken
from riverlog.groups.machine import GroupsMachine
from riverlog.groups.records import GroupFact
from riverlog.metadata.image import MetadataImage
from riverlog.model.ids import TopicPartition
from riverlog.model.ports import Clock
from riverlog.model.settings import NodeSettings
from riverlog.partitions.replicas import Replicas


class GroupCoordinator(PartitionCoordinator[GroupsCommand, GroupFact, Never]):
    """Runs the groups of one partition."""

    def __init__(
        self,
        name: TopicPartition,
        replicas: Replicas,
        clock: Clock,
        *,
        settings: Callable[[], NodeSettings],
        image: Callable[[], MetadataImage],
        failed: Callable[[Any, Exception], None],
    ) -> None:
        super().__init__(
            name,
            replicas,
            clock,
            new_machine=lambda: GroupsMachine(settings(), image()),
            batches=batches,
            woken=Woken(),
            failed=failed,
        )
        self._image = image

    @property
    def machine(self) -> GroupsMachine:
        machine = self._coordinator.machine
        assert isinstance(machine, GroupsMachine)
        return machine

    async def load(self) -> None:
        """Read the log, and learn what happened to topics meanwhile."""
        await super().load()
        image = self._image()
        gone = frozenset(name for name in self.machine.state.offsets.topics() if image.topic(name) is None)
        self.topics_changed(gone, gone)

    def topics_changed(self, changed: frozenset[str], deleted: frozenset[str]) -> None:
        """Let the machine know, if it is there, of topics that are not as they were, and of those that are gone."""
        if self.loaded:
            self._tell(TopicsChanged(self._image(), changed))
        if self.loaded and deleted:
            self._tell(TopicsDeleted(deleted))
