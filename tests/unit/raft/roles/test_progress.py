"""How far the replicas are."""

from riverlog.model.ids import NodeId, Offset
from riverlog.model.machine import Instant
from riverlog.raft.limits import OBSERVER_FORGOTTEN_SECONDS, OBSERVERS_MAX
from riverlog.raft.roles.progress import QuorumProgress
from riverlog.raft.voters import ReplicaKey
from tests.support.raft import directory, key, voters

NOW = Instant(50.0)


def progress(*nodes: int) -> QuorumProgress:
    return QuorumProgress(key(1), voters(*nodes))


def fetched(quorum: QuorumProgress, node: int, offset: int, end: int = 10, now: float = NOW) -> None:
    quorum.fetched(key(node), Offset(offset), Offset(end), Instant(now))


def test_a_majority_counts_the_leader_if_it_votes() -> None:
    quorum = progress(1, 2, 3)
    assert quorum.majority_end(Offset(10)) == -1
    fetched(quorum, 2, 7)
    assert quorum.majority_end(Offset(10)) == 7
    assert quorum.majority_end(Offset(5)) == 5
    without = progress(2, 3)
    fetched(without, 2, 7)
    assert without.majority_end(Offset(10)) == -1
    assert progress(1).majority_end(Offset(4)) == 4


def test_observers_do_not_count() -> None:
    quorum = progress(1, 2, 3)
    fetched(quorum, 4, 10)
    fetched(quorum, 5, 10)
    quorum.fetched(ReplicaKey(NodeId(2), directory(9)), Offset(10), Offset(10), NOW)
    assert quorum.majority_end(Offset(10)) == -1
    assert len(quorum.observers) == 3


def test_a_majority_is_heard_again_and_again() -> None:
    quorum = progress(1, 2, 3, 4, 5)
    assert [quorum.hears_majority(key(node)) for node in (2, 2, 9, 3, 4)] == [False, False, False, True, False]


def test_a_new_voter_was_an_observer_before() -> None:
    quorum = progress(1, 2)
    fetched(quorum, 3, 10)
    assert quorum.is_caught_up(key(3), NOW)
    quorum.change(voters(1, 3))
    assert quorum.voters[NodeId(3)].end == 10
    assert set(quorum.observers) == {key(2)}


def test_who_was_at_the_end_at_the_fetch_before_was_caught_up() -> None:
    quorum = progress(1, 2)
    fetched(quorum, 3, 5, end=10, now=1.0)
    assert not quorum.is_caught_up(key(3), Instant(1.0))
    fetched(quorum, 3, 10, end=20, now=2.0)
    assert quorum.is_caught_up(key(3), Instant(2.0))
    assert quorum.observers[key(3)].caught_up_at == 1.0
    assert not quorum.is_caught_up(key(3), Instant(5000.0))


def test_observers_that_are_gone_are_forgotten() -> None:
    quorum = progress(1, 2)
    fetched(quorum, 8, 1, now=0.0)
    fetched(quorum, 9, 1, now=OBSERVER_FORGOTTEN_SECONDS + 1)
    assert set(quorum.observers) == {key(9)}
    for node in range(100, 100 + OBSERVERS_MAX + 5):
        fetched(quorum, node, 1, now=OBSERVER_FORGOTTEN_SECONDS + 2)
    assert len(quorum.observers) <= OBSERVERS_MAX


def test_the_successor_has_the_longest_log() -> None:
    quorum = progress(1, 2, 3, 4)
    fetched(quorum, 2, 5)
    fetched(quorum, 3, 9)
    assert quorum.successors() == (key(3), key(2), key(4))
    assert quorum.silent_voters(NOW, 1.0) == [4]
