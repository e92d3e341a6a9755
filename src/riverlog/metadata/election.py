"""Who leads a partition, and how its record says what is to be different: Kafka's rules, step by step.

A leader is taken from the in-sync replicas. Where there are none it is taken from the eligible ones (KIP-966), which
have all that was committed; then it may be who led last, and then anybody, if the topic puts up with lost records.
Epochs follow from the record: the partition epoch grows with each, the leader epoch with each that names a leader.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import NamedTuple, Protocol
from uuid import UUID

from riverlog.metadata.image import LeaderRecoveryState, PartitionImage, RareState, ReplicaIds
from riverlog.metadata.leader_rules import LeaderRules
from riverlog.metadata.records import LEADER_UNCHANGED, RECOVERY_UNCHANGED, PartitionChangeRecord
from riverlog.model.ids import NO_NODE, NodeId


class Election(Enum):
    """Which leader is looked for."""

    ONLINE = auto()
    """Any that has all that was committed; the present one, if that may stay."""
    PREFERRED = auto()
    """The first of the replicas, if it has all that was committed."""
    UNCLEAN = auto()
    """As for ONLINE, and any that is there, if there is none: committed records may be lost."""


class Candidates(Protocol):
    """Who may lead at the moment."""

    def can_lead(self, node_id: NodeId, partition: PartitionImage) -> bool:
        """Return whether a broker is there and has the partition's log directory."""


class Target(NamedTuple):
    """What a partition is to be; None stands for what it is."""

    isr: ReplicaIds | None = None
    replicas: ReplicaIds | None = None
    adding: ReplicaIds | None = None
    removing: ReplicaIds | None = None
    recovery: LeaderRecoveryState | None = None
    directories: Mapping[NodeId, UUID] | None = None
    """Where some of the replicas lie."""


def partition_change(
    topic_id: UUID,
    partition: PartitionImage,
    target: Target,
    rules: LeaderRules,
    candidates: Candidates,
    *,
    election: Election | None = None,
    forgetful: ReplicaIds = (),
    directory_of: Callable[[NodeId], UUID] | None = None,
) -> PartitionChangeRecord | None:
    """Return the record of a change, and of the leader that follows from it; None where nothing is to be different.

    Forgetful replicas may have lost what they had: they are not eligible any more. A new replica's directory is asked
    for where the target does not say it.
    """
    rare = partition.rare
    isr = partition.isr if target.isr is None else target.isr
    replicas = partition.replicas if target.replicas is None else target.replicas
    adding = rare.adding_replicas if target.adding is None else target.adding
    removing = rare.removing_replicas if target.removing is None else target.removing
    if adding or removing:
        done = _reassigned(isr, replicas, adding, removing)
        if done is not None:
            isr, replicas, adding, removing = *done, (), ()
    eligible = _eligible(partition, isr, replicas, rules, forgetful)
    directories = _directories(partition, replicas, target.directories, directory_of)
    located = partition
    if directories is not partition.directories or replicas is not partition.replicas:
        located = partition._replace(directories=directories, replicas=replicas)
    leader, is_unclean = _leader(
        located, isr, eligible, rules, candidates, election or (Election.UNCLEAN if rules.unclean else Election.ONLINE)
    )
    recovery = rare.leader_recovery_state if target.recovery is None else target.recovery
    if is_unclean:
        isr, eligible, recovery = (leader,), (), LeaderRecoveryState.RECOVERING
    elif leader in eligible:
        isr = (leader,)
        commits_alone = rules.least(replicas) == 1  # the setting may have changed while nobody led
        eligible = () if commits_alone else tuple(each for each in eligible if each != leader)
    elif not isr and not rules.keeps_eligible:
        isr = partition.isr  # the last ones stay in sync, so that one of them may lead when it comes back
    assert leader == NO_NODE or leader in isr, f"{leader} leads and is not in sync on {partition}"
    return _record(
        topic_id,
        partition,
        isr=isr,
        leader=leader,
        replicas=replicas,
        adding=adding,
        removing=removing,
        recovery=recovery,
        directories=directories,
        eligible=eligible,
        last_known=_last_known(partition, leader, rules),
    )


def _reassigned(
    isr: ReplicaIds, replicas: ReplicaIds, adding: ReplicaIds, removing: ReplicaIds
) -> tuple[ReplicaIds, ReplicaIds] | None:
    """Return the in-sync replicas and the replicas behind a reassignment; None while it is under way.

    All that come must be in sync, and all that stay where there are to be fewer.
    """
    isr_after = tuple(each for each in isr if each not in removing)
    replicas_after = tuple(each for each in replicas if each not in removing)
    shrinks = len(replicas_after) < len(replicas) - len(adding)
    needed = replicas_after if shrinks else adding
    is_done = bool(isr_after) and bool(replicas_after) and set(needed) <= set(isr_after)
    return (isr_after, replicas_after) if is_done else None


