"""One Fetch at a time."""

from riverlog.model.ids import NodeId
from riverlog.model.machine import Instant
from riverlog.raft.effects import Call
from riverlog.raft.roles.fetching import MetadataFetcher, fetch_request
from tests.support.raft import TIMING, address, key, replica, tail, voters

NOW = Instant(10.0)
LATER = Instant(NOW + TIMING.retry_backoff)


def test_a_fetch_says_how_far_the_log_is() -> None:
    request = fetch_request(replica(log=tail(1, 2)))
    assert (request.replica, request.offset, request.last_epoch, request.high_watermark) == (key(1), 2, 2, -1)


def test_one_request_is_under_way_at_a_time() -> None:
    node = replica()
    fetcher = MetadataFetcher(node, NOW, knows_leader=True)
    assert fetcher.deadline == NOW
    fetcher.fetch(address(2), NodeId(2), NOW)
    fetcher.fetch(address(2), NodeId(2), NOW)
    [call] = node.effects
    assert isinstance(call, Call)
    assert fetcher.deadline is None
    fetcher.ended(call.number + 1, NOW)
    assert fetcher.is_under_way(call.number)
    fetcher.succeeded()
    assert fetcher.deadline == NOW


def test_after_a_failure_somebody_else_is_asked_once() -> None:
    node = replica()
    fetcher = MetadataFetcher(node, NOW, knows_leader=True)
    fetcher.fetch(address(2), NodeId(2), NOW)
    fetcher.ended(1, NOW, elsewhere=True)
    fetcher.fetch(address(2), NodeId(2), NOW)
    assert len(node.effects) == 1, "not at once"
    fetcher.fetch(address(2), NodeId(2), LATER)
    assert node.effects[-1].node is None  # type: ignore[union-attr]
    fetcher.ended(2, LATER, elsewhere=True)
    assert fetcher.deadline is not None
    fetcher.fetch(address(2), NodeId(2), Instant(LATER + TIMING.retry_backoff))
    assert node.effects[-1].node == 2, "nobody who was asked knows better"  # type: ignore[union-attr]


def test_who_knows_nobody_does_not_ask() -> None:
    node = replica(quorum=voters(1))
    node.bootstrap = ()
    fetcher = MetadataFetcher(node, NOW, knows_leader=False)
    fetcher.ask_anybody(NOW)
    assert node.effects == []
    assert fetcher.deadline is None
