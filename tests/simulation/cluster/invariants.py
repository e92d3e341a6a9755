"""What must hold in a cluster of whole nodes, after every turn of one of them.

Each invariant is a small class; `Checker` tells them what a node shows. What is committed is kept here a second time,
as the nodes first showed it: every batch byte for byte, and the image that all of them come to.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from riverlog.controller.snapshot_files import snapshot_id
from riverlog.controller.storage import METADATA_FOLDER
from riverlog.metadata.draft import MetadataDraft
from riverlog.metadata.encoding import decode_record, encode_record
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from riverlog.metadata.snapshot import snapshot_records
from riverlog.metadata.transactions import OpenTransaction
from riverlog.model.ids import NO_EPOCH, NO_OFFSET, LeaderEpoch, NodeId, Offset
from riverlog.raft.quorum_state import QUORUM_STATE_FILE, decode_election
from riverlog.records.batch import read_header
from riverlog.records.record import read_batches
from tests.simulation.cluster.hosts import NodeHost

BEGINNING: Final = Offset(0)
_FOLDER: Final = f"/data/{METADATA_FOLDER}"
_UNFENCED: Final = -1
Report = Callable[[str], None]


@dataclass
class OneLeaderPerEpoch:
    """Election safety: of the quorum, as the nodes act on it."""

    report: Report
    leaders: dict[LeaderEpoch, NodeId] = field(default_factory=dict)

    def leads(self, node: NodeId, epoch: LeaderEpoch) -> None:
        if self.leaders.setdefault(epoch, node) != node:
            self.report(f"{node} and {self.leaders[epoch]} both lead epoch {epoch}")


@dataclass
class CommittedLog:
    """State machine safety: what one node took for committed, all others have byte for byte, and no leader lacks."""

    report: Report
    decided: Callable[[Offset, list[MetadataRecord]], None]
    """Called with each committed batch and its offset, once, in order; of transactions when they end."""
    batches: dict[Offset, bytes] = field(default_factory=dict)
    end: Offset = BEGINNING
    epoch: LeaderEpoch = NO_EPOCH
    """In which the last of it was written."""
    last_batch: bytes = b""
    _transaction: OpenTransaction = field(default_factory=OpenTransaction)

    def seen(self, node: NodeId, batch: bytes) -> None:
        base = read_header(memoryview(batch)).base_offset
        known = self.batches.get(base)
        if known is None and base == self.end:
            self._take(batch)
        elif known != batch:
            self.report(f"the committed log of node {node} differs at {base}")

    def _take(self, batch: bytes) -> None:
        for header, records in read_batches(batch):
            self.batches[self.end] = self.last_batch = batch
            self.end, self.epoch = header.next_offset, header.leader_epoch
            values = [] if header.is_control else [decode_record(each.value or b"") for each in records]
            self.decided(
                Offset(header.base_offset), [each for value in values for each in self._transaction.take(value)]
            )

    def leads(self, node: NodeId, epoch: LeaderEpoch, log_end: Offset) -> None:
        """Look at a leader; one of an earlier epoch may not have heard of its end."""
        if epoch >= self.epoch and log_end < self.end:
            self.report(f"node {node} leads and has only what lies below {log_end}: {self.end} was committed")


@dataclass
class EpochIsDurable:
    """Whoever leads has its epoch, and the vote for itself, on the medium."""

    report: Report

    def leads(self, host: NodeHost, epoch: LeaderEpoch) -> None:
        content = host.disk.durable_content(f"{_FOLDER}/{QUORUM_STATE_FILE}")
        saved = NO_EPOCH if content is None else decode_election(content).election.epoch
        if saved < epoch:
            self.report(f"node {host.id} leads epoch {epoch} and has {saved} on its medium")


@dataclass
class MajorityHasIt:
    """What a leader takes for committed is on the media of a majority of controllers, in logs or in snapshots."""

    report: Report
    controllers: list[NodeHost]

    def committed(self, end: Offset, batch: bytes) -> None:
        count = sum(self._has(host, end, batch) for host in self.controllers)
        if 2 * count <= len(self.controllers):
            self.report(f"{end} is committed and on the medium of {count} of {len(self.controllers)} controllers")

    def _has(self, host: NodeHost, end: Offset, batch: bytes) -> bool:
        names = host.disk.durable_names(_FOLDER)
        if any(end <= snapshot_id(name).end_offset for name in names if name.endswith(".checkpoint")):
            return True
        contents = (host.disk.durable_content(f"{_FOLDER}/{name}") for name in names if name.endswith(".log"))
        return any(content is not None and batch in content for content in contents)


@dataclass
class UnfencedHaveCaughtUp:
    """A broker that is let in knows what the metadata were when it registered."""

    report: Report

    def decided(self, record: MetadataRecord, known: "Sight | None") -> None:
        if not isinstance(record, BrokerRegistrationChangeRecord) or record.fenced != _UNFENCED or known is None:
            return
        if known.broker_epoch == record.broker_epoch >= known.loaded:
            self.report(f"broker {record.broker_id} is let in at {known.loaded}, registered at {record.broker_epoch}")


@dataclass
class BrokerEpochs:
    """A broker's epoch is the offset of its registration, and never goes back, on whatever node."""

    report: Report
    newest: dict[int, tuple[int, UUID]] = field(default_factory=dict)

    def decided(self, offset: Offset, count: int, record: MetadataRecord) -> None:
        if isinstance(record, RegisterBrokerRecord):
            epoch, incarnation = self.newest.get(record.broker_id, (-1, None))
            amends = incarnation == record.incarnation_id
            if not (record.broker_epoch == epoch if amends else offset <= record.broker_epoch < offset + count):
                self.report(f"broker {record.broker_id} has epoch {record.broker_epoch} at offset {offset}")
            self.newest[record.broker_id] = (record.broker_epoch, record.incarnation_id)

    def heard(self, broker: int, epoch: int, known: dict[int, int]) -> None:
        """Note in which epoch a broker takes part."""
        if epoch < known.get(broker, -1):
            self.report(f"broker {broker} went back from epoch {known[broker]} to {epoch}")
        known[broker] = max(epoch, known.get(broker, -1))


