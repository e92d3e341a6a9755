"""The Raft machine: what a node of the quorum is told goes in, what it is to do comes out, in order.

Pull replication as in KRaft (KIP-595): followers fetch, and a Fetch says how far its sender is. Elections ask before
they begin an epoch (KIP-996); a leader that no majority fetches from resigns. Votes and records are on the medium
before anybody hears of them: effects are carried out in their order. Voters have directory ids and change one at a time
(KIP-853). The machine holds no records, knows no clock and no file; `on` is called with each event and its time.
"""

from typing import assert_never

from riverlog.model.errors import ErrorCode, InvariantBroken
from riverlog.model.ids import NO_OFFSET, LeaderEpoch, NodeId, Offset
from riverlog.model.machine import Instant, Ticket
from riverlog.raft.effects import Effect, LeaderChanged, SaveElection
from riverlog.raft.election import EPOCH_JUMP_MAX, EPOCH_MAX, ElectionState
from riverlog.raft.events import (
    Answered,
    Appended,
    Asked,
    CallFailed,
    Event,
    Flushed,
    LogShortened,
    SnapshotInstalled,
    SnapshotRefused,
    SnapshotTaken,
    Stalled,
    Stopping,
    Woken,
)
from riverlog.raft.messages import (
    AddVoterRequest,
    BeginEpochRequest,
    EndEpochRequest,
    EpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Leadership,
    RemoveVoterRequest,
    Request,
    Response,
    UpdateVoterRequest,
    VersionsResponse,
    VoterChangeResponse,
    VoteRequest,
    VoteResponse,
)
from riverlog.raft.replica import Replica
from riverlog.raft.roles.follower import Follower
from riverlog.raft.roles.leader import Leader
from riverlog.raft.roles.nominee import Candidate, Prospective
from riverlog.raft.roles.role import learnt
from riverlog.raft.roles.waiting import Resigned, Unattached
from riverlog.raft.transitions import AskForVotes, Campaign, Detach, Follow, Lead, Resign, Transition
from riverlog.raft.voters import address_on

AnyRole = Unattached | Prospective | Candidate | Leader | Follower | Resigned


