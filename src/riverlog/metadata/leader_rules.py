"""What holds for the leaders of each topic, and who may lead, as the image says it."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from riverlog.metadata.features import MIN_IN_SYNC, UNCLEAN_ELECTION
from riverlog.metadata.image import (
    LOST_DIRECTORY,
    ConfigResource,
    ConfigResourceType,
    MetadataImage,
    PartitionImage,
    ReplicaIds,
    TopicImage,
)
from riverlog.metadata.limits import RESERVED_DIRECTORIES
from riverlog.model.ids import NodeId
from riverlog.model.resolution import topic_config
from riverlog.model.settings import SettingLayers


class LeaderRules(NamedTuple):
    """What the settings of a topic and the features of a cluster say of leaders."""

    min_in_sync: int
    """`min.insync.replicas`; a partition with fewer replicas needs all of them, as its leader has it."""
    unclean: bool
    """`unclean.leader.election.enable`."""
    keeps_eligible: bool
    """Whether replicas that leave a small in-sync set stay eligible (eligible.leader.replicas.version)."""

    def least(self, replicas: ReplicaIds) -> int:
        """Return how many of these must be in sync before anything is committed."""
        return min(self.min_in_sync, len(replicas))


class TopicRules:
    """The rules of topics in one image; topics with the same settings share them."""

    def __init__(self, image: MetadataImage, layers: SettingLayers) -> None:
        self._image = image
        self._layers = replace(layers, cluster=image.config(ConfigResource(ConfigResourceType.BROKER, "")))
        self._keeps_eligible = image.keeps_eligible
        self._known: dict[tuple[str | None, str | None], LeaderRules] = {}

    def of(self, topic: TopicImage) -> LeaderRules:
        """Return the rules of a topic."""
        overrides = self._image.topic_overrides(topic.name)
        key = (overrides.get(MIN_IN_SYNC), overrides.get(UNCLEAN_ELECTION))
        rules = self._known.get(key)
        if rules is None:
            own = {name: overrides[name] for name in (MIN_IN_SYNC, UNCLEAN_ELECTION) if name in overrides}
            config = topic_config(own, self._layers)
            rules = self._known[key] = LeaderRules(
                config.min_insync_replicas, config.unclean_leader_election_enable, self._keeps_eligible
            )
        return rules


class PresentBrokers:
    """The brokers that may lead in an image: neither fenced nor stopping, and with the partition's directory."""

    def __init__(
        self,
        image: MetadataImage,
        *,
        leaving: Collection[NodeId] = (),
        arriving: Collection[NodeId] = (),
        lost: Mapping[NodeId, Collection[UUID]] | None = None,
    ) -> None:
        """Count on those who arrive, and not on those who leave nor on lost directories: their records are to come."""
        self._directories = {
            node_id: frozenset(broker.log_dirs) - frozenset((lost or {}).get(node_id, ()))
            for node_id, broker in image.brokers.items()
            if node_id not in leaving and (broker.is_active or node_id in arriving)
        }

    def is_there(self, node_id: NodeId) -> bool:
        """Return whether a broker may lead at all."""
        return node_id in self._directories

    def can_lead(self, node_id: NodeId, partition: PartitionImage) -> bool:
        """Return whether a broker is there and has the partition's log directory."""
        online = self._directories.get(node_id)
        if online is None:
            return False
        if not online or node_id not in partition.replicas or not partition.directories:
            return True
        directory = partition.directories[partition.replicas.index(node_id)]
        return directory in online or (directory.int < RESERVED_DIRECTORIES and directory != LOST_DIRECTORY)