@dataclass
class FencedLeadNothing:
    """Whoever is made leader is there: registered, not fenced, not about to stop."""

    report: Report

    def decided(self, image: MetadataImage, record: PartitionRecord | PartitionChangeRecord) -> None:
        broker = image.brokers.get(NodeId(record.leader))
        if broker is None or broker.fenced or broker.in_controlled_shutdown:
            self.report(
                f"partition {record.partition_id} of {record.topic_id} is given to broker {record.leader}: {broker}"
            )


@dataclass
class DecidedOnce:
    """No request is carried out twice: a name is given to one topic at a time, an id and a partition only once."""

    report: Report
    names: dict[UUID, str] = field(default_factory=dict)
    ever: set[object] = field(default_factory=set)

    def decided(self, record: MetadataRecord) -> None:
        match record:
            case TopicRecord():
                if record.name in self.names.values() or record.topic_id in self.ever:
                    self.report(f"topic {record.name} was created twice")
                self.names[record.topic_id] = record.name
                self.ever.add(record.topic_id)
            case RemoveTopicRecord():
                if self.names.pop(record.topic_id, None) is None:
                    self.report(f"a topic was deleted twice: {record.topic_id}")
            case PartitionRecord():
                key = (record.topic_id, record.partition_id)
                if key in self.ever:
                    self.report(f"partition {key} was created twice")
                self.ever.add(key)
            case _:
                pass


@dataclass
class OneServerPerLeaderEpoch:
    """In one leader epoch one broker serves a partition."""

    report: Report
    servers: dict[tuple[UUID, int, LeaderEpoch], int] = field(default_factory=dict)

    def serves(self, broker: int, topic: UUID, index: int, epoch: LeaderEpoch) -> None:
        if self.servers.setdefault((topic, index, epoch), broker) != broker:
            other = self.servers[topic, index, epoch]
            self.report(f"{broker} and {other} both serve partition {index} of {topic} in epoch {epoch}")


@dataclass
class ViewsGoForward:
    """What a process shows of the metadata, and its epoch of the quorum, never go back."""

    report: Report

    def went(self, node: NodeId, before: "Sight", now: "Sight") -> None:
        for what in ("epoch", "high_watermark", "loaded"):
            old, new = getattr(before, what), getattr(now, what)
            if new < old:
                self.report(f"node {node}: {what} went back from {old} to {new}")


