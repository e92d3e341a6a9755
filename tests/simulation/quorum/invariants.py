"""What must hold in a quorum after every step, whatever fails.

Each invariant is a small class; `Checker` tells them what happens on each host. A violation is noted with its time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from riverlog.model.ids import LeaderEpoch, NodeId, Offset
from riverlog.model.machine import Ticket
from riverlog.raft.log_tail import SnapshotId
from riverlog.raft.messages import VoteRequest, VoteResponse
from riverlog.raft.roles.leader import Leader
from riverlog.raft.voters import ReplicaKey, VoterSet

if TYPE_CHECKING:
    from tests.simulation.quorum.hosts import Entry, Host

Report = Callable[[str], None]


@dataclass
class OneLeaderPerEpoch:
    """Election safety."""

    report: Report
    leaders: dict[LeaderEpoch, ReplicaKey] = field(default_factory=dict)

    def leads(self, host: "Host", epoch: LeaderEpoch) -> None:
        if self.leaders.setdefault(epoch, host.key) != host.key:
            self.report(f"{host.key} and {self.leaders[epoch]} both lead epoch {epoch}")


@dataclass
class OneVotePerEpoch:
    """A replica votes once in an epoch, whatever it forgets."""

    report: Report
    votes: dict[tuple[ReplicaKey, LeaderEpoch], ReplicaKey] = field(default_factory=dict)

    def voted(self, voter: ReplicaKey, epoch: LeaderEpoch, candidate: ReplicaKey) -> None:
        if self.votes.setdefault((voter, epoch), candidate) != candidate:
            self.report(f"{voter} votes for {candidate} and {self.votes[voter, epoch]} in epoch {epoch}")


@dataclass
class OneRecordPerOffsetAndEpoch:
    """Log matching: an offset and an epoch name one record, in all logs."""

    report: Report
    records: dict[tuple[int, LeaderEpoch], object] = field(default_factory=dict)

    def written(self, host: "Host", offset: int, entry: "Entry") -> None:
        known = self.records.setdefault((offset, entry.epoch), entry.value)
        if known != entry.value:
            self.report(f"{host.key} has {entry.value} at {offset} of epoch {entry.epoch}, and others have {known}")


@dataclass
class CommittedStays:
    """State machine safety: what one host took for committed no other contradicts; it is on a majority's medium."""

    report: Report
    log: list["Entry"] = field(default_factory=list)
    """Everything that was committed."""
    epochs: list[LeaderEpoch] = field(default_factory=list)
    """In which epoch each record was committed."""

    def committed(self, host: "Host", upto: Offset, hosts: list["Host"]) -> None:
        running = host.running
        assert running is not None
        for offset in range(max(running.applied, host.disk.start), upto):
            entry = host.disk.at(offset)
            if offset < len(self.log):
                if self.log[offset] != entry:
                    self.report(f"{host.key} commits {entry} at {offset}, where {self.log[offset]} was committed")
            elif offset == len(self.log):
                self.log.append(entry)
                self.epochs.append(running.raft.epoch)
            else:
                self.report(f"{host.key} commits {offset} where only {len(self.log)} records were")
        if upto < running.applied:
            self.report(f"the high watermark of {host.key} goes back from {running.applied} to {upto}")
        running.applied = max(running.applied, upto)

    def survives(self, voters: VoterSet, hosts: list["Host"], wiped: set[ReplicaKey], upto: int) -> None:
        """Check that a majority of the voters has what was just committed on its medium.

        A disk that was wiped may have had it; it does not vote again, so the others need each other all the more.
        """
        holding = sum(
            1
            for host in hosts
            if voters.includes(host.key)
            and host.disk.flushed >= upto
            and (upto <= host.disk.start or host.disk.at(upto - 1) == self.log[upto - 1])
        )
        holding += sum(1 for voter in voters if voter.key in wiped)
        if holding < voters.majority:
            self.report(f"offset {upto - 1} is committed, and on the medium of {holding} of {voters.ids} alone")


@dataclass
class LeaderHasAll:
    """Leader completeness: whoever leads an epoch has everything that was committed in earlier ones."""

    report: Report

    def elected(self, host: "Host", epoch: LeaderEpoch, stays: CommittedStays) -> None:
        before = sum(1 for committed_in in stays.epochs if committed_in < epoch)
        mine = host.disk.prefix(host.disk.end)
        if list(mine[:before]) != stays.log[:before]:
            self.report(f"{host.key} leads epoch {epoch} without all that was committed before")


@dataclass
class WipedDisksDoNotVote:
    """A vote that was asked of one disk is not given by the next one of that node."""

    report: Report
    dead: set[ReplicaKey] = field(default_factory=set)

    def voted(self, voter: ReplicaKey, asked: ReplicaKey | None) -> None:
        if asked is not None and not asked.is_met_by(voter):
            self.report(f"{voter} votes in place of {asked}")


