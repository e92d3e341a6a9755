"""Leaders and in-sync replicas of many partitions, decided a slice at a time.

A broker that goes may lead a hundred thousand partitions. Each slice is whole in itself: its partitions are led by
others and the rest is as before, so a controller that fails in between leaves nothing torn; the broker is fenced behind
the last slice. Until then nobody counts on it.
"""

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from uuid import UUID

from riverlog.metadata.broker_index import each_partition
from riverlog.metadata.election import Election, Target, partition_change
from riverlog.metadata.image import MetadataImage, PartitionImage, TopicImage
from riverlog.metadata.leader_rules import LeaderRules, PresentBrokers, TopicRules
from riverlog.metadata.records import BrokerRegistrationChangeRecord, MetadataRecord, PartitionChangeRecord
from riverlog.model.ids import NodeId
from riverlog.model.settings import SettingLayers


@dataclass(slots=True)
class Sweep:
    """A walk over partitions: one broker leaves them, or they look for a leader."""

    partitions: Iterator[tuple[str, int]]
    leaving: NodeId | None = None
    directories: frozenset[UUID] | None = None
    """Where the broker leaves only what lies in some of its directories."""
    election: Election | None = None
    end: BrokerRegistrationChangeRecord | None = None
    """What is written behind the last partition."""
    is_forgetful: bool = False
    """Whether the broker may have lost what it had, so that it is not eligible any more either."""

    def change(
        self, topic: TopicImage, partition: PartitionImage, rules: LeaderRules, present: PresentBrokers
    ) -> PartitionChangeRecord | None:
        """Return what changes of one partition, if anything does."""
        node_id = self.leaving
        if node_id is None:
            return partition_change(topic.id, partition, Target(), rules, present, election=self.election)
        is_eligible = self.is_forgetful and node_id in partition.rare.eligible_leader_replicas
        if node_id not in partition.isr and node_id != partition.leader and not is_eligible:
            return None
        if self.directories is not None and _directory(partition, node_id) not in self.directories:
            return None
        isr = tuple(each for each in partition.isr if each != node_id)
        forgetful = (node_id,) if self.is_forgetful else ()
        return partition_change(topic.id, partition, Target(isr=isr), rules, present, forgetful=forgetful)


@dataclass(slots=True)
class Sweeps:
    """The walks that are under way, one after the other."""

    layers: SettingLayers
    waiting: deque[Sweep] = field(default_factory=deque)

    def __bool__(self) -> bool:
        return bool(self.waiting)

    def add(self, sweep: Sweep) -> None:
        """Begin a walk behind those that are under way."""
        self.waiting.append(sweep)

    def drop(self, node_id: NodeId) -> None:
        """Forget what a broker was to leave."""
        self.waiting = deque(each for each in self.waiting if each.leaving != node_id)

    def concerns(self, node_id: NodeId) -> bool:
        """Return whether a broker is on its way out of any of its partitions."""
        return any(each.leaving == node_id for each in self.waiting)

    def leaves(self, node_id: NodeId) -> bool:
        """Return whether a broker is on its way out of all of its partitions."""
        return node_id in self.leaving

    @property
    def leaving(self) -> set[NodeId]:
        """Return the brokers that leave all of their partitions."""
        return {each.leaving for each in self.waiting if each.leaving is not None and each.directories is None}

    def present(
        self, image: MetadataImage, *, arriving: Collection[NodeId] = (), gone: Collection[NodeId] = ()
    ) -> PresentBrokers:
        """Return the brokers that may lead while these walks are under way."""
        lost: dict[NodeId, frozenset[UUID]] = {}
        for each in self.waiting:
            if each.leaving is not None and each.directories is not None:
                lost[each.leaving] = lost.get(each.leaving, frozenset()) | each.directories
        return PresentBrokers(image, leaving={*self.leaving, *gone}, arriving=arriving, lost=lost)

    def step(
        self, image: MetadataImage, partitions_max: int, *, arriving: Collection[NodeId] = ()
    ) -> list[MetadataRecord]:
        """Return the records of the next slice of the first walk."""
        if not self.waiting:
            return []
        present = self.present(image, arriving=arriving)
        records, is_done = self.walked(self.waiting[0], image, partitions_max, present)
        if is_done:
            records += _end(image, self.waiting.popleft())
        return records

    def walked(
        self, sweep: Sweep, image: MetadataImage, partitions_max: int, present: PresentBrokers
    ) -> tuple[list[MetadataRecord], bool]:
        """Return the records of the next slice of a walk, and whether it was the last one."""
        rules = TopicRules(image, self.layers)
        records: list[MetadataRecord] = []
        topic: TopicImage | None = None
        of_topic: LeaderRules | None = None
        # Equal partitions are one object, and what the image and the rules hold does not go away meanwhile.
        decided: dict[tuple[int, int], PartitionChangeRecord | None] = {}
        for _ in range(partitions_max):
            name, number = next(sweep.partitions, ("", -1))
            if number < 0:
                return records, True
            if topic is None or topic.name != name:
                topic = image.topic(name)
                of_topic = None if topic is None else rules.of(topic)
            if topic is None or of_topic is None or number >= topic.partition_count:
                continue  # it was deleted meanwhile
            key = id(topic.state(number)), id(of_topic)
            if key not in decided:
                decided[key] = sweep.change(topic, topic.partition(number), of_topic, present)
            change = decided[key]
            if change is not None:
                records.append(change.elsewhere(topic.id, number))
        return records, False


def _end(image: MetadataImage, sweep: Sweep) -> list[MetadataRecord]:
    """Return what stands behind the last slice, if it still says something."""
    if sweep.end is None:
        return []
    broker = image.brokers.get(NodeId(sweep.end.broker_id))
    if broker is None or broker.epoch != sweep.end.broker_epoch or (sweep.end.fenced > 0 and broker.fenced):
        return []
    return [sweep.end]


def _directory(partition: PartitionImage, node_id: NodeId) -> UUID | None:
    if node_id not in partition.replicas or not partition.directories:
        return None
    return partition.directories[partition.replicas.index(node_id)]


def all_of(partitions: dict[str, int] | None) -> Iterator[tuple[str, int]]:
    """Return partitions as they are now, however they change meanwhile."""
    return each_partition(list((partitions or {}).items()))
