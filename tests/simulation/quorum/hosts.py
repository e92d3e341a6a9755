"""A host of the simulated quorum: a disk that forgets what was not flushed, and a driver that carries effects out.

The driver is the product's in small: effects begin in their order, those that must be durable hold up all behind them,
and one flush of the log runs at a time. A crash may come between any two of these.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from riverlog.model.endpoints import Endpoint
from riverlog.model.epochs import Epochs
from riverlog.model.ids import Address, LeaderEpoch, NodeId, Offset
from riverlog.model.machine import Instant, Ticket
from riverlog.raft import effects as does
from riverlog.raft import events as hears
from riverlog.raft.election import ElectionState
from riverlog.raft.log_tail import LogTail, SnapshotId
from riverlog.raft.machine import Raft
from riverlog.raft.messages import (
    FetchedBatch,
    FetchedBatches,
    FetchResponse,
    FetchSnapshotResponse,
    LogRange,
    SnapshotRange,
    VersionsRequest,
    VersionsResponse,
)
from riverlog.raft.replica import Replica, Timing
from riverlog.raft.roles.leader import Leader
from riverlog.raft.voters import LogHistory, ReplicaKey, VoterSet

if TYPE_CHECKING:
    from tests.simulation.quorum.cluster import Cluster

LISTENER: Final = "CONTROLLER"
TIMING: Final = Timing()
STALL_SECONDS: Final = 0.1
"""A driver that was away for so long says so."""
CHUNK_BYTES: Final = 7
"""Snapshots are small here: each takes several chunks all the same."""


def address_of(node: NodeId) -> Address:
    return Address(f"host-{node}", 9093)


def endpoints_of(node: NodeId) -> tuple[Endpoint, ...]:
    return (Endpoint(LISTENER, f"host-{node}", 9093),)


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of the log: a value, or what a control record says."""

    epoch: LeaderEpoch
    value: object
    voters: VoterSet | None = None
    kraft_version: int | None = None


@dataclass(slots=True)
class Disk:
    """What a host has written; on the medium is what was flushed."""

    directory_id: UUID
    election: ElectionState = field(default_factory=ElectionState)
    start: int = 0
    entries: list[Entry] = field(default_factory=list)
    flushed: int = 0
    """The offset below which entries are on the medium."""
    snapshots: dict[SnapshotId, tuple[Entry, ...]] = field(default_factory=dict)
    """The entries that each stands for, from the beginning."""

    @property
    def end(self) -> int:
        return self.start + len(self.entries)

    def at(self, offset: int) -> Entry:
        return self.entries[offset - self.start]

    def prefix(self, end: int) -> tuple[Entry, ...]:
        """Return all entries below an offset, with those that a snapshot stands for."""
        before: tuple[Entry, ...] = ()
        if self.start:
            before = next(content for snapshot, content in self.snapshots.items() if snapshot.end_offset == self.start)
        return (*before, *self.entries[: end - self.start])

    def epochs(self) -> list[tuple[LeaderEpoch, Offset]]:
        epochs = Epochs()
        for position, entry in enumerate(self.entries):
            epochs.begin(entry.epoch, Offset(self.start + position))
        return epochs.entries()


@dataclass(slots=True)
class Running:
    """What a host has in memory while it runs."""

    raft: Raft
    queue: deque[does.Effect] = field(default_factory=deque)
    waits: bool = False
    """An effect is on its way to the medium."""
    flushing: bool = False
    wake_at: float | None = None
    download: bytearray = field(default_factory=bytearray)
    asked: dict[Ticket, tuple[int, int]] = field(default_factory=dict)
    """Who waits for an answer: a host, and the number of its call."""
    last_ticket: int = 0
    applied: int = 0