@dataclass
class AcknowledgedIsKept:
    """What a client was told is committed is in the log for ever, once."""

    report: Report
    values: dict[object, int] = field(default_factory=dict)

    def acknowledged(self, value: object, offset: int) -> None:
        self.values[value] = offset

    def judge(self, committed: list["Entry"]) -> None:
        places: dict[object, list[int]] = {}
        for offset, entry in enumerate(committed):
            places.setdefault(entry.value, []).append(offset)
        for value, offset in self.values.items():
            if places.get(value) != [offset]:
                self.report(f"{value} was acknowledged at {offset}, and is at {places.get(value)}")


class Checker:
    """Tells the invariants what happens."""

    def __init__(self, hosts: dict[NodeId, "Host"], now: Callable[[], float]) -> None:
        self._hosts = hosts
        self._now = now
        self.violations: list[str] = []
        self.elections = 0
        self.one_leader = OneLeaderPerEpoch(self._report)
        self.one_vote = OneVotePerEpoch(self._report)
        self.one_record = OneRecordPerOffsetAndEpoch(self._report)
        self.stays = CommittedStays(self._report)
        self.has_all = LeaderHasAll(self._report)
        self.wiped = WipedDisksDoNotVote(self._report)
        self.kept = AcknowledgedIsKept(self._report)
        self._requests: dict[tuple[ReplicaKey, Ticket], VoteRequest] = {}
        self._awaited: dict[int, tuple[object, ReplicaKey, int, LeaderEpoch]] = {}

    def _report(self, what: str) -> None:
        if len(self.violations) < 20:
            self.violations.append(f"{self._now():.3f} {what}")

    def began(self, host: "Host") -> None:
        """Note that a host was started: its votes are those on its medium."""
        election = host.disk.election
        if election.voted_for is not None:
            self.one_vote.voted(host.key, election.epoch, election.voted_for)
        assert host.running is not None
        host.running.applied = host.disk.start

    def asked(self, host: "Host", ticket: Ticket, request: Any) -> None:
        if isinstance(request, VoteRequest):
            self._requests[host.key, ticket] = request
            if not request.pre_vote:
                self.one_vote.voted(request.candidate, request.epoch, request.candidate)

    def answered(self, host: "Host", ticket: Ticket, response: Any) -> None:
        request = self._requests.pop((host.key, ticket), None)
        if request is not None and isinstance(response, VoteResponse) and response.granted:
            self.wiped.voted(host.key, request.voter)
            if not request.pre_vote:
                self.one_vote.voted(host.key, request.epoch, request.candidate)

    def written(self, host: "Host", offset: int, entry: "Entry") -> None:
        self.one_record.written(host, offset, entry)

    def leads(self, host: "Host", epoch: LeaderEpoch, leader_id: NodeId | None) -> None:
        if leader_id == host.node and host.raft is not None and isinstance(host.raft.role, Leader):
            self.elections += epoch not in self.one_leader.leaders
            self.one_leader.leads(host, epoch)
            self.has_all.elected(host, epoch, self.stays)

    def committed(self, host: "Host", upto: Offset) -> None:
        before = len(self.stays.log)
        hosts = list(self._hosts.values())
        self.stays.committed(host, upto, hosts)
        if len(self.stays.log) > before and host.raft is not None:
            voters = host.raft.replica.voters.at(upto) if host.raft.leads_from < 0 else host.raft.replica.voters.latest
            self.stays.survives(voters, hosts, self.wiped.dead, len(self.stays.log))
        self._acknowledge(host, upto)

    def proposed(self, host: "Host", value: object, offset: int) -> None:
        """Note a value that a client waits for."""
        assert host.raft is not None
        self._awaited[offset] = (value, host.key, host.life, host.raft.epoch)

    def _acknowledge(self, host: "Host", upto: Offset) -> None:
        """Acknowledge what the leader that took it has committed in the same life and epoch."""
        for offset in [offset for offset in self._awaited if offset < upto]:
            value, key, life, epoch = self._awaited[offset]
            if (key, life) == (host.key, host.life) and host.raft is not None and host.raft.epoch == epoch:
                if host.raft.leads_from >= 0:
                    self.kept.acknowledged(value, offset)
                del self._awaited[offset]

    def stepped(self, host: "Host") -> None:
        """Compare what a machine thinks of its log with its disk, when nothing is on its way."""
        running = host.running
        assert running is not None
        if running.queue or running.waits or running.raft.replica.installing:
            return
        log = running.raft.replica.log
        if (log.start, log.end) != (host.disk.start, host.disk.end) or log.flushed > host.disk.flushed:
            self._report(
                f"{host.key} takes {log.start}-{log.end} ({log.flushed}) for its log {host.disk.start}-{host.disk.end}"
            )

    def snapshot_content(self, snapshot: SnapshotId) -> tuple["Entry", ...]:
        """Return the entries that a snapshot stands for."""
        assert snapshot.end_offset <= len(self.stays.log), "a snapshot holds what is committed"
        return tuple(self.stays.log[: snapshot.end_offset])
