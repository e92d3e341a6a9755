"""Brokers saying in which of their log directories replicas lie (AssignReplicasToDirs, KIP-858)."""

from dataclasses import dataclass
from uuid import UUID

from riverlog.metadata.commands.in_sync import check_epoch
from riverlog.metadata.commands.outcome import repeats
from riverlog.metadata.election import Target, partition_change
from riverlog.metadata.image import BrokerImage, MetadataImage
from riverlog.metadata.leader_rules import PresentBrokers, TopicRules
from riverlog.metadata.limits import RESERVED_DIRECTORIES
from riverlog.metadata.records import MetadataRecord, PartitionChangeRecord
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId
from riverlog.model.machine import Command


@dataclass(frozen=True, slots=True)
class AssignedReplica:
    """A replica, and the directory that it lies in."""

    directory: UUID
    topic_id: UUID
    partition: int


@dataclass(frozen=True, slots=True)
class AssignReplicas(Command[MetadataRecord, "ReplicasAssigned"]):
    """Note where replicas of a broker lie; those in a directory that has failed are out of sync."""

    broker_id: NodeId
    broker_epoch: int
    replicas: tuple[AssignedReplica, ...]


@dataclass(frozen=True, slots=True)
class ReplicasAssigned:
    """The reply to AssignReplicas, in the order of the replicas."""

    codes: tuple[ErrorCode, ...]


def assign_replicas(
    image: MetadataImage,
    command: AssignReplicas,
    rules: TopicRules,
    present: PresentBrokers,
    present_without: PresentBrokers,
) -> tuple[list[MetadataRecord], ReplicasAssigned]:
    """Decide about each replica on its own; `present_without` are those who may lead what this broker has lost."""
    broker = image.brokers.get(command.broker_id)
    check_epoch(broker, command.broker_id, command.broker_epoch)
    assert broker is not None
    repeated = repeats((each.topic_id, each.partition) for each in command.replicas)
    records: list[MetadataRecord] = []
    codes: list[ErrorCode] = []
    for each in command.replicas:
        code = _why_not(image, command.broker_id, each)
        if (each.topic_id, each.partition) in repeated:
            code = ErrorCode.INVALID_REQUEST
        codes.append(code)
        if code is ErrorCode.NONE:
            is_lost = not _is_online(broker, each.directory)
            change = _assigned(image, broker.id, each, rules, present_without if is_lost else present, is_lost=is_lost)
            records += [] if change is None else [change]
    return records, ReplicasAssigned(tuple(codes))


def _assigned(
    image: MetadataImage,
    node_id: NodeId,
    replica: AssignedReplica,
    rules: TopicRules,
    present: PresentBrokers,
    *,
    is_lost: bool,
) -> PartitionChangeRecord | None:
    topic = image.topic_by_id(replica.topic_id)
    assert topic is not None
    partition = topic.partition(replica.partition)
    isr = tuple(each for each in partition.isr if each != node_id) if is_lost else None
    target = Target(isr=isr, directories={node_id: replica.directory})
    return partition_change(topic.id, partition, target, rules.of(topic), present)


def _is_online(broker: BrokerImage, directory: UUID) -> bool:
    return directory in broker.log_dirs or directory.int < RESERVED_DIRECTORIES


def _why_not(image: MetadataImage, node_id: NodeId, replica: AssignedReplica) -> ErrorCode:
    topic = image.topic_by_id(replica.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not 0 <= replica.partition < topic.partition_count:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if node_id not in topic.partition(replica.partition).replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE
