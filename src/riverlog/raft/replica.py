"""What a replica of the metadata log has in every role: its log, its voters, its promises, and what is to be done.

A role decides; here stand the steps that several roles share, each of which keeps memory and effects together: whoever
remembers a vote also asks for it to be written.
"""

from collections.abc import Sequence
from typing import NamedTuple

from riverlog.model.endpoints import Endpoint
from riverlog.model.errors import ErrorCode, InvariantBroken
from riverlog.model.ids import NO_OFFSET, Address, LeaderEpoch, NodeId, Offset
from riverlog.model.machine import Ticket
from riverlog.model.ports import Random
from riverlog.raft.effects import Answer, Call, Committed, Effect, LeaderChanged, SaveElection
from riverlog.raft.election import ElectionState
from riverlog.raft.log_tail import LogTail
from riverlog.raft.messages import Leadership, Request, Response, VersionsRequest
from riverlog.raft.voters import LogHistory, ReplicaKey, Voter, VoterSet, address_on


class Timing(NamedTuple):
    """How long is waited for what, in seconds; the names are those of Kafka's `controller.quorum` settings."""

    election_timeout: float = 0.3
    """At least so long, and at random up to twice, passes before a voter without a leader stands for election."""
    fetch_timeout: float = 0.6
    """A follower that could not fetch for so long looks for another leader; a leader that so few have fetched from for
    half as long again resigns."""
    request_timeout: float = 1.0
    retry_backoff: float = 0.02
    election_backoff_max: float = 0.3
    fetch_wait: float = 0.15
    """How long a leader holds a Fetch back when it has nothing new."""


