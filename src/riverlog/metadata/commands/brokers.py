"""Brokers joining the cluster, and the first facts of a new cluster."""

from dataclasses import dataclass
from uuid import UUID

from riverlog.metadata.features import SUPPORTED_FEATURES
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.records import (
    BrokerEndpoint,
    BrokerFeature,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from riverlog.model.endpoints import Endpoint
from riverlog.model.ids import NO_NODE, NodeId


@dataclass(frozen=True, slots=True)
class RegisterBroker:
    """A broker's process has started: where it is, and whether the one before it stopped cleanly."""

    node_id: NodeId
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    log_dirs: tuple[UUID, ...]
    clean: bool


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """The reply to RegisterBroker: the epoch that tells this process from those before it."""

    epoch: int


def register_broker(image: MetadataImage, command: RegisterBroker) -> tuple[list[MetadataRecord], BrokerRegistered]:
    """Take the broker in; a cluster that has no facts yet gets its first ones with it.

    A broker that did not stop cleanly may have lost the unflushed end of a log and will write other records at the
    same offsets. What it leads gets a new leader epoch, so that consumers can tell the two apart (KIP-320).
    """
    before = image.brokers.get(command.node_id)
    epoch = 0 if before is None else before.epoch + 1
    registration = RegisterBrokerRecord(
        broker_id=command.node_id,
        incarnation_id=command.incarnation_id,
        broker_epoch=epoch,
        end_points=tuple(BrokerEndpoint(each.listener, each.host, each.port) for each in command.endpoints),
        features=tuple(BrokerFeature(name, *levels) for name, levels in SUPPORTED_FEATURES.items()),
        rack=command.rack,
        fenced=False,
        log_dirs=command.log_dirs,
    )
    return [*_first_facts(image), registration, *_to_lead(image, command)], BrokerRegistered(epoch)


def _first_facts(image: MetadataImage) -> list[MetadataRecord]:
    """Give the level of every feature that has none: every metadata log begins with metadata.version."""
    return [
        FeatureLevelRecord(name=name, feature_level=levels.highest)
        for name, levels in SUPPORTED_FEATURES.items()
        if name not in image.features
    ]


def _to_lead(image: MetadataImage, command: RegisterBroker) -> list[MetadataRecord]:
    """Let the broker lead what it may and nobody leads; and anew what it led, if it may have forgotten something."""
    node_id = command.node_id
    changes: list[MetadataRecord] = []
    for topic in image.all_topics():
        for partition in topic.partitions:
            forgotten = partition.leader == node_id and not command.clean
            in_sync = partition.leader == NO_NODE and node_id in partition.isr
            # At its own clean stop Apache Kafka empties the in-sync set and remembers the last one as eligible.
            alone = partition.leader == NO_NODE and not partition.isr and partition.replicas == (node_id,)
            if forgotten or in_sync or alone:
                changes.append(
                    PartitionChangeRecord(
                        partition_id=partition.index,
                        topic_id=topic.id,
                        leader=node_id,
                        isr=(node_id,) if alone else None,
                        eligible_leader_replicas=() if alone else None,
                        last_known_elr=() if alone else None,
                    )
                )
    return changes
