"""Leaders of partitions changing their in-sync replicas (AlterPartition: KIP-497, 841, 903)."""

from dataclasses import dataclass
from uuid import UUID

from riverlog.metadata.commands.outcome import repeats
from riverlog.metadata.election import Target, partition_change
from riverlog.metadata.image import BrokerImage, LeaderRecoveryState, MetadataImage, PartitionImage, TopicImage
from riverlog.metadata.leader_rules import PresentBrokers, TopicRules
from riverlog.metadata.records import LEADER_UNCHANGED, MetadataRecord, PartitionChangeRecord
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.model.machine import Command

ANY_EPOCH = -1
"""In the place of a broker's epoch where the leader does not know it."""


@dataclass(frozen=True, slots=True)
class InSyncBroker:
    """A replica that is to be in sync, and the registration of its broker that the leader has heard from."""

    node_id: NodeId
    epoch: int = ANY_EPOCH


@dataclass(frozen=True, slots=True)
class InSyncChange:
    """The in-sync replicas that a leader wants, and on which state of the partition that rests."""

    topic_id: UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[InSyncBroker, ...]
    recovery: int = LeaderRecoveryState.RECOVERED


@dataclass(frozen=True, slots=True)
class AlterPartitions(Command[MetadataRecord, "PartitionsAltered"]):
    """Change the in-sync replicas of partitions that one broker leads."""

    broker_id: NodeId
    broker_epoch: int
    changes: tuple[InSyncChange, ...]


@dataclass(frozen=True, slots=True)
class AlteredPartition:
    """What became of one partition: why not, or what it is now."""

    code: ErrorCode
    partition: PartitionImage | None = None


@dataclass(frozen=True, slots=True)
class PartitionsAltered:
    """The reply to AlterPartitions, in the order of the changes."""

    results: tuple[AlteredPartition, ...]


def alter_partitions(
    image: MetadataImage, command: AlterPartitions, rules: TopicRules, present: PresentBrokers
) -> tuple[list[MetadataRecord], PartitionsAltered]:
    """Decide about each partition on its own, if the broker is the one that is registered."""
    broker = image.brokers.get(command.broker_id)
    check_epoch(broker, command.broker_id, command.broker_epoch)
    records: list[MetadataRecord] = []
    results: list[AlteredPartition] = []
    repeated = repeats((change.topic_id, change.partition) for change in command.changes)
    for change in command.changes:
        topic = image.topic_by_id(change.topic_id)
        code = _why_not(image, topic, command.broker_id, change, present)
        if (change.topic_id, change.partition) in repeated:
            code = ErrorCode.INVALID_REQUEST
        if topic is None or code is not ErrorCode.NONE:
            results.append(AlteredPartition(code))
            continue
        before = topic.partition(change.partition)
        target = Target(isr=tuple(each.node_id for each in change.isr), recovery=LeaderRecoveryState(change.recovery))
        record = partition_change(topic.id, before, target, rules.of(topic), present)
        if record is None:
            results.append(AlteredPartition(ErrorCode.NONE, before))
            continue
        records.append(record)
        if record.leader not in (LEADER_UNCHANGED, command.broker_id):
            results.append(AlteredPartition(ErrorCode.NEW_LEADER_ELECTED))  # the end of a reassignment
        else:
            results.append(AlteredPartition(ErrorCode.NONE, _after(before, record)))
    return records, PartitionsAltered(tuple(results))


def check_epoch(broker: BrokerImage | None, node_id: NodeId, epoch: int) -> None:
    """Refuse a broker that is not, or no longer, registered with this epoch."""
    if broker is None or broker.epoch != epoch:
        raise Refusal(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Broker {node_id} is not registered with the epoch {epoch}; another process has registered in its place, "
            f"or it was unregistered.",
        )


def _why_not(
    image: MetadataImage, topic: TopicImage | None, broker_id: NodeId, change: InSyncChange, present: PresentBrokers
) -> ErrorCode:
    """Return why a change is refused. What lies ahead of this image, an earlier controller has not decided."""
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not 0 <= change.partition < topic.partition_count:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partition = topic.partition(change.partition)
    if change.leader_epoch > partition.leader_epoch or change.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if change.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if change.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    isr = [each.node_id for each in change.isr]
    if not set(isr) <= set(partition.replicas) or len(set(isr)) < len(isr) or partition.leader not in isr:
        return ErrorCode.INVALID_REQUEST
    if not _may_recover(partition.rare.leader_recovery_state, change.recovery, len(isr)):
        return ErrorCode.INVALID_REQUEST
    if not all(_is_eligible(image.brokers.get(each.node_id), each, present) for each in change.isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _may_recover(before: LeaderRecoveryState, after: int, in_sync: int) -> bool:
    """Return whether a leader may say this of its recovery: it ends once, and before others are in sync."""
    if after == LeaderRecoveryState.RECOVERING:
        return before is LeaderRecoveryState.RECOVERING and in_sync == 1
    return after == LeaderRecoveryState.RECOVERED


def _is_eligible(broker: BrokerImage | None, wanted: InSyncBroker, present: PresentBrokers) -> bool:
    if broker is None or not present.is_there(broker.id):
        return False
    return wanted.epoch in (ANY_EPOCH, broker.epoch)


def _after(before: PartitionImage, record: PartitionChangeRecord) -> PartitionImage:
    """Return what the record makes of the partition, as far as its leader must know."""
    leads_anew = record.leader != LEADER_UNCHANGED
    recovery = before.rare.leader_recovery_state
    if record.leader_recovery_state >= 0:
        recovery = LeaderRecoveryState(record.leader_recovery_state)
    return before._replace(
        isr=before.isr if record.isr is None else tuple(NodeId(each) for each in record.isr),
        leader_epoch=LeaderEpoch(before.leader_epoch + leads_anew),
        partition_epoch=before.partition_epoch + 1,
        rare=before.rare._replace(leader_recovery_state=recovery),
    )