@dataclass(frozen=True, slots=True)
class Sight:
    """What a node's process shows."""

    life: int
    epoch: LeaderEpoch = NO_EPOCH
    leads: bool = False
    high_watermark: Offset = NO_OFFSET
    loaded: Offset = BEGINNING
    broker_epoch: int = -1


class Checker:
    """Looks at nodes, and tells the invariants."""

    def __init__(self, report: Report, controllers: list[NodeHost]) -> None:
        self._report = report
        self.elections = OneLeaderPerEpoch(report)
        self.log = CommittedLog(report, self._decided)
        self.epochs = EpochIsDurable(report)
        self.majority = MajorityHasIt(report, controllers)
        self.arrivals = UnfencedHaveCaughtUp(report)
        self.broker_epochs = BrokerEpochs(report)
        self.leaders = FencedLeadNothing(report)
        self.once = DecidedOnce(report)
        self.servers = OneServerPerLeaderEpoch(report)
        self.views = ViewsGoForward(report)
        self._draft = MetadataDraft(MetadataImage())
        self._seen: dict[int, Sight] = {}
        self._committed_seen: dict[int, Offset] = {}
        self._sessions: dict[int, int] = {}

    def look(self, host: NodeHost) -> None:
        """Look at a node after one of its turns."""
        node = host.node
        part = None if node is None else node._part
        if node is None or part is None:
            return
        quorum, session = part.controller.quorum, None if node._registration is None else node._registration._session
        now = Sight(
            host.lives,
            quorum.epoch,
            quorum.leads,
            quorum.high_watermark,
            part.controller.loaded_offset,
            -1 if session is None else session.epoch,
        )
        before = self._seen.get(host.id)
        if before == now:
            return
        self._seen[host.id] = now
        if before is None or before.life != now.life:
            before = Sight(now.life)
            self._committed_seen[host.id] = Offset(0)
        self.views.went(quorum.key.id, before, now)
        if now.high_watermark > before.high_watermark:
            known = self.log.end
            host.look(lambda: self._read_committed(host, quorum, now.high_watermark))
            if known < self.log.end == now.high_watermark:
                self.majority.committed(self.log.end, self.log.last_batch)
        if now.leads:
            self.elections.leads(quorum.key.id, now.epoch)
            self.epochs.leads(host, now.epoch)
            self.log.leads(quorum.key.id, now.epoch, quorum.storage.end_offset)
        if now.broker_epoch >= 0:
            self.broker_epochs.heard(host.id, now.broker_epoch, self._sessions)
        if node._parts is not None:
            for (_, index), partition in node._parts.replicas._opened.items():
                if partition.is_led:
                    self.servers.serves(host.id, partition.topic_id, index, partition.leader_epoch)

    def image(self) -> MetadataImage:
        """Return what all committed records come to."""
        return self._draft.image()

    def _read_committed(self, host: NodeHost, quorum: Any, high_watermark: Offset) -> None:
        storage = quorum.storage
        offset = max(self._committed_seen[host.id], storage.log.log_start_offset)
        upto = min(high_watermark, storage.end_offset)
        while offset < upto:
            content = storage.read(offset, 1)
            header = read_header(memoryview(content))
            if header.next_offset > upto:
                break
            self.log.seen(quorum.key.id, content)
            offset = header.next_offset
        self._committed_seen[host.id] = offset

    def _decided(self, offset: Offset, records: list[MetadataRecord]) -> None:
        for record in records:
            self.broker_epochs.decided(offset, len(records), record)
            self.once.decided(record)
            if isinstance(record, BrokerRegistrationChangeRecord):
                self.arrivals.decided(record, self._seen.get(record.broker_id))
            try:
                self._draft.apply(record)
            except (AssertionError, LookupError) as error:
                self._report(f"what is committed at {offset} makes no sense: {error}")
                return
            if isinstance(record, PartitionRecord | PartitionChangeRecord) and record.leader >= 0:
                self.leaders.decided(self._draft.image(), record)


def content_of(image: MetadataImage) -> list[bytes]:
    """Return what an image says, in an order of its own."""
    return sorted(encode_record(record) for record in _records(image))


def _records(image: MetadataImage) -> Iterable[MetadataRecord]:
    return snapshot_records(image)