class Replica:
    """One node's share in the quorum."""

    __slots__ = (
        "auto_join",
        "bootstrap",
        "call_number",
        "effects",
        "election",
        "endpoints",
        "high_watermark",
        "installing",
        "key",
        "kraft_version",
        "leader_address",
        "listener",
        "log",
        "may_vote",
        "random",
        "stopping",
        "timing",
        "voters",
    )

    def __init__(
        self,
        *,
        key: ReplicaKey,
        endpoints: tuple[Endpoint, ...],
        listener: str,
        log: LogTail,
        voters: LogHistory[VoterSet],
        kraft_version: LogHistory[int],
        election: ElectionState,
        bootstrap: Sequence[Address],
        timing: Timing,
        random: Random,
        may_vote: bool,
        auto_join: bool = False,
    ) -> None:
        self.key = key
        self.endpoints = endpoints
        """Where this node listens for controllers; none if it is only a broker."""
        self.listener = listener
        """The listener on which controllers reach each other."""
        self.log = log
        self.voters = voters
        self.kraft_version = kraft_version
        self.election = election
        self.bootstrap = tuple(bootstrap)
        """The controllers that the settings name."""
        self.timing = timing
        self.random = random
        self.may_vote = may_vote
        """Whether this node is a controller: its log is flushed before it fetches, also while it is an observer."""
        self.auto_join = auto_join
        self.leader_address: Address | None = None
        self.high_watermark: Offset = NO_OFFSET
        """All records below are committed, as far as is known here."""
        self.installing = False
        """A snapshot is taking the place of the log: until then this node does not know who votes."""
        self.stopping = False
        """The node is about to stop: it votes for others, and begins no election."""
        self.effects: list[Effect] = []
        self.call_number = 0

    @property
    def epoch(self) -> LeaderEpoch:
        return self.election.epoch

    @property
    def leader_id(self) -> NodeId | None:
        return self.election.leader_id

    @property
    def is_voter(self) -> bool:
        return self.may_vote and self.voters.latest.includes(self.key)

    @property
    def stands_for_election(self) -> bool:
        """Return whether this node looks for another leader when it hears none.

        So does one that a record is about to remove: until that is committed nobody else may have a log that is as long
        (Ongaro's thesis, 4.2.2). Kafka's nodes do not, and two of them can wait for each other for ever.
        """
        if self.stopping or not self.may_vote:
            return False
        if self.voters.latest.includes(self.key):
            return True
        removed_at = self.voters.latest_offset
        return (
            removed_at is not None
            and removed_at >= self.high_watermark
            and self.voters.at(removed_at).includes(self.key)
        )

    @property
    def is_only_voter(self) -> bool:
        """Return whether this node needs nobody else to lead."""
        return self.is_voter and not self.stopping and len(self.voters.latest) == 1

    @property
    def as_voter(self) -> Voter:
        """Return the entry that the voters should have for this node."""
        return Voter(self.key, self.endpoints)

    @property
    def controllers(self) -> tuple[Address, ...]:
        """Return where other controllers may be: those of the settings, and the voters that are known."""
        own = address_on(self.endpoints, self.listener)
        voters = (address_on(voter.endpoints, self.listener) for voter in self.voters.latest)
        return tuple(dict.fromkeys(each for each in (*self.bootstrap, *voters) if each not in (own, None)))

    def leadership(self, error: ErrorCode = ErrorCode.NONE) -> Leadership:
        """Return what a response says of epoch and leader."""
        return Leadership(error, self.epoch, self.leader_id, self.leader_address)

    def election_timeout(self) -> float:
        """Draw how long to wait for a leader."""
        return self.timing.election_timeout * (1 + self.random.random())

    def emit(self, effect: Effect) -> None:
        self.effects.append(effect)

    def answer(self, ticket: Ticket, response: Response) -> None:
        self.emit(Answer(ticket, response))

    def call(self, address: Address, node: NodeId | None, request: Request | VersionsRequest) -> int:
        """Send a request; return the number by which its end will be told."""
        self.call_number += 1
        self.emit(Call(self.call_number, address, node, request))
        return self.call_number

    def call_voter(self, node: NodeId, request: Request) -> int | None:
        """Send a request to a voter; None where its address is not known."""
        address = self.voters.latest.address(node, self.listener)
        return None if address is None else self.call(address, node, request)

    def remember(self, election: ElectionState, address: Address | None = None) -> None:
        """Take over an epoch, a leader or a vote; no effect behind it is seen before it is on the medium."""
        known, self.election, self.leader_address = self.election, election, address
        if election == known:
            return
        assert election.epoch >= known.epoch, "epochs only grow"
        if election.epoch == known.epoch:
            assert known.leader_id in (None, election.leader_id), "an epoch has one leader"
            assert known.voted_for in (None, election.voted_for), "a replica votes once in an epoch"
        self.emit(SaveElection(election, self.kraft_version.latest))
        if (election.epoch, election.leader_id) != (known.epoch, known.leader_id):
            self.emit(LeaderChanged(election.epoch, election.leader_id))

    def vote(self, candidate: ReplicaKey) -> None:
        """Spend this epoch's vote on a candidate."""
        self.remember(self.election._replace(voted_for=candidate), self.leader_address)

    def commit(self, high_watermark: Offset) -> None:
        """Take over how far the log is committed; a leader that knows less does not take it back."""
        if high_watermark <= self.high_watermark:
            return
        assert high_watermark <= self.log.end, "nothing is committed that is not in the log"
        self.high_watermark = high_watermark
        self.emit(Committed(high_watermark))

    def note_voters(self, offset: Offset, voters: VoterSet) -> None:
        """Take over a set of voters as soon as it is in the log."""
        self.voters.append(offset, voters)

    def truncate(self, end: Offset) -> None:
        """Cut off what the leader does not have."""
        if end < self.high_watermark:
            raise InvariantBroken(
                f"the leader of epoch {self.epoch} wants the metadata log to end at {end}, "
                f"but records up to {self.high_watermark} are committed"
            )
        self.log.truncate(end)
        self.voters.truncate(end)
        self.kraft_version.truncate(end)
