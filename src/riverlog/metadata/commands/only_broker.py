"""The broker of a node that is its own quorum: it need not catch up, has no session, and leads at once what it may."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from riverlog.metadata.commands.partitions import directory_for
from riverlog.metadata.features import SUPPORTED_FEATURES
from riverlog.metadata.image import LOST_DIRECTORY, UNASSIGNED_DIRECTORY, BrokerImage, MetadataImage, PartitionImage
from riverlog.metadata.records import (
    LEADER_UNCHANGED,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from riverlog.model.endpoints import Endpoint
from riverlog.model.ids import NO_NODE, NodeId
from riverlog.model.machine import Command


@dataclass(frozen=True, slots=True)
class RegisterOnlyBroker(Command[MetadataRecord, "BrokerRegistered"]):
    """A broker's process has started: where it is, and whether the one before it stopped cleanly."""

    node_id: NodeId
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    log_dirs: tuple[UUID, ...]
    """The directories that it has now, those that are away left out."""
    clean: bool
    found: Mapping[tuple[UUID, int], UUID] = field(default_factory=dict)
    """Where partitions, by topic id and index, have their folders, as far as the metadata say something else."""


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """The reply to a registration: the epoch that tells this process from those before it."""

    epoch: int


@dataclass(frozen=True, slots=True)
class ReportDirectories(Command[MetadataRecord, None]):
    """A broker has these log directories left."""

    node_id: NodeId
    log_dirs: tuple[UUID, ...]


def report_directories(image: MetadataImage, command: ReportDirectories) -> tuple[list[MetadataRecord], None]:
    """Place nothing new in a directory that a broker has no more; what is there stays there."""
    broker = image.brokers[command.node_id]
    if not command.log_dirs or broker.log_dirs == command.log_dirs:
        return [], None
    return [BrokerRegistrationChangeRecord(broker.id, broker.epoch, log_dirs=command.log_dirs)], None


def known_directories(image: MetadataImage, node_id: NodeId) -> set[UUID]:
    """Name the log directories in which partitions of a broker lie, as far as they are known."""
    known = {
        directory
        for topic in image.all_topics()
        for partition in topic.partitions
        for replica, directory in zip(partition.replicas, partition.directories, strict=False)
        if replica == node_id
    }
    return known - {UNASSIGNED_DIRECTORY, LOST_DIRECTORY}


def register_only_broker(
    image: MetadataImage, command: RegisterOnlyBroker
) -> tuple[list[MetadataRecord], BrokerRegistered]:
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
    return [*_first_facts(image), registration, *_changes(image, command, before)], BrokerRegistered(epoch)


def _first_facts(image: MetadataImage) -> list[MetadataRecord]:
    """Return the level of every feature that has none: every metadata log begins with metadata.version."""
    return [
        FeatureLevelRecord(name=name, feature_level=levels.highest)
        for name, levels in SUPPORTED_FEATURES.items()
        if name not in image.features
    ]


def _changes(image: MetadataImage, command: RegisterOnlyBroker, before: BrokerImage | None) -> list[MetadataRecord]:
    """Return new leaders: the broker leads what it may and nobody leads, and in a new epoch what it led.

    Each of its replicas gets a log directory, if it has none yet. One that may lie in a directory which is away is
    lost, and not made anew, until it is found.
    """
    all_there = before is None or set(before.log_dirs) <= set(command.log_dirs)
    node_id = command.node_id
    changes: list[MetadataRecord] = []
    for topic in image.all_topics():
        for partition in topic.partitions:
            forgotten = partition.leader == node_id and not command.clean
            in_sync = partition.leader == NO_NODE and node_id in partition.isr
            # At its own clean stop Apache Kafka empties the in-sync set and remembers the last one as eligible.
            alone = partition.leader == NO_NODE and not partition.isr and partition.replicas == (node_id,)
            leads = forgotten or in_sync or alone
            directories = _directories(topic.id, partition, command, all_there=all_there)
            if leads or directories is not None:
                changes.append(
                    PartitionChangeRecord(
                        partition_id=partition.index,
                        topic_id=topic.id,
                        leader=node_id if leads else LEADER_UNCHANGED,
                        directories=directories,
                        isr=(node_id,) if alone else None,
                        eligible_leader_replicas=() if alone else None,
                        last_known_elr=() if alone else None,
                    )
                )
    return changes


def _directories(
    topic_id: UUID, partition: PartitionImage, command: RegisterOnlyBroker, *, all_there: bool
) -> tuple[UUID, ...] | None:
    """Return the log directories of a partition's replicas, with that of this broker; None where nothing is new."""
    if command.node_id not in partition.replicas:
        return None
    place = partition.replicas.index(command.node_id)
    known = partition.directories or (UNASSIGNED_DIRECTORY,) * len(partition.replicas)
    directory = command.found.get((topic_id, partition.index), known[place])
    if directory == UNASSIGNED_DIRECTORY:
        directory = directory_for(command.log_dirs, topic_id, partition.index) if all_there else LOST_DIRECTORY
    if directory == known[place]:
        return None
    return (*known[:place], directory, *known[place + 1 :])