class Host:
    """One node of the quorum."""

    def __init__(self, cluster: "Cluster", node: NodeId, disk: Disk, initial: VoterSet, *, may_vote: bool) -> None:
        self.cluster = cluster
        self.node = node
        self.disk = disk
        self.initial = initial
        """The voters that the cluster was formatted with."""
        self.may_vote = may_vote
        self.running: Running | None = None
        self.life = 0
        """How often it was started: what an earlier life had under way is void."""
        self.paused_until = 0.0
        self.waiting: list[hears.Event] = []
        """What comes while the host is paused."""
        self.clock_rate = 1.0
        self.clock_offset = 0.0
        self.disk_seconds = 0.002
        self.random = Random(f"{cluster.seed} host {node}")

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node, self.disk.directory_id)

    @property
    def raft(self) -> Raft | None:
        return None if self.running is None else self.running.raft

    def clock(self) -> Instant:
        return Instant(self.cluster.now * self.clock_rate + self.clock_offset)

    def drift(self, rate: float) -> None:
        """Let the clock go at another rate from here on."""
        now = self.clock()
        self.clock_rate = rate
        self.clock_offset = now - self.cluster.now * rate
        if self.running is not None:
            self.running.wake_at = None
            self._set_timer()

    # -- life and death

    def start(self) -> None:
        """Begin from what is on the medium."""
        assert self.running is None
        self.life += 1
        disk = self.disk
        newest = max(disk.snapshots, default=None)
        base = newest.end_offset if newest is not None else 0
        if disk.start < base <= disk.end:
            base = disk.start
        assert disk.start >= base or newest is not None
        voters, versions = LogHistory(self.initial), LogHistory(self.cluster.kraft_version)
        below = disk.prefix(disk.end)
        for offset, entry in enumerate(below):
            if entry.kraft_version is not None:
                versions.append(Offset(offset), entry.kraft_version)
            if entry.voters is not None:
                voters.append(Offset(offset), entry.voters)
        log = LogTail(
            start=Offset(disk.start),
            end=Offset(disk.end),
            epochs=disk.epochs(),
            snapshots=[(snapshot, len(encode(snapshot))) for snapshot in disk.snapshots],
        )
        replica = Replica(
            key=self.key,
            endpoints=endpoints_of(self.node),
            listener=LISTENER,
            log=log,
            voters=voters,
            kraft_version=versions,
            election=disk.election,
            bootstrap=[address_of(node) for node in self.cluster.bootstrap],
            timing=TIMING,
            random=self.random,
            may_vote=self.may_vote,
            auto_join=self.cluster.auto_join,
        )
        self.running = Running(Raft(replica, self.clock()))
        self.cluster.checker.began(self)
        self._carry_out(self.running.raft.start(self.clock()))

    def crash(self) -> None:
        """Lose what is in memory, and of the log what was not flushed, all or a part of it."""
        if self.running is None:
            return
        for source, number in self.running.asked.values():
            self.cluster.answer_lost(source, number)
        self.running = None
        self.life += 1
        self.waiting.clear()
        self.paused_until = 0.0
        disk = self.disk
        kept = disk.flushed + self.random.randrange(disk.end - disk.flushed + 1)
        del disk.entries[kept - disk.start :]
        disk.flushed = kept

    def wipe(self, directory_id: UUID) -> None:
        """Lose the disk; the node comes back with an empty one."""
        self.crash()
        self.disk = Disk(directory_id)

    # -- events

    def hear(self, event: hears.Event) -> None:
        """Let the machine take an event, unless the host is paused or dead."""
        if self.running is None:
            return
        if self.paused_until > self.cluster.now:
            self.waiting.append(event)
            return
        self._carry_out(self.running.raft.on(event, self.clock()))

    def resume(self) -> None:
        """Go on after a pause: the driver notices how late it is, and then hears what has come meanwhile."""
        if self.running is None or self.paused_until > self.cluster.now:
            return
        events, self.waiting = self.waiting, []
        for event in [hears.Stalled(), hears.Woken(), *events]:
            self.hear(event)

    def asked(self, source: int, number: int, request: Any) -> None:
        """Take a peer's request."""
        running = self.running
        assert running is not None
        if isinstance(request, VersionsRequest):
            self.cluster.respond(self.node, source, number, VersionsResponse((0, 1)))
            return
        running.last_ticket += 1
        ticket = Ticket(running.last_ticket)
        running.asked[ticket] = (source, number)
        self.cluster.checker.asked(self, ticket, request)
        self.hear(hears.Asked(ticket, request))

    def propose(self, value: object) -> int | None:
        """Append a value if this host leads and has committed in its epoch; return its offset."""
        running = self.running
        if running is None or self.paused_until > self.cluster.now or running.waits or running.queue:
            return None
        role = running.raft.role
        if not isinstance(role, Leader) or role.committed < 0:
            return None
        offset = self.disk.end
        self._write([Entry(running.raft.epoch, value)])
        self._carry_out(running.raft.on(hears.Appended(1), self.clock()))
        return offset

    def snapshot(self) -> None:
        """Write a snapshot of what is committed, and perhaps let go of the log below it."""
        running = self.running
        if running is None or self.paused_until > self.cluster.now:
            return
        if running.waits or running.queue or running.raft.replica.installing:
            return
        end = running.raft.replica.high_watermark
        if end <= self.disk.start or end > self.disk.end:
            return
        taken = SnapshotId(end, self.disk.at(end - 1).epoch)
        if taken in self.disk.snapshots:
            return
        self.disk.snapshots[taken] = self.disk.prefix(end)
        self.hear(hears.SnapshotTaken(taken, len(encode(taken))))
        if self.random.random() < 0.7 and self.disk.flushed >= end:
            del self.disk.entries[: end - self.disk.start]
            self.disk.start = end
            self.disk.snapshots = {taken: self.disk.snapshots[taken]}
            self.hear(hears.LogShortened(end))

    # -- effects

    def _carry_out(self, effects: list[does.Effect]) -> None:
        running = self.running
        assert running is not None
        running.queue.extend(effects)
        self._go_on()

    def _go_on(self) -> None:
        running = self.running
        while running is not None and running is self.running and running.queue and not running.waits:
            self._begin(running.queue.popleft())
        if running is not None and running is self.running:
            self._flush()
            self._set_timer()
            self.cluster.checker.stepped(self)

    def _begin(self, effect: does.Effect) -> None:
        running, cluster, disk = self.running, self.cluster, self.disk
        assert running is not None
        match effect:
            case does.SaveElection(election):
                self._durably(lambda: setattr(disk, "election", election))
            case does.Truncate(end):
                self._durably(lambda: self._cut(end))
            case does.InstallSnapshot(snapshot, _):
                self._durably(lambda: self._install(snapshot))
            case does.Call():
                cluster.call(self.node, effect)
            case does.Answer(ticket, response):
                self._answer(ticket, response)
            case does.Append(fetched):
                assert isinstance(fetched.content, list)
                self._write(fetched.content)
            case does.AppendControl():
                assert effect.base_offset == disk.end
                self._write(control_entries(effect))
            case does.WriteSnapshot(_, position, content):
                if position == 0:
                    running.download.clear()
                assert len(running.download) == position
                running.download += content
            case does.Committed(high_watermark):
                cluster.checker.committed(self, high_watermark)
            case does.LeaderChanged(epoch, leader_id):
                cluster.checker.leads(self, epoch, leader_id)

    def _answer(self, ticket: Ticket, response: Any) -> None:
        assert self.running is not None
        source, number = self.running.asked.pop(ticket)
        self.cluster.checker.answered(self, ticket, response)
        match response:
            case FetchResponse(records=LogRange(offset, _)):
                response = FetchResponse(
                    response.leadership, response.high_watermark, response.log_start, records=self._read(offset)
                )
            case FetchSnapshotResponse(content=SnapshotRange(snapshot, position, _)):
                content = encode(snapshot)[position : position + CHUNK_BYTES]
                leadership, size = response.leadership, response.size
                response = FetchSnapshotResponse(leadership, snapshot, size, position, content)
        self.cluster.respond(self.node, source, number, response)

    def _read(self, offset: Offset) -> FetchedBatches | None:
        """Read some entries, each a batch of its own."""
        disk = self.disk
        if not disk.start <= offset < disk.end:  # cut off since the answer was decided on
            return None
        count = self.random.randrange(1, self.cluster.batches_max + 1)
        entries = disk.entries[offset - disk.start : offset - disk.start + count]
        batches = tuple(
            FetchedBatch(
                Offset(offset + position),
                1,
                entry.epoch,
                () if entry.voters is None else ((Offset(offset + position), entry.voters),),
                () if entry.kraft_version is None else ((Offset(offset + position), entry.kraft_version),),
            )
            for position, entry in enumerate(entries)
        )
        return FetchedBatches(batches, list(entries))

    def _write(self, entries: list[Entry]) -> None:
        for entry in entries:
            self.cluster.checker.written(self, self.disk.end, entry)
            self.disk.entries.append(entry)

    def _cut(self, end: int) -> None:
        disk = self.disk
        del disk.entries[end - disk.start :]
        disk.flushed = disk.end
        self._said_durable()

    def _install(self, snapshot: SnapshotId) -> None:
        disk, running = self.disk, self.running
        assert running is not None
        content = self.cluster.checker.snapshot_content(snapshot)
        assert bytes(running.download) == encode(snapshot)
        self.disk.snapshots = {snapshot: content}
        disk.entries.clear()
        disk.start = disk.flushed = snapshot.end_offset
        running.applied = max(running.applied, snapshot.end_offset)
        voters = next((entry.voters for entry in reversed(content) if entry.voters is not None), None)
        event = hears.SnapshotInstalled(snapshot, len(encode(snapshot)), voters, self.cluster.kraft_version)
        self.cluster.after(0.0, self._in_this_life(lambda: self.hear(event)))

    def _said_durable(self) -> None:
        assert self.running is not None
        event = hears.Flushed(Offset(self.disk.flushed), self.running.raft.replica.log.generation)
        self.cluster.after(0.0, self._in_this_life(lambda: self.hear(event)))

    def _durably(self, work: Callable[[], None]) -> None:
        """Hold up all later effects until this one is on the medium; a crash before then leaves it undone, or done."""
        running = self.running
        assert running is not None
        running.waits = True

        def done() -> None:
            work()
            assert self.running is not None
            self.running.waits = False
            self._go_on()

        self.cluster.after(self._disk_delay(), self._in_this_life(done))

    def _flush(self) -> None:
        running, disk = self.running, self.disk
        assert running is not None
        log = running.raft.replica.log
        if running.flushing or running.waits or disk.flushed == disk.end:
            return
        running.flushing = True
        end, generation = disk.end, log.generation

        def done() -> None:
            assert self.running is not None
            self.running.flushing = False
            if generation == self.running.raft.replica.log.generation:
                disk.flushed = max(disk.flushed, end)
                self.hear(hears.Flushed(Offset(end), generation))
            self._go_on()

        self.cluster.after(self._disk_delay(), self._in_this_life(done))

    def _disk_delay(self) -> float:
        return self.disk_seconds * (0.2 + self.random.random())

    def _in_this_life(self, work: Callable[[], None]) -> Callable[[], None]:
        life = self.life

        def if_alive() -> None:
            if self.life == life:
                if self.paused_until > self.cluster.now:
                    self.cluster.at(self.paused_until, if_alive)
                else:
                    work()

        return if_alive

    def _set_timer(self) -> None:
        running = self.running
        assert running is not None
        deadline = running.raft.deadline
        if deadline is None:
            running.wake_at = None
            return
        at = max(self.cluster.now, (deadline - self.clock_offset) / self.clock_rate)
        if running.wake_at is not None and running.wake_at <= at:
            return
        running.wake_at = at

        def wake() -> None:
            if self.running is running and running.wake_at == at:
                running.wake_at = None
                self.hear(hears.Woken())

        self.cluster.at(at + 1e-9, self._in_this_life(wake))


def encode(snapshot: SnapshotId) -> bytes:
    """Return the bytes of a snapshot: what it stands for, the checker knows."""
    return f"snapshot {snapshot.end_offset} of epoch {snapshot.epoch}".encode()


def control_entries(effect: does.AppendControl) -> list[Entry]:
    entries = list[Entry]()
    if effect.elected_by is not None:
        entries.append(Entry(effect.epoch, ("leader", effect.leader_id)))
    if effect.kraft_version is not None:
        entries.append(Entry(effect.epoch, "kraft.version", kraft_version=effect.kraft_version))
    if effect.writes_voters:
        entries.append(Entry(effect.epoch, ("voters", effect.voters.ids), voters=effect.voters))
    return entries