class Raft:
    """One node of the quorum, voter or observer."""

    def __init__(self, replica: Replica, now: Instant) -> None:
        """Begin where the node stopped; `start` gives the first effects."""
        self._replica = replica
        deadline = Instant(now + replica.election_timeout())
        election, last_epoch = replica.election, replica.log.last_epoch
        if election.epoch < last_epoch:
            election = replica.election = ElectionState(last_epoch)
        replica.emit(SaveElection(election, replica.kraft_version.latest))
        replica.emit(LeaderChanged(election.epoch, election.leader_id))
        self._role: AnyRole
        if election.leader_id == replica.key.id:
            # What it had not flushed as leader is gone, and must not come twice under one offset and epoch.
            self._role = Resigned(replica, (), deadline)
        elif election.leader_id is None and election.voted_for == replica.key and replica.is_voter:
            self._role = Candidate(replica, deadline)
        else:
            address = None
            if election.leader_id is not None:
                address = replica.voters.latest.address(election.leader_id, replica.listener)
            if election.leader_id is not None and address is not None:
                replica.leader_address = address
                self._role = Follower(replica, election.leader_id, address, now)
            else:
                self._role = Unattached(replica, deadline, now)

    # -- what can be seen

    @property
    def role(self) -> AnyRole:
        return self._role

    @property
    def replica(self) -> Replica:
        """Return what is the same in every role; for looking only."""
        return self._replica

    @property
    def epoch(self) -> LeaderEpoch:
        return self._replica.epoch

    @property
    def leads_from(self) -> Offset:
        """Return where the epoch that this node leads begins; NO_OFFSET where it leads none."""
        return self._role.starts_at if isinstance(self._role, Leader) else NO_OFFSET

    @property
    def deadline(self) -> Instant | None:
        """Return when the machine next wants to be woken, if at all."""
        return self._role.deadline

    # -- what happens

    def start(self, now: Instant) -> list[Effect]:
        """Do what the first role begins with."""
        self._go(self._role.begin(now), now)
        return self._taken()

    def on(self, event: Event, now: Instant) -> list[Effect]:
        """Take one event; return what is to be done, in this order."""
        match event:
            case Asked(ticket, request):
                self._asked(ticket, request, now)
            case Answered(number, response):
                self._answered(number, response, now)
            case CallFailed(number, unsupported, refused):
                if refused and isinstance(self._role, Follower):
                    self._role.leader_gone(number, now)
                self._go(self._role.failed(number, now, unsupported=unsupported), now)
            case Appended(count):
                assert isinstance(self._role, Leader), "only a leader has records of its own"
                self._role.appended(count)
            case Flushed(end, generation):
                self._flushed(end, generation, now)
            case SnapshotTaken(snapshot, size):
                if snapshot.end_offset >= self._replica.log.start:
                    self._replica.log.rest_on(snapshot, size)
            case LogShortened(start):
                self._replica.log.let_go(start)
                self._replica.voters.forget_below(start)
                self._replica.kraft_version.forget_below(start)
            case SnapshotInstalled():
                self._installed(event, now)
            case SnapshotRefused():
                self._replica.installing = False
                self._go(self._role.wake(now), now)
            case Woken():
                self._go(self._role.wake(now), now)
            case Stalled():
                self._role.stalled(now)
            case Stopping():
                self._stop(now)
            case _:
                assert_never(event)
        return self._taken()

    def _taken(self) -> list[Effect]:
        effects, self._replica.effects = self._replica.effects, []
        return effects

    # -- requests

    def _asked(self, ticket: Ticket, request: Request, now: Instant) -> None:
        match request:
            case VoteRequest():
                self._replica.answer(ticket, self._vote(request, now))
            case BeginEpochRequest():
                self._replica.answer(ticket, self._begin_epoch(request, now))
            case EndEpochRequest():
                self._replica.answer(ticket, self._end_epoch(request, now))
            case FetchRequest():
                self._fetch(ticket, request, now)
            case FetchSnapshotRequest():
                error = self._leader_error(request.epoch)
                if isinstance(self._role, Leader) and error is ErrorCode.NONE:
                    self._role.fetch_snapshot(ticket, request, now)
                else:
                    self._replica.answer(ticket, FetchSnapshotResponse(self._replica.leadership(error)))
            case AddVoterRequest() | RemoveVoterRequest():
                self._change_voters(ticket, request, self.epoch, now)
            case UpdateVoterRequest():
                self._change_voters(ticket, request, request.epoch, now)
            case _:
                assert_never(request)

    def _vote(self, request: VoteRequest, now: Instant) -> VoteResponse:
        replica = self._replica
        last_epoch_max = request.epoch if request.pre_vote else request.epoch - 1  # nobody wrote in the epoch to come
        if (
            request.epoch >= EPOCH_MAX
            or request.epoch > self.epoch + EPOCH_JUMP_MAX
            or request.last_offset < 0
            or not 0 <= request.last_epoch <= last_epoch_max
            or request.candidate.id < 0
        ):
            return VoteResponse(replica.leadership(ErrorCode.INVALID_REQUEST))
        if request.epoch < self.epoch:
            return VoteResponse(replica.leadership(ErrorCode.FENCED_LEADER_EPOCH))
        if request.epoch > self.epoch:
            self._go(Detach(request.epoch), now)
        if request.voter is not None and not request.voter.is_met_by(replica.key):
            return VoteResponse(replica.leadership(ErrorCode.INVALID_VOTER_KEY))
        role = self._role
        has_all = replica.log.is_at_least(request.last_epoch, request.last_offset)
        granted = role.grants(request.candidate, has_all=has_all, pre_vote=request.pre_vote)
        if granted and not request.pre_vote and replica.election.voted_for is None:
            assert isinstance(role, Unattached | Prospective)
            replica.vote(request.candidate)
            role.voted(now)
        return VoteResponse(replica.leadership(), granted)

    def _begin_epoch(self, request: BeginEpochRequest, now: Instant) -> EpochResponse:
        replica = self._replica
        error = self._epoch_error(request.leader_id, request.epoch)
        if error is ErrorCode.NONE:
            address = address_on(request.endpoints, replica.listener)
            self._learn(Leadership(ErrorCode.NONE, request.epoch, request.leader_id, address), now)
            if request.voter is not None and not request.voter.is_met_by(replica.key):
                error = ErrorCode.INVALID_VOTER_KEY
            elif isinstance(self._role, Follower) and self._role.leader_id == request.leader_id:
                self._role.heard_leader(now)
        return EpochResponse(replica.leadership(error))

    def _end_epoch(self, request: EndEpochRequest, now: Instant) -> EpochResponse:
        error = self._epoch_error(request.leader_id, request.epoch)
        if error is ErrorCode.NONE:
            address = address_on(request.endpoints, self._replica.listener)
            self._learn(Leadership(ErrorCode.NONE, request.epoch, request.leader_id, address), now)
            if isinstance(self._role, Follower) and self._role.leader_id == request.leader_id:
                self._role.leader_resigns(request, now)
                self._go(self._role.wake(now), now)
        return EpochResponse(self._replica.leadership(error))

    def _fetch(self, ticket: Ticket, request: FetchRequest, now: Instant) -> None:
        if request.offset < 0 or not 0 <= request.last_epoch <= request.epoch:
            error = ErrorCode.INVALID_REQUEST
        else:
            error = self._leader_error(request.epoch)
        if isinstance(self._role, Leader) and error is ErrorCode.NONE:
            self._go(self._role.fetch(ticket, request, now), now)
        else:
            self._replica.answer(ticket, FetchResponse(self._replica.leadership(error)))

    def _change_voters(
        self,
        ticket: Ticket,
        request: AddVoterRequest | RemoveVoterRequest | UpdateVoterRequest,
        epoch: LeaderEpoch,
        now: Instant,
    ) -> None:
        error = self._leader_error(epoch)
        if isinstance(self._role, Leader) and error is ErrorCode.NONE:
            self._role.change_voters(ticket, request, now)
        else:
            self._replica.answer(ticket, VoterChangeResponse(self._replica.leadership(error)))

    def _leader_error(self, epoch: LeaderEpoch) -> ErrorCode:
        """Return what keeps a request to the leader of an epoch from being served here."""
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if isinstance(self._role, Leader) else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _epoch_error(self, leader_id: NodeId, epoch: LeaderEpoch) -> ErrorCode:
        if leader_id < 0 or leader_id == self._replica.key.id or epoch >= EPOCH_MAX:
            return ErrorCode.INVALID_REQUEST
        if epoch > self.epoch + EPOCH_JUMP_MAX:
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.FENCED_LEADER_EPOCH if epoch < self.epoch else ErrorCode.NONE

    # -- responses, and the log

    def _answered(self, number: int, response: Response | VersionsResponse, now: Instant) -> None:
        if not isinstance(response, VersionsResponse) and self._learn(response.leadership, now):
            return  # the role that had asked is over
        self._go(self._role.answered(number, response, now), now)

    def _learn(self, heard: Leadership, now: Instant) -> bool:
        """Take over an epoch or a leader that was not known; return whether there was one."""
        transition = learnt(self._replica, heard)
        self._go(transition, now)
        return transition is not None

    def _flushed(self, end: Offset, generation: int, now: Instant) -> None:
        self._replica.log.synced(end, generation)
        if isinstance(self._role, Leader):
            self._go(self._role.flushed(), now)
        else:
            self._go(self._role.wake(now), now)

    def _installed(self, event: SnapshotInstalled, now: Instant) -> None:
        replica = self._replica
        replica.log.restart(event.snapshot, event.size)
        end = event.snapshot.end_offset
        written_at = None if event.voters is None else Offset(end - 1)
        replica.voters.restart(event.voters or replica.voters.latest, written_at)
        replica.kraft_version.restart(event.kraft_version, None)
        replica.installing = False
        replica.commit(end)
        self._go(self._role.wake(now), now)

    def _stop(self, now: Instant) -> None:
        """Hand over, if this node leads, and begin no epoch any more."""
        self._replica.stopping = True
        if isinstance(self._role, Leader):
            self._go(Resign(), now)

    # -- from one role to the next

    def _go(self, transition: Transition | None, now: Instant) -> None:
        while transition is not None:
            if isinstance(self._role, Leader):
                leader, self._role = self._role, self._enter(transition, now)
                leader.end()
            else:
                self._role = self._enter(transition, now)
            transition = self._role.begin(now)

    def _enter(self, transition: Transition, now: Instant) -> AnyRole:
        replica, election = self._replica, self._replica.election
        match transition:
            case Detach(epoch, leader_id):
                deadline = self._election_at(now)
                kept = election.voted_for if epoch == election.epoch else None
                replica.remember(ElectionState(epoch, leader_id, kept))
                return Unattached(replica, deadline, now)
            case Follow(epoch, leader_id, address):
                kept = election.voted_for if epoch == election.epoch else None
                replica.remember(ElectionState(epoch, leader_id, kept), address)
                return Follower(replica, leader_id, address, now)
            case AskForVotes():
                return Prospective(replica, Instant(now + replica.election_timeout()))
            case Campaign():
                if election.epoch + 1 >= EPOCH_MAX:
                    raise InvariantBroken(f"behind epoch {election.epoch} no other one can begin")
                replica.remember(ElectionState(LeaderEpoch(election.epoch + 1), None, replica.key))
                return Candidate(replica, Instant(now + replica.election_timeout()))
            case Lead(elected_by):
                own_address = address_on(replica.endpoints, replica.listener)
                replica.remember(election._replace(leader_id=replica.key.id), own_address)
                return Leader(replica, elected_by, now)
            case Resign():
                assert isinstance(self._role, Leader)
                deadline = Instant(now + replica.election_timeout())
                return Resigned(replica, self._role.progress.successors(), deadline)
            case _:
                assert_never(transition)

    def _election_at(self, now: Instant) -> Instant:
        """Return until when to wait for a leader: as before, unless a new time is to be drawn."""
        role = self._role
        if isinstance(role, Unattached | Candidate | Resigned) or (
            isinstance(role, Prospective) and not role.was_rejected
        ):
            return role.election_at
        return Instant(now + self._replica.election_timeout())
