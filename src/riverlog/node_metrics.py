"""What a scrape of the metrics sees of a node, read from its parts at that moment."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from riverlog.controller.controller import Controller
from riverlog.controller.view import MetadataView
from riverlog.coordination.groups import GroupCoordinator
from riverlog.coordination.transactions import TransactionCoordinator
from riverlog.metadata.image import PartitionImage, TopicImage
from riverlog.model.ids import NO_NODE, NodeId, Offset, TopicPartition
from riverlog.model.ports import Clock, Disk
from riverlog.observe.quorum_stats import ControllerSample, QuorumSample
from riverlog.observe.samples import (
    BrokerSample,
    CommittedSample,
    GroupSample,
    LogDirectorySample,
    PartitionSample,
    PipelineSample,
    TransactionsSample,
)
from riverlog.observe.stats import NodeStats, PartitionStats
from riverlog.partitions.local_partitions import LocalPartitions
from riverlog.partitions.partition import Partition
from riverlog.partitions.registry import PartitionRegistry

if TYPE_CHECKING:
    from riverlog.groups.machine import Standing


@dataclass(frozen=True, slots=True)
class ControllerMetrics:
    """The source of the metrics of a node that is only a controller."""

    node_id: NodeId
    cluster_id: str
    stats: NodeStats
    _registry: PartitionRegistry
    _metadata: MetadataView
    _controller: Controller
    _clock: Clock
    _disk: Disk

    def brokers(self) -> Iterable[BrokerSample]:
        for broker in self._metadata.image.brokers.values():
            yield BrokerSample(broker.id, str(broker.endpoints[0].address) if broker.endpoints else "")

    def topics(self) -> Iterable[tuple[str, int]]:
        return ((topic.name, topic.partition_count) for topic in self._metadata.image.all_topics())

    def partitions(self) -> Iterable[PartitionSample]:
        return ()

    def groups(self) -> Iterable[GroupSample]:
        return ()

    def transactions(self) -> TransactionsSample:
        return TransactionsSample({}, 0.0)

    def coordinators_loading(self) -> int:
        return 0

    def pipelines(self) -> Iterable[PipelineSample]:
        return ()

    def quorum(self) -> QuorumSample:
        """Return how this node keeps the metadata log, and what it knows of the cluster where it decides."""
        controller, quorum, storage = self._controller, self._controller.quorum, self._controller.quorum.storage
        voted, observes = quorum.voted_for, not quorum.voters.includes(quorum.key)
        newest = storage.newest_snapshot
        return QuorumSample(
            leader_id=NO_NODE if quorum.leader_id is None else quorum.leader_id,
            epoch=quorum.epoch,
            voted_id=NO_NODE if voted is None else voted.id,
            state="observer" if observes else quorum.role.name.lower(),
            voters=len(quorum.voters),
            high_watermark=quorum.high_watermark,
            log_end_offset=storage.end_offset,
            applied_offset=controller.loaded_offset,
            snapshot_age_seconds=self._clock.monotonic() - controller.snapshot_at,
            snapshot_bytes=0 if newest is None else storage.snapshots[newest],
            stats=quorum.stats,
            controller=self._decided() if controller.is_active else None,
        )

    def _decided(self) -> ControllerSample:
        brokers, index = self._metadata.image.brokers.values(), self._controller.index
        fenced = sum(broker.fenced for broker in brokers)
        return ControllerSample(
            active_brokers=len(brokers) - fenced,
            fenced_brokers=fenced,
            offline_partitions=None if index is None else _count(index.leaderless),
            unpreferred_partitions=None if index is None else _count(index.unpreferred),
        )

    def log_directories(self) -> Iterable[LogDirectorySample]:
        for directory in self._registry.directories:
            yield LogDirectorySample(
                directory=directory.logs.folder,
                online=not directory.health.offline,
                size_bytes=sum(log.size for log in directory.logs.opened.values()),
                free_bytes=0 if directory.health.offline else self._disk.free_bytes(directory.logs.folder),
            )
        for health in self._registry.unusable:
            yield LogDirectorySample(directory=health.path, online=False, size_bytes=0, free_bytes=0)


@dataclass(frozen=True, slots=True)
class NodeMetrics(ControllerMetrics):
    """The source of a broker's metrics."""

    _local: LocalPartitions
    _groups: GroupCoordinator
    _transactions: TransactionCoordinator
    _pipelines: Callable[[], Iterable[PipelineSample]]

    def partitions(self) -> Iterable[PartitionSample]:
        """Return every partition that this node leads; one that nobody has used yet is empty."""
        opened = self._registry.opened
        for topic, facts in self._local:
            if facts.leader == self.node_id:
                yield _reading(topic, facts, opened.get((topic.name, facts.index)))

    def groups(self) -> Iterable[GroupSample]:
        """Return every group that this node coordinates; how far one is behind is known once its partition is open
        here."""
        for machine in tuple(self._groups.machines()):
            yield from [self._group(standing) for standing in machine.standings()]  # before it decides anything more

    def _group(self, standing: "Standing") -> GroupSample:
        group_id, state, members, committed = standing
        offsets = [
            CommittedSample(*name, Offset(value.offset), self._lag(name, value.offset))
            for name, value in committed.items()
        ]
        return GroupSample(group_id, state, members, offsets)

    def _lag(self, name: TopicPartition, offset: int) -> int | None:
        partition = self._registry.opened.get(name)
        return None if partition is None or not partition.is_led else max(0, partition.high_watermark - offset)

    def transactions(self) -> TransactionsSample:
        """Count the transactional ids that this node coordinates, and look for the oldest transaction that is open."""
        by_state: Counter[str] = Counter()
        now_ms = oldest_ms = self._clock.wall_ms()
        for machine in self._transactions.machines():
            counts, opened_ms = machine.standing()
            by_state.update(counts)
            oldest_ms = min(oldest_ms, now_ms if opened_ms is None else opened_ms)
        return TransactionsSample(by_state, (now_ms - oldest_ms) / 1000)

    def coordinators_loading(self) -> int:
        return self._groups.loading() + self._transactions.loading()

    def pipelines(self) -> Iterable[PipelineSample]:
        return self._pipelines()


def _count(partitions: Mapping[str, int]) -> int:
    """Count the bits that stand for partitions."""
    return sum(bits.bit_count() for bits in partitions.values())


def _reading(topic: TopicImage, facts: PartitionImage, partition: Partition | None) -> PartitionSample:
    nothing = Offset(0)
    log = None if partition is None else partition.log
    return PartitionSample(
        topic=topic.name,
        partition=facts.index,
        leader=facts.leader,
        replicas=facts.replicas,
        in_sync_replicas=facts.isr,
        log_start_offset=nothing if log is None else log.log_start_offset,
        high_watermark=nothing if partition is None else partition.high_watermark,
        last_stable_offset=nothing if partition is None else partition.last_stable_offset,
        log_end_offset=nothing if log is None else log.log_end_offset,
        size_bytes=0 if log is None else log.size,
        segments=0 if log is None else len(log.segments),
        damaged_segments=0 if log is None else len(log.quarantine.segments_behind(log.log_start_offset)),
        stats=PartitionStats() if partition is None else partition.stats,
    )
