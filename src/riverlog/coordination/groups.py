"""The group coordinator of this node: a shard for each partition of `__consumer_offsets`.

To import the machine takes a while, and a node without groups does without: it is imported with the first shard.
"""

from typing import TYPE_CHECKING

from riverlog.coordination.shard import Shard
from riverlog.coordination.shards import Shards
from riverlog.metadata.commands.topics import TopicCreation
from riverlog.metadata.delta import MetadataDelta
from riverlog.model.ids import LeaderEpoch, TopicPartition
from riverlog.model.internal_topics import OFFSETS_TOPIC

if TYPE_CHECKING:
    from riverlog.groups.machine import GroupsMachine
    from riverlog.groups.records import GroupFact


class GroupCoordinator(Shards["GroupsMachine", "GroupFact"]):
    """Runs groups, and lets them learn about topics."""

    TOPIC = OFFSETS_TOPIC

    def _new_topic(self) -> TopicCreation:
        settings = self._metadata.settings
        return self._internal(
            settings.offsets_topic_num_partitions,
            settings.offsets_topic_replication_factor,
            {"compression.type": "producer", "segment.bytes": str(settings.offsets_topic_segment_bytes)},
        )

    def _new_shard(self, name: TopicPartition, epoch: LeaderEpoch) -> "Shard[GroupsMachine, GroupFact]":
        from riverlog.groups import batches
        from riverlog.groups.commands import Woken
        from riverlog.groups.machine import GroupsMachine
        from riverlog.groups.records import are_asked_again

        return Shard(
            name,
            epoch,
            self._replicas,
            self._clock,
            new_machine=lambda: GroupsMachine(self._metadata.settings, self._metadata.image),
            batches=batches,
            woken=Woken(),
            failed=self._failed,
            asked_again=are_asked_again,
            price="what groups committed there is lost; they go on from an older commit, or from none",
        )

    def _loaded(self, shard: "Shard[GroupsMachine, GroupFact]") -> None:
        image = self._metadata.image
        gone = frozenset(name for name in shard.machine.state.offsets.topics() if image.topic(name) is None)
        self._tell_topics(shard, gone, gone)

    def _follow(self, delta: MetadataDelta) -> None:
        super()._follow(delta)
        deleted = frozenset(topic.name for topic in delta.deleted)
        touched = frozenset(topic.name for topic in (*delta.created, *delta.grown)) | deleted
        if touched or delta.groups_configured:  # who leads, and who is in sync, is nothing to groups
            for shard in self:
                self._tell_topics(shard, touched, deleted)

    def _tell_topics(
        self, shard: "Shard[GroupsMachine, GroupFact]", changed: frozenset[str], deleted: frozenset[str]
    ) -> None:
        """Name the topics that are not as they were, and those that are gone, to a shard that is there."""
        from riverlog.groups.commands import TopicsChanged, TopicsDeleted

        if shard.loaded:
            shard.tell(TopicsChanged(self._metadata.image, changed))
        if shard.loaded and deleted:
            shard.tell(TopicsDeleted(deleted))
