"""Sessions of brokers."""

from riverlog.metadata.live import LiveBrokers
from riverlog.model.ids import NodeId
from riverlog.model.machine import Instant

ONE, TWO = NodeId(1), NodeId(2)


def test_a_session_ends_when_a_broker_is_silent() -> None:
    live = LiveBrokers()
    assert live.next_end() is None
    live.touch(ONE, Instant(0))
    live.touch(TWO, Instant(0), is_ours=True)
    assert live.next_end() == 3
    assert live.pop_ended(Instant(2.9)) is None
    assert live.pop_ended(Instant(3)) == TWO
    live.touch(ONE, Instant(4))
    assert live.is_live(ONE, Instant(12.9))
    assert not live.is_live(ONE, Instant(13))
    assert live.pop_ended(Instant(13)) == ONE
    assert not live.is_live(ONE, Instant(0))


def test_all_sessions_are_prolonged_when_nobody_could_be_heard() -> None:
    live = LiveBrokers()
    live.touch(ONE, Instant(0))
    live.excuse(5)
    assert live.pop_ended(Instant(13.9)) is None
    assert live.pop_ended(Instant(14)) == ONE


def test_the_slowest_broker_counts() -> None:
    live = LiveBrokers()
    assert live.lowest_offset([ONE]) is None
    live.touch(ONE, Instant(0)).metadata_offset = 7
    assert live.lowest_offset([ONE, TWO]) == 7
    assert live.touch(TWO, Instant(0)).metadata_offset == -1
    assert live.lowest_offset([ONE, TWO]) == -1
    live.forget(TWO)
    live.forget(TWO)
    assert live.session(TWO) is None
    assert live.lowest_offset([ONE, TWO]) == 7