def _eligible(
    partition: PartitionImage, isr: ReplicaIds, replicas: ReplicaIds, rules: LeaderRules, forgetful: ReplicaIds
) -> ReplicaIds:
    """Return who is out of sync and has all that was committed: nothing is while too few are in sync."""
    if not rules.keeps_eligible or len(isr) >= rules.least(replicas):
        return ()
    known = {*partition.rare.eligible_leader_replicas, *partition.isr}
    return tuple(sorted(each for each in known if each not in isr and each not in forgetful and each in replicas))


def _leader(
    partition: PartitionImage,
    isr: ReplicaIds,
    eligible: ReplicaIds,
    rules: LeaderRules,
    candidates: Candidates,
    election: Election,
) -> tuple[NodeId, bool]:
    """Return who is to lead, or nobody, and whether records may be lost with that."""
    complete, replicas, present = isr or eligible, partition.replicas, partition.leader
    if election is Election.PREFERRED and replicas[0] in complete and candidates.can_lead(replicas[0], partition):
        return replicas[0], False
    if present in complete and candidates.can_lead(present, partition):
        return present, False
    for each in replicas:
        if each in complete and candidates.can_lead(each, partition):
            return each, False
    last = [each for each in partition.rare.last_known_elr if each in replicas]
    if rules.keeps_eligible and not complete and len(last) == 1 and candidates.can_lead(last[0], partition):
        return last[0], True
    if election is Election.UNCLEAN:
        for each in replicas:
            if candidates.can_lead(each, partition):
                return each, True
    return NO_NODE, False


def _last_known(partition: PartitionImage, leader: NodeId, rules: LeaderRules) -> ReplicaIds:
    """Return who led last, as long as nobody leads."""
    known = partition.rare.last_known_elr
    if not rules.keeps_eligible or leader != NO_NODE:
        return () if rules.keeps_eligible else known
    return known if partition.leader == NO_NODE else (partition.leader,)


def _directories(
    partition: PartitionImage,
    replicas: ReplicaIds,
    given: Mapping[NodeId, UUID] | None,
    directory_of: Callable[[NodeId], UUID] | None,
) -> tuple[UUID, ...]:
    """Return where the replicas lie."""
    if given is None and replicas == partition.replicas:
        return partition.directories
    known = {**dict(zip(partition.replicas, partition.directories, strict=False)), **(given or {})}
    nowhere = UUID(int=0)
    return tuple(
        known[each] if each in known else nowhere if directory_of is None else directory_of(each) for each in replicas
    )


def _record(
    topic_id: UUID,
    partition: PartitionImage,
    *,
    isr: ReplicaIds,
    leader: NodeId,
    replicas: ReplicaIds,
    adding: ReplicaIds,
    removing: ReplicaIds,
    recovery: LeaderRecoveryState,
    directories: tuple[UUID, ...],
    eligible: ReplicaIds,
    last_known: ReplicaIds,
) -> PartitionChangeRecord | None:
    """Return a record of what differs, if anything does. Fewer replicas begin a new leader epoch."""
    rare = partition.rare
    fewer = replicas != partition.replicas and not set(partition.replicas) <= set(replicas)
    leads_anew = leader != partition.leader or fewer
    rare_after = RareState(adding, removing, eligible, last_known, recovery)
    same = isr == partition.isr and replicas == partition.replicas and directories == partition.directories
    if same and not leads_anew and rare_after == rare:
        return None
    return PartitionChangeRecord(
        partition_id=partition.index,
        topic_id=topic_id,
        isr=None if isr == partition.isr else isr,
        leader=leader if leads_anew else LEADER_UNCHANGED,
        replicas=None if replicas == partition.replicas else replicas,
        removing_replicas=None if removing == rare.removing_replicas else removing,
        adding_replicas=None if adding == rare.adding_replicas else adding,
        leader_recovery_state=RECOVERY_UNCHANGED if recovery == rare.leader_recovery_state else recovery,
        directories=None if directories == partition.directories else directories,
        eligible_leader_replicas=None if eligible == rare.eligible_leader_replicas else eligible,
        last_known_elr=None if last_known == rare.last_known_elr else last_known,
    )
