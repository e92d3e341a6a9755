"""A simulated quorum: hosts, links between them, and one heap of events in virtual time.

A link loses nothing silently: a message that cannot go through fails the call it belongs to, soon (nobody listens) or
after the request's time-out (the link is cut).
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any, Final
from uuid import UUID

from riverlog.model.ids import NodeId
from riverlog.raft import events as hears
from riverlog.raft.effects import Call
from riverlog.raft.voters import ReplicaKey, Voter, VoterSet
from tests.simulation.quorum.hosts import TIMING, Disk, Host, endpoints_of
from tests.simulation.quorum.invariants import Checker

EVENTS_MAX: Final = 400_000
"""A run that needs more goes round in circles."""

_REFUSED: Final = 0.3
"""How many of the calls that failed were refused, as far as their caller can tell; some of them wrongly."""


class Cluster:
    """Voters and observers, and everything between them."""

    def __init__(
        self, seed: int, voters: int, observers: int, *, kraft_version: int = 1, auto_join: bool = False
    ) -> None:
        self.seed = seed
        self.now = 0.0
        self.kraft_version = kraft_version
        self.auto_join = auto_join
        self.hosts: dict[NodeId, Host] = {}
        self.checker = Checker(self.hosts, lambda: self.now)
        self.cuts: set[tuple[NodeId, NodeId]] = set()
        """Directions in which nothing goes through."""
        self.latency = 0.001
        self.batches_max = 4
        """Entries that a Fetch is answered with."""
        self.events = 0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._random = Random(f"{seed} net")
        self._directories = Random(f"{seed} directories")
        self._calls: dict[tuple[NodeId, int], int] = {}
        """Calls under way, by caller and number, with the caller's life."""
        self._last: dict[tuple[NodeId, NodeId], float] = {}
        """When the last message of each direction arrives: they stay in order."""
        keys = [ReplicaKey(NodeId(node), self.new_directory()) for node in range(1, voters + 1)]
        initial = VoterSet.of(Voter(key, endpoints_of(key.id)) for key in keys)
        if kraft_version == 0:
            initial = VoterSet.of(Voter(ReplicaKey(key.id), endpoints_of(key.id)) for key in keys)
        self.bootstrap = [key.id for key in keys]
        for key in keys:
            assert key.directory_id is not None
            self.hosts[key.id] = Host(self, key.id, Disk(key.directory_id), initial, may_vote=True)
        for node in range(voters + 1, voters + observers + 1):
            key = ReplicaKey(NodeId(node), self.new_directory())
            assert key.directory_id is not None
            known = initial if kraft_version == 0 else VoterSet()
            self.hosts[key.id] = Host(self, key.id, Disk(key.directory_id), known, may_vote=node % 2 == 0)

    def new_directory(self) -> UUID:
        return UUID(int=self._directories.getrandbits(128), version=4)

    # -- time

    def at(self, instant: float, work: Callable[[], None]) -> None:
        heappush(self._heap, (instant, next(self._order), work))

    def after(self, seconds: float, work: Callable[[], None]) -> None:
        self.at(self.now + seconds, work)

    def run(self, until: float) -> None:
        """Let time pass."""
        while self._heap and self._heap[0][0] <= until and not self.checker.violations:
            self.now, _, work = heappop(self._heap)
            self.events += 1
            assert self.events < EVENTS_MAX, "the quorum goes round in circles"
            work()
        self.now = max(self.now, until)

    def run_until(self, holds: Callable[[], bool], until: float) -> bool:
        """Let time pass until something is so, and not an event longer; return whether it came."""
        while not holds() and self._heap and self._heap[0][0] <= until and not self.checker.violations:
            self.run(self._heap[0][0])
        return holds()

    # -- messages

    def call(self, source: NodeId, call: Call) -> None:
        """Carry a request to where its address leads."""
        target = NodeId(int(call.address.host.removeprefix("host-")))
        life = self.hosts[source].life
        self._calls[source, call.number] = life
        self.after(TIMING.request_timeout, lambda: self._fail(source, call.number, life))
        if (source, target) not in self.cuts:
            self._deliver(source, target, lambda: self._arrive(source, target, call, life))

    def respond(self, source: NodeId, target: int, number: int, response: Any) -> None:
        """Carry a response back."""
        caller = NodeId(target)
        life = self._calls.get((caller, number))
        if life is not None and (source, caller) not in self.cuts:
            self._deliver(source, caller, lambda: self._return(caller, number, life, response))

    def answer_lost(self, target: int, number: int) -> None:
        """Let a caller notice that its connection broke."""
        caller = NodeId(target)
        life = self._calls.get((caller, number))
        if life is not None:
            self.after(self._delay(), lambda: self._fail(caller, number, life))

    def reset(self, node: NodeId) -> None:
        """Break all connections of a host."""
        for caller, number in list(self._calls):
            if caller == node:
                life = self._calls[caller, number]
                self.after(self._delay(), lambda number=number, life=life: self._fail(node, number, life))

    def _arrive(self, source: NodeId, target: NodeId, call: Call, life: int) -> None:
        host = self.hosts[target]
        if self._calls.get((source, call.number)) != life:
            return
        if host.running is None:
            self.answer_lost(source, call.number)
        elif (source, target) not in self.cuts:
            host.asked(source, call.number, call.request)

    def _return(self, caller: NodeId, number: int, life: int, response: Any) -> None:
        if self._calls.get((caller, number)) == life and self.hosts[caller].life == life:
            del self._calls[caller, number]
            self.hosts[caller].hear(hears.Answered(number, response))

    def _fail(self, caller: NodeId, number: int, life: int) -> None:
        if self._calls.get((caller, number)) == life:
            del self._calls[caller, number]
            if self.hosts[caller].life == life:
                # Now and then a refusal is wrong: whoever answers it is not the node that was meant.
                refused = self._random.random() < _REFUSED
                self.hosts[caller].hear(hears.CallFailed(number, refused=refused))

    def _deliver(self, source: NodeId, target: NodeId, work: Callable[[], None]) -> None:
        arrives = max(self.now + self._delay(), self._last.get((source, target), 0.0))
        self._last[source, target] = arrives
        self.at(arrives, work)

    def _delay(self) -> float:
        return self.latency * (0.5 + self._random.random())
