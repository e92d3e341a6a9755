"""Moving partitions to other brokers, and changing how many replicas they have (KIP-455, 860).

A reassignment is a state in the log: the replicas that come and that go stand beside those that stay. It ends with the
AlterPartition that brings the last of those that come in sync.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from riverlog.metadata.broker_index import BrokerIndex, each_partition
from riverlog.metadata.commands.outcome import DONE, Outcome, repeats
from riverlog.metadata.commands.partitions import check_replicas, check_replicated, directory_for
from riverlog.metadata.election import Target, partition_change
from riverlog.metadata.image import MetadataImage, PartitionImage, ReplicaIds, TopicImage
from riverlog.metadata.leader_rules import PresentBrokers, TopicRules
from riverlog.metadata.placement import open_directories
from riverlog.metadata.records import MetadataRecord, PartitionChangeRecord
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.model.machine import Command


@dataclass(frozen=True, slots=True)
class Reassignment:
    """Where a partition is to be; None calls off what is under way."""

    topic: str
    partition: int
    replicas: ReplicaIds | None


@dataclass(frozen=True, slots=True)
class AlterReassignments(Command[MetadataRecord, "ReassignmentsAltered"]):
    """Move partitions, or call that off."""

    changes: tuple[Reassignment, ...]
    allow_replication_factor_change: bool = True


@dataclass(frozen=True, slots=True)
class ReassignmentsAltered:
    """The reply to AlterReassignments, in the order of the changes."""

    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class ListReassignments(Command[MetadataRecord, "list[tuple[str, PartitionImage]]"]):
    """Find the partitions that are on their way, of those that are named, or of all; write nothing."""

    partitions: tuple[tuple[str, int], ...] | None = None


def alter_reassignments(
    image: MetadataImage,
    command: AlterReassignments,
    rules: TopicRules,
    present: PresentBrokers,
    replicas_max: int | None = None,
) -> tuple[list[MetadataRecord], ReassignmentsAltered]:
    """Decide about each partition on its own."""
    records: list[MetadataRecord] = []
    outcomes: list[Outcome] = []
    repeated = repeats((change.topic, change.partition) for change in command.changes)
    for change in command.changes:
        try:
            if (change.topic, change.partition) in repeated:
                raise Refusal(
                    ErrorCode.INVALID_REQUEST,
                    f"The request names partition {change.partition} of {change.topic!r} more than once.",
                )
            record = _change(image, change, rules, present, may_change=command.allow_replication_factor_change)
            if record is not None and record.adding_replicas:  # they stand beside the others until they are in sync
                check_replicated(record.replicas or (), replicas_max)
        except Refusal as refusal:
            outcomes.append(Outcome.of(refusal))
            continue
        records += [] if record is None else [record]
        outcomes.append(DONE)
    return records, ReassignmentsAltered(tuple(outcomes))


def reassignments(
    image: MetadataImage, index: BrokerIndex, named: Iterable[tuple[str, int]] | None
) -> list[tuple[str, PartitionImage]]:
    """Return the partitions that are on their way, of those that are named, or of all."""
    wanted = each_partition(sorted(index.reassigning.items())) if named is None else named
    found = [(image.topic(name), name, number) for name, number in wanted]
    return [
        (name, topic.partition(number))
        for topic, name, number in found
        if topic is not None and 0 <= number < topic.partition_count and topic.partition(number).is_reassigning
    ]


def _change(
    image: MetadataImage, change: Reassignment, rules: TopicRules, present: PresentBrokers, *, may_change: bool
) -> PartitionChangeRecord | None:
    topic = image.topic(change.topic)
    if topic is None or not 0 <= change.partition < topic.partition_count:
        raise Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {change.partition} of {change.topic!r}."
        )
    partition = topic.partition(change.partition)
    if change.replicas is None:
        target = _reverted(partition, unclean=rules.of(topic).unclean)
    else:
        target = _begun(image, partition, change.replicas, may_change=may_change)
    return partition_change(
        topic.id, partition, target, rules.of(topic), present, directory_of=_directory_of(image, topic, partition)
    )


def _begun(image: MetadataImage, partition: PartitionImage, wanted: ReplicaIds, *, may_change: bool) -> Target:
    """Return the replicas with those that come; those that go stay until then."""
    check_replicas(image, [wanted], replication_factor=len(wanted))
    before = [each for each in partition.replicas if each not in partition.rare.adding_replicas]
    if not may_change and len(wanted) != len(before):
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The partition has {len(before)} replicas and is to have {len(wanted)}, which the request does not allow.",
        )
    removing = tuple(sorted(set(partition.replicas) - set(wanted)))
    adding = tuple(sorted(set(wanted) - set(partition.replicas)))
    return Target(replicas=(*wanted, *removing), adding=adding, removing=removing)


def _reverted(partition: PartitionImage, *, unclean: bool) -> Target:
    """Return the replicas as they were before."""
    if not partition.is_reassigning:
        raise Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "This partition is not on its way anywhere.")
    adding = partition.rare.adding_replicas
    replicas = tuple(each for each in partition.replicas if each not in adding)
    isr = tuple(each for each in partition.isr if each not in adding)
    has_complete = bool(isr) or any(each in replicas for each in partition.rare.eligible_leader_replicas)
    if not replicas or not (has_complete or unclean):
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "None of the replicas from before is in sync: records would be lost. Let the move end, or set "
            "unclean.leader.election.enable for the topic.",
        )
    return Target(isr=isr if has_complete else replicas[:1], replicas=replicas, adding=(), removing=())


def _directory_of(image: MetadataImage, topic: TopicImage, partition: PartitionImage) -> Callable[[NodeId], UUID]:
    def directory(node_id: NodeId) -> UUID:
        return directory_for(open_directories(image.brokers[node_id]) or (), topic.id, partition.index)

    return directory
