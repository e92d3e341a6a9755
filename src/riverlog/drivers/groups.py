"""The group coordinators of this node: one machine per partition of `__consumer_offsets`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from riverlog.drivers.coordinators import Coordinators
from riverlog.metadata.commands.topics import NewTopic
from riverlog.metadata.delta import MetadataDelta
from riverlog.metadata.image import OFFSETS_TOPIC
from riverlog.model.ids import TopicPartition

if TYPE_CHECKING:
    from riverlog.drivers.group_coordinator import GroupCoordinator
    from riverlog.groups.commands import GroupsCommand
    from riverlog.groups.machine import GroupsMachine

    _Coordinators: TypeAlias = Coordinators[GroupsCommand, GroupCoordinator]
else:
    _Coordinators = Coordinators


class Groups(_Coordinators):
    """Finds the coordinator of a group, and keeps all of them running."""

    TOPIC = OFFSETS_TOPIC

    def machines(self) -> "Iterator[GroupsMachine]":
        """Give the machines that are there, for those who look and change nothing."""
        return (coordinator.machine for coordinator in self._there())

    def _new_topic(self) -> NewTopic:
        settings = self._metadata.settings
        return self._internal(
            settings.offsets_topic_num_partitions,
            settings.offsets_topic_replication_factor,
            {"compression.type": "producer", "segment.bytes": str(settings.offsets_topic_segment_bytes)},
        )

    def _new_coordinator(self, name: TopicPartition) -> "GroupCoordinator":
        from riverlog.drivers.group_coordinator import GroupCoordinator  # a node without groups starts without it

        return GroupCoordinator(
            name,
            self._replicas,
            self._clock,
            settings=lambda: self._metadata.settings,
            image=lambda: self._metadata.image,
            failed=self._failed,
        )

    def _follow(self, delta: MetadataDelta) -> None:
        super()._follow(delta)
        deleted = frozenset(topic.name for topic in delta.deleted)
        touched = frozenset(topic.name for topic in (*delta.created, *delta.changed)) | deleted
        if touched or delta.groups_configured:
            for coordinator in self._coordinators.values():
                coordinator.topics_changed(touched, deleted)
