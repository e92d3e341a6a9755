"""Electing leaders on request (ElectLeaders)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from riverlog.metadata.broker_index import BrokerIndex, each_partition
from riverlog.metadata.commands.outcome import DONE, Outcome
from riverlog.metadata.election import Election, Target, partition_change
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.leader_rules import PresentBrokers, TopicRules
from riverlog.metadata.limits import PARTITIONS_PER_WAKE_MAX
from riverlog.metadata.records import MetadataRecord, PartitionChangeRecord
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_NODE
from riverlog.model.machine import Command


@dataclass(frozen=True, slots=True)
class ElectLeaders(Command[MetadataRecord, "LeadersElected"]):
    """Elect the preferred leaders, or anybody who is there, of these partitions, or of all that need it.

    All are done in slices: the reply says where the next one goes on.
    """

    unclean: bool
    partitions: tuple[tuple[str, int], ...] | None = None
    behind: tuple[str, int] | None = None
    """The partition behind which a slice of all begins."""
    partitions_max: int = PARTITIONS_PER_WAKE_MAX
    """How many partitions a slice has."""


@dataclass(frozen=True, slots=True)
class ElectedLeader:
    """What became of one partition."""

    topic: str
    partition: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class LeadersElected:
    """The reply to ElectLeaders: each partition that was named, or each that needed a leader."""

    results: tuple[ElectedLeader, ...]
    goes_on_behind: tuple[str, int] | None = None
    """The last partition of a slice of all; None where it was the last slice."""


def elect_leaders(
    image: MetadataImage, command: ElectLeaders, index: BrokerIndex, rules: TopicRules, present: PresentBrokers
) -> tuple[list[MetadataRecord], LeadersElected]:
    """Decide about each partition on its own."""
    goes_on_behind: tuple[str, int] | None = None
    if command.partitions is not None:
        named = command.partitions
    else:
        named = tuple(islice(_needy(index, command), command.partitions_max))
        goes_on_behind = named[-1] if len(named) == command.partitions_max else None
    records: list[MetadataRecord] = []
    results: list[ElectedLeader] = []
    for topic, partition in dict.fromkeys(named):
        try:
            records.append(_elected(image, topic, partition, rules, present, unclean=command.unclean))
            results.append(ElectedLeader(topic, partition, DONE))
        except Refusal as refusal:
            results.append(ElectedLeader(topic, partition, Outcome.of(refusal)))
    return records, LeadersElected(tuple(results), goes_on_behind)


def _needy(index: BrokerIndex, command: ElectLeaders) -> Iterator[tuple[str, int]]:
    """Return the partitions that are not led as they should be: one that nobody leads is not led by the preferred."""
    needy = dict(index.leaderless)
    if not command.unclean:
        for name, bits in index.unpreferred.items():
            needy[name] = needy.get(name, 0) | bits
    topic, number = command.behind or ("", -1)
    if topic in needy:
        needy[topic] &= -1 << (number + 1)
    return each_partition(sorted(each for each in needy.items() if each[0] >= topic))


def _elected(
    image: MetadataImage, name: str, index: int, rules: TopicRules, present: PresentBrokers, *, unclean: bool
) -> PartitionChangeRecord:
    topic = image.topic(name)
    if topic is None or not 0 <= index < topic.partition_count:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {index} of {name!r}.")
    partition = topic.partition(index)
    if partition.leader == partition.replicas[0] or (unclean and partition.leader != NO_NODE):
        raise Refusal(ErrorCode.ELECTION_NOT_NEEDED, f"Broker {partition.leader} leads already.")
    election = Election.UNCLEAN if unclean else Election.PREFERRED
    record = partition_change(topic.id, partition, Target(), rules.of(topic), present, election=election)
    if record is not None:
        return record
    if unclean:
        raise Refusal(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No replica is there.")
    raise Refusal(
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, f"Broker {partition.replicas[0]} is not there, or not in sync."
    )
