"""A Raft machine in a test's hands: events in, effects out, with a quorum of three unless said otherwise."""

from random import Random
from typing import Any, Final, TypeVar
from uuid import UUID

from riverlog.model.endpoints import Endpoint
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_OFFSET, Address, LeaderEpoch, NodeId, Offset
from riverlog.model.machine import Instant, Ticket
from riverlog.raft.effects import Answer, Call, Effect
from riverlog.raft.election import ElectionState
from riverlog.raft.events import Answered, Asked, CallFailed, Event, Flushed, Woken
from riverlog.raft.log_tail import LogTail
from riverlog.raft.machine import Raft
from riverlog.raft.messages import (
    FetchedBatch,
    FetchedBatches,
    FetchRequest,
    FetchResponse,
    Leadership,
    Request,
    Response,
    VoteRequest,
    VoteResponse,
)
from riverlog.raft.replica import Replica, Timing
from riverlog.raft.voters import LogHistory, ReplicaKey, Voter, VoterSet

LISTENER: Final = "CONTROLLER"
TIMING: Final = Timing()
E = TypeVar("E")


def directory(node: int) -> UUID:
    return UUID(int=1000 + node)


def key(node: int) -> ReplicaKey:
    return ReplicaKey(NodeId(node), directory(node))


def endpoints(node: int) -> tuple[Endpoint, ...]:
    return (Endpoint(LISTENER, f"c{node}", 9093),)


def address(node: int) -> Address:
    return Address(f"c{node}", 9093)


def voter(node: int) -> Voter:
    return Voter(key(node), endpoints(node))


def voters(*nodes: int) -> VoterSet:
    return VoterSet.of(voter(node) for node in nodes)


def tail(*epochs: int) -> LogTail:
    """Return a log with one record in each of these epochs."""
    log = LogTail()
    for epoch in epochs:
        log.append(LeaderEpoch(epoch), 1)
    log.synced(log.end, log.generation)
    return log


def replica(
    node: int = 1,
    *,
    quorum: VoterSet | None = None,
    log: LogTail | None = None,
    election: ElectionState | None = None,
    may_vote: bool = True,
    auto_join: bool = False,
    kraft_version: int = 1,
) -> Replica:
    return Replica(
        key=key(node),
        endpoints=endpoints(node),
        listener=LISTENER,
        log=log or tail(),
        voters=LogHistory(quorum or voters(1, 2, 3)),
        kraft_version=LogHistory(kraft_version),
        election=election or ElectionState(),
        bootstrap=[address(each) for each in (1, 2, 3)],
        timing=TIMING,
        random=Random(7),
        may_vote=may_vote,
        auto_join=auto_join,
    )


class Rig:
    """One machine, its clock, and what it wanted done last."""

    def __init__(self, node: int = 1, **wanted: Any) -> None:
        self.now = Instant(100.0)
        self.raft = Raft(replica(node, **wanted), self.now)
        self.effects: list[Effect] = self.raft.start(self.now)
        self._tickets = 0

    @property
    def role(self) -> str:
        return self.raft.role.name

    @property
    def replica(self) -> Replica:
        return self.raft.replica

    def on(self, event: Event) -> list[Effect]:
        """Hand an event over; return the effects."""
        self.effects = self.raft.on(event, self.now)
        return self.effects

    def wait(self, seconds: float) -> list[Effect]:
        """Let time pass, waking the machine as it wants; return all effects."""
        until, effects = Instant(self.now + seconds), list[Effect]()
        while (due := self.raft.deadline) is not None and due <= until:
            self.now = max(self.now, due)
            effects += self.on(Woken())
        self.now = until
        self.effects = effects
        return effects

    def ask(self, request: Request) -> Any:
        """Ask the machine; return its response, or None where it waits."""
        self._tickets += 1
        ticket = Ticket(self._tickets)
        self.on(Asked(ticket, request))
        return next((each.response for each in self.only(Answer) if each.ticket == ticket), None)

    def only(self, kind: type[E]) -> list[E]:
        """Return the last effects of one kind."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def calls(self, kind: type[E]) -> list[Call]:
        """Return the last calls with one kind of request."""
        return [call for call in self.only(Call) if isinstance(call.request, kind)]

    def answer(self, call: Call, response: Response | Any) -> list[Effect]:
        return self.on(Answered(call.number, response))

    def fail(self, call: Call, *, unsupported: bool = False, refused: bool = False) -> list[Effect]:
        return self.on(CallFailed(call.number, unsupported, refused))

    def flush(self) -> list[Effect]:
        """Say that all of the log is on the medium."""
        log = self.replica.log
        return self.on(Flushed(log.end, log.generation))

    def leadership(
        self, error: ErrorCode = ErrorCode.NONE, epoch: int | None = None, leader: int | None = None
    ) -> Leadership:
        at = None if leader is None else address(leader)
        known = self.raft.epoch if epoch is None else LeaderEpoch(epoch)
        return Leadership(error, known, None if leader is None else NodeId(leader), at)

    def grant(self) -> list[Effect]:
        """Let everybody who was asked say yes, until nobody is asked any more."""
        asked = self.calls(VoteRequest)
        while asked and self.role in ("Prospective", "Candidate"):
            self.answer(asked.pop(0), VoteResponse(self.leadership(), True))
            asked = self.calls(VoteRequest) or asked
        return self.effects

    def elect(self) -> "Rig":
        """Make the machine the leader, with the first record of its epoch committed by node 2."""
        while self.role not in ("Prospective", "Candidate", "Leader"):
            self.wait(0.1)
        self.grant()
        assert self.role == "Leader"
        self.flush()
        self.fetch(2)
        return self

    def fetch(self, node: int, offset: int | None = None, **changed: Any) -> FetchResponse | None:
        """Fetch as another node; from the end of the log, unless said otherwise."""
        log = self.replica.log
        request = {
            "replica": key(node),
            "epoch": self.raft.epoch,
            "offset": log.end if offset is None else Offset(offset),
            "last_epoch": log.last_epoch,
            "high_watermark": NO_OFFSET,
            "wait_seconds": 0.0,
            "bytes_max": 1024,
            **changed,
        }
        response = self.ask(FetchRequest(**request))
        assert response is None or isinstance(response, FetchResponse)
        return response

    def follow(self, leader: int, epoch: int) -> Call:
        """Make the machine a follower; return its first Fetch."""
        calls = self.calls(FetchRequest) or [call for call in self.wait(1.0) if isinstance(call, Call)]
        self.answer(calls[-1], FetchResponse(self.leadership(ErrorCode.NOT_LEADER_OR_FOLLOWER, epoch, leader)))
        assert self.role == "Follower"
        return self.calls(FetchRequest)[0]


def batches(base: int, *epochs: int) -> FetchedBatches:
    """Return one batch of one record for each epoch."""
    return FetchedBatches(
        tuple(FetchedBatch(Offset(base + place), 1, LeaderEpoch(epoch)) for place, epoch in enumerate(epochs)), object()
    )
