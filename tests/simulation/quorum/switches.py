"""The rules of Raft, each of which can be switched off: the simulated quorum must notice.

Where chance would take long, a scenario notices: a quorum in which one thing alone is wrong.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest import mock

from riverlog.model.errors import InvariantBroken
from riverlog.raft.effects import SaveElection
from riverlog.raft.log_tail import LogTail
from riverlog.raft.replica import Replica
from riverlog.raft.roles.follower import Follower
from riverlog.raft.roles.leader import Leader
from riverlog.raft.roles.nominee import Prospective
from riverlog.raft.roles.progress import QuorumProgress
from riverlog.raft.roles.voter_changes import VoterChanges
from riverlog.raft.transitions import Campaign
from riverlog.raft.voters import ReplicaKey
from tests.simulation.quorum.hosts import Host
from tests.simulation.quorum.run import QuorumRun
from tests.simulation.quorum.scenarios import (
    cut_off_one_way,
    lonely_leader,
    record_of_an_earlier_epoch,
    two_removals_at_once,
    wiped_follower,
)

SEEDS: Final = 400
HARD: Final = ("crash", "cut", "isolate", "pause", "slow disk")
"""The faults that find most."""


@dataclass(frozen=True)
class Switch:
    """A rule that can be switched off, and what finds that out."""

    name: str
    off: Callable[[], AbstractContextManager[Any]]
    faults: tuple[str, ...] | None = HARD
    voters: int | None = 3
    scenario: Callable[[int], list[str]] | None = None


def noticed(switch: Switch, seeds: int = SEEDS) -> str | None:
    """Switch the rule off until something fails; say what, or None."""
    with switch.off():
        for seed in range(seeds):
            try:
                if switch.scenario is not None:
                    violations = switch.scenario(seed)
                else:
                    violations = QuorumRun(seed, only=switch.faults, voters=switch.voters).run().violations
            except (AssertionError, InvariantBroken) as error:
                return f"seed {seed}: {type(error).__name__} {error}"
            if violations:
                return f"seed {seed}: {violations[0]}"
    return None


@contextmanager
def _votes_are_not_durable() -> Iterator[None]:
    """Let effects go on before the state of an election is on the medium."""
    begin = Host._begin

    def carelessly(host: Host, effect: Any) -> None:
        if not isinstance(effect, SaveElection):
            return begin(host, effect)
        life, disk = host.life, host.disk

        def written() -> None:
            if host.life == life and effect.election >= disk.election[:1]:
                disk.election = effect.election

        return host.cluster.after(host.disk_seconds, written)

    with mock.patch.object(Host, "_begin", carelessly):
        yield


def _patched(owner: type, name: str, value: Any) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: mock.patch.object(owner, name, value)


def _is_never_held_up(self: VoterChanges, ticket: object, committed: object, now: object) -> bool:
    self._pending = None
    return False


def _count_whatever_is_there(self: Leader) -> None:
    reached = self.progress.majority_end(self._replica.log.flushed)
    if reached > self.committed:
        self.committed = reached
        self._replica.commit(reached)
        self._changes.committed(reached)
        self._serve_parked()


def _campaign_at_once(self: Prospective, now: object) -> Campaign:
    return Campaign()


SWITCHES: Final = (
    Switch(
        "a vote is on the medium before it is given", _votes_are_not_durable, ("crash", "slow disk", "isolate", "cut")
    ),
    Switch(
        "records of earlier epochs are committed only with one of the leader's own",
        _patched(Leader, "_count", _count_whatever_is_there),
        scenario=record_of_an_earlier_epoch,
    ),
    Switch("a follower flushes before it fetches again", _patched(Follower, "_may_fetch", property(lambda _: True))),
    Switch(
        "a leader counts of its own copy what is flushed",
        _patched(LogTail, "flushed", property(lambda self: self.end, lambda _self, _value: None)),
    ),
    Switch("a vote goes only to a log that has all", _patched(LogTail, "is_at_least", lambda *_: True)),
    Switch("a leader tells where logs part", _patched(LogTail, "compare", lambda *_: None)),
    Switch(
        "a majority is more than half",
        _patched(
            QuorumProgress, "majority", property(lambda self: max(1, (len(self.voters) + self._leader_votes) // 2))
        ),
    ),
    Switch(
        "voters change one at a time",
        _patched(VoterChanges, "_is_held_up", _is_never_held_up),
        scenario=two_removals_at_once,
    ),
    Switch(
        "a disk that was wiped does not vote",
        _patched(ReplicaKey, "is_met_by", lambda self, other: self.id == other.id),
        scenario=wiped_follower,
    ),
    Switch(
        "a node that is being removed still stands for election",
        _patched(Replica, "stands_for_election", property(lambda self: self.is_voter and not self.stopping)),
        ("crash", "cut", "isolate", "voters"),
        2,
    ),
    Switch(
        "a node asks before it begins an epoch",
        _patched(Prospective, "begin", _campaign_at_once),
        scenario=cut_off_one_way,
    ),
    Switch(
        "a leader that no majority hears resigns",
        _patched(Leader, "_next_check", lambda _self, now: now + 3600.0),
        scenario=lonely_leader,
    ),
)
