"""Adding partitions to topics. Partitions are never taken away: their records would be lost."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from riverlog.metadata.commands.outcome import DONE, Outcome, named_twice, repeats
from riverlog.metadata.draft import after
from riverlog.metadata.image import UNASSIGNED_DIRECTORY, MetadataImage, ReplicaIds, TopicImage
from riverlog.metadata.placement import BrokerLoad, open_directories, place, usable_brokers
from riverlog.metadata.records import MetadataRecord, PartitionRecord
from riverlog.model.checkpoint_topic import CHECKPOINTS_PARTITIONS, CHECKPOINTS_TOPIC
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId, TopicId
from riverlog.model.limits import PARTITIONS_PER_REQUEST_MAX
from riverlog.model.machine import Command

Assignment = ReplicaIds
"""The brokers of one partition, its preferred leader first."""


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """A topic and how many partitions it shall have; assignments are for the new ones alone."""

    topic: str
    total: int
    assignments: tuple[Assignment, ...] | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitions(Command[MetadataRecord, "PartitionsCreated"]):
    """Add partitions to topics, or only see whether it could be done."""

    topics: tuple[NewPartitions, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class PartitionsCreated:
    """The reply to CreatePartitions, in the order of the topics."""

    outcomes: tuple[Outcome, ...]


def create_partitions(
    image: MetadataImage, command: CreatePartitions, load: BrokerLoad
) -> tuple[list[MetadataRecord], PartitionsCreated]:
    """Decide about each topic on its own."""
    records: list[MetadataRecord] = []
    outcomes: list[Outcome] = []
    repeated = repeats(new.topic for new in command.topics)
    for new in command.topics:
        try:
            if new.topic in repeated:
                raise named_twice(new.topic)
            facts = _added(image, new, load)
        except Refusal as refusal:
            outcomes.append(Outcome.of(refusal))
            continue
        image = after(image, facts)
        load.add(facts)
        records += facts
        outcomes.append(DONE)
    return [] if command.validate_only else records, PartitionsCreated(tuple(outcomes))


def partition_records(
    image: MetadataImage, topic_id: TopicId, replicas: Sequence[Assignment], load: BrokerLoad, *, first: int
) -> list[MetadataRecord]:
    """Return the records of new partitions: the replicas that are there are in sync, and the first of them leads."""
    usable = {broker.id for broker in usable_brokers(image, load)}
    held = _held(image, topic_id)
    made: list[MetadataRecord] = []
    for index, each in enumerate(replicas, first):
        check_replicated(each, load.replicas_max)
        isr = tuple(node_id for node_id in each if node_id in usable)
        if not isr:
            raise Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"None of the brokers {list(each)} is there; name one that is."
            )
        made.append(
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=each,
                isr=isr,
                leader=isr[0],
                leader_epoch=0,
                partition_epoch=0,
                directories=tuple(_directory(image, node_id, topic_id, held[node_id]) for node_id in each),
            )
        )
        held.update(each)
    return made


def _held(image: MetadataImage, topic_id: TopicId) -> Counter[NodeId]:
    """Count the partitions of a topic that each broker has: brokers take turns, and so do directories of each."""
    topic = image.topic_by_id(topic_id)
    return Counter(node_id for partition in topic.partitions for node_id in partition.replicas) if topic else Counter()


def _directory(image: MetadataImage, node_id: NodeId, topic_id: UUID, number: int) -> UUID:
    return directory_for(open_directories(image.brokers[node_id]) or (), topic_id, number)


def directory_for(log_dirs: Sequence[UUID], topic_id: UUID, number: int) -> UUID:
    """Choose the log directory of a new replica: a topic's partitions go round, each topic beginning elsewhere.

    That is known before the first record comes: a partition whose directory is away is never taken for a new one.
    """
    return log_dirs[(topic_id.int + number) % len(log_dirs)] if log_dirs else UNASSIGNED_DIRECTORY


def replication_factor_of(image: MetadataImage, load: BrokerLoad, wanted: int, default: int) -> int:
    """Return the number of replicas to make; the default is as many as there are brokers if that is less."""
    brokers = len(usable_brokers(image, load))
    if wanted == -1 and brokers:
        return min(default, brokers, load.replicas_max or brokers)
    if wanted == 0 or wanted < -1:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"A partition needs at least one replica; {wanted} were asked for."
        )
    if wanted > brokers or not brokers:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{max(wanted, 1)} replicas need as many brokers; this cluster has {brokers}.",
        )
    return wanted


def check_replicas(image: MetadataImage, assignments: Sequence[Assignment], *, replication_factor: int) -> None:
    """Refuse replicas assigned by hand that cannot be: none, twice the same, unequal in number, unknown."""
    for assignment in assignments:
        if not assignment:
            problem = "A partition needs at least one replica."
        elif len(set(assignment)) < len(assignment):
            problem = f"The replicas {list(assignment)} name a broker twice."
        elif len(assignment) != replication_factor:
            problem = f"Every partition needs {replication_factor} replicas; {list(assignment)} are {len(assignment)}."
        elif unknown := [node_id for node_id in assignment if node_id not in image.brokers]:
            problem = f"The replicas {list(assignment)} name the broker {unknown[0]}, which does not exist."
        else:
            continue
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


def check_replicated(replicas: Sequence[int], replicas_max: int | None) -> None:
    """Refuse more replicas than are kept alike."""
    if replicas_max is not None and len(replicas) > replicas_max:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication of partitions is not there yet; use a replication factor of {replicas_max}.",
        )


def _added(image: MetadataImage, new: NewPartitions, load: BrokerLoad) -> list[MetadataRecord]:
    topic = image.topic(new.topic)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {new.topic!r}.")
    is_short = topic.name == CHECKPOINTS_TOPIC and new.total <= CHECKPOINTS_PARTITIONS  # another has made it
    if topic.is_internal and not is_short:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            f"{new.topic} cannot get more partitions: what it keeps is spread over the {topic.partition_count} it has.",
        )
    added = new.total - topic.partition_count
    if added < 0:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {new.topic!r} has {topic.partition_count} partitions and cannot have fewer: "
            f"taking some away would lose their records.",
        )
    if added == 0:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS, f"The topic {new.topic!r} already has {topic.partition_count} partitions."
        )
    if added > PARTITIONS_PER_REQUEST_MAX:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS,
            f"{added} partitions are too many: one request can create {PARTITIONS_PER_REQUEST_MAX}.",
        )
    replicas = _new_replicas(image, topic, new, added, load)
    return partition_records(image, topic.id, replicas, load, first=topic.partition_count)


def _new_replicas(
    image: MetadataImage, topic: TopicImage, new: NewPartitions, added: int, load: BrokerLoad
) -> Sequence[Assignment]:
    factor = topic.replication_factor
    if new.assignments is None:
        factor = replication_factor_of(image, load, factor, factor)
        return place(image, load, partitions=added, replication_factor=factor)
    if len(new.assignments) != added:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{added} partitions are to be added, but {len(new.assignments)} have replicas assigned.",
        )
    check_replicas(image, new.assignments, replication_factor=factor)
    return new.assignments
