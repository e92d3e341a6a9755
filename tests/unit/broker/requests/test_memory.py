"""Request memory: who gets some, who waits, in which order, and that nobody waits for ever."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.broker.limits import (
    CONNECTION_WINDOW_BYTES_MIN,
    PASSING_REQUEST_PART,
    REQUEST_MEMORY_RESERVE_PART,
    STALLED_FRAME_SECONDS,
)
from riverlog.broker.requests.memory import ConnectionMemory, MemoryPool, RequestMemory
from riverlog.model.limits import RECEIVE_BUFFER_BYTES, RECEIVE_BUFFER_BYTES_MIN
from riverlog.observe.stats import ConnectionStats

UNIT = RECEIVE_BUFFER_BYTES + 1  # the smallest request that is no small one
PARTS = REQUEST_MEMORY_RESERVE_PART
PRODUCE = memoryview(b"\x00\x00\x00\x09")
FETCH = memoryview(b"\x00\x01\x00\x0c")


class Node:
    """A memory of eight units, one of them the reserve, and what its connections are told."""

    def __init__(self, bytes_max: int = PARTS * UNIT) -> None:
        self.stats = ConnectionStats()
        self.memory = RequestMemory(bytes_max, window_bytes_max=1 << 24, stats=self.stats, later=self.later)
        self.looks: list[Callable[[], None]] = []
        self.still: set[str] = set()  # whose frames do not grow
        self.granted: list[str] = []
        self.idle: set[str] = set()
        self.sent_away: list[str] = []

    def share(self, name: str) -> ConnectionMemory:
        def give_back() -> None:
            if name in self.idle:
                share.returned(RECEIVE_BUFFER_BYTES_MIN)

        def give_up() -> None:
            self.sent_away.append(name)
            share.close()

        def look() -> None:
            if name in self.still:
                share.stalled = True
                share.returned(UNIT // 2)

        share = ConnectionMemory(
            self.memory,
            granted=lambda: self.granted.append(name),
            give_back=give_back,
            give_up=give_up,
            look=look,
        )
        return share

    def later(self, seconds: float, look: Callable[[], None]) -> None:
        assert seconds == STALLED_FRAME_SECONDS
        self.looks.append(look)

    def let_time_pass(self) -> None:
        """Look once as often as was asked for so far."""
        looks, self.looks = self.looks, []
        for look in looks:
            look()


def test_memory_is_lent_up_to_the_bound_and_then_in_order() -> None:
    node = Node()
    first, second, third, fourth = map(node.share, "abcd")
    assert first.lend(4 * UNIT, step=4 * UNIT, frame=PRODUCE)
    assert second.lend(3 * UNIT, step=3 * UNIT, frame=PRODUCE)
    assert node.stats.request_bytes == 7 * UNIT
    assert not third.lend(2 * UNIT, step=2 * UNIT, frame=PRODUCE)
    assert not fourth.lend(UNIT, step=UNIT, frame=PRODUCE)
    second.returned(0)
    assert node.granted == ["c", "d"]
    assert node.stats.request_bytes == 7 * UNIT


def test_who_waits_gets_the_memory_of_frames_that_do_not_come() -> None:
    node = Node()
    dead, alive, third = map(node.share, ["dead", "alive", "third"])
    node.still.add("dead")
    assert dead.lend(5 * UNIT, step=UNIT, frame=PRODUCE)
    assert alive.lend(2 * UNIT, step=UNIT, frame=PRODUCE)
    assert node.looks == []
    assert not third.lend(4 * UNIT, step=UNIT, frame=PRODUCE)
    node.let_time_pass()
    assert node.granted == ["third"]
    assert alive.bytes == 2 * UNIT
    assert dead.bytes == UNIT // 2
    node.let_time_pass()
    assert node.looks == [], "nobody waits, so nobody looks"


def test_a_stalled_frame_gets_memory_as_its_bytes_come_until_it_is_whole() -> None:
    node = Node()
    dead, other = map(node.share, ["dead", "other"])
    node.still.add("dead")
    assert dead.lend(6 * UNIT, step=UNIT, frame=PRODUCE)
    assert not other.lend(5 * UNIT, step=UNIT, frame=PRODUCE)
    node.let_time_pass()
    assert dead.lend(6 * UNIT, step=UNIT, frame=PRODUCE)
    assert dead.bytes == UNIT
    other.returned(0)
    assert dead.lend(6 * UNIT, step=2 * UNIT, frame=PRODUCE)
    assert dead.bytes == 2 * UNIT
    dead.returned(0)
    assert dead.lend(6 * UNIT, step=UNIT, frame=PRODUCE)
    assert dead.bytes == 6 * UNIT


def test_half_of_many_frames_does_not_keep_one_of_them_from_its_end() -> None:
    node = Node()
    shares = {name: node.share(name) for name in "abcdefghijklmn"}
    for share in shares.values():
        share.stalled = True
    arrived = dict.fromkeys(shares, UNIT // 2)
    whole = set()
    for _ in range(20):
        for name, share in shares.items():
            if name not in node.sent_away and not share.waits:
                arrived[name] = max(arrived[name], share.bytes)
                if arrived[name] == 6 * UNIT:
                    whole.add(name)
                share.lend(6 * UNIT, step=min(2 * arrived[name], 6 * UNIT), frame=PRODUCE)
        node.let_time_pass()
    assert whole
    assert node.stats.request_bytes <= 2 * 8 * UNIT


def test_nobody_overtakes_even_if_there_is_enough_for_them() -> None:
    node = Node()
    first, second, third = map(node.share, "abc")
    assert first.lend(5 * UNIT, step=5 * UNIT, frame=PRODUCE)
    assert not second.lend(4 * UNIT, step=4 * UNIT, frame=PRODUCE)
    assert not third.lend(UNIT, step=UNIT, frame=PRODUCE)
    assert not node.memory.bulk.claim_spare(third, UNIT)
    first.returned(0)
    assert node.granted == ["b", "c"]


def test_small_requests_pass_a_large_one_that_does_not_fit_from_time_to_time() -> None:
    node = Node(PARTS * UNIT * PASSING_REQUEST_PART)
    pool = 7 * UNIT * PASSING_REQUEST_PART
    announced, large, small, smaller, other = map(node.share, ["announced", "large", "small", "smaller", "other"])
    assert announced.lend(pool // 2 + UNIT, step=UNIT, frame=PRODUCE)
    assert not large.lend(pool // 2, step=UNIT, frame=PRODUCE)
    assert not small.lend(7 * UNIT, step=UNIT, frame=PRODUCE)
    assert not other.lend(7 * UNIT + 1, step=UNIT, frame=PRODUCE)
    assert not smaller.lend(UNIT, step=UNIT, frame=PRODUCE)
    assert node.granted == []
    node.let_time_pass()
    assert node.granted == ["small", "smaller"]
    small.returned(0)
    announced.returned(0)
    assert node.granted[2:] == ["large", "other"]


def test_what_is_lent_once_is_not_asked_for_again() -> None:
    node = Node()
    share = node.share("a")
    assert share.lend(2 * UNIT, step=2 * UNIT, frame=PRODUCE)
    assert share.lend(UNIT, step=UNIT, frame=PRODUCE)
    assert share.lend_spare(UNIT)
    assert node.stats.request_bytes == 2 * UNIT


def test_small_and_other_requests_have_a_reserve() -> None:
    node = Node()
    greedy = node.share("greedy")
    assert greedy.lend(7 * UNIT, step=7 * UNIT, frame=PRODUCE)
    assert not node.share("another").lend(UNIT, step=UNIT, frame=PRODUCE)
    fetch, small = map(node.share, ["fetch", "small"])
    assert fetch.lend(UNIT, step=UNIT, frame=FETCH)
    fetch.close()
    assert small.lend(RECEIVE_BUFFER_BYTES, step=RECEIVE_BUFFER_BYTES, frame=PRODUCE)


def test_memory_that_is_not_needed_is_asked_back_before_anybody_waits() -> None:
    node = Node()
    quiet, busy, third = map(node.share, ["quiet", "busy", "third"])
    assert quiet.lend(3 * UNIT, step=3 * UNIT, frame=PRODUCE)
    assert busy.lend(4 * UNIT, step=4 * UNIT, frame=PRODUCE)
    node.idle.add("quiet")
    assert third.lend(2 * UNIT, step=2 * UNIT, frame=PRODUCE)
    assert quiet.bytes == 0


def test_a_request_larger_than_the_pool_has_it_alone() -> None:
    node = Node()
    small, huge = map(node.share, ["small", "huge"])
    assert small.lend(UNIT, step=UNIT, frame=PRODUCE)
    assert not huge.lend(100 * UNIT, step=100 * UNIT, frame=PRODUCE)
    small.returned(0)
    assert node.granted == ["huge"]
    assert not small.lend(UNIT, step=UNIT, frame=PRODUCE)
    huge.returned(0)
    assert node.granted == ["huge", "small"]


def test_those_who_hold_memory_and_need_more_do_not_wait_for_one_another() -> None:
    node = Node()
    first, second = map(node.share, "ab")
    assert first.lend(3 * UNIT, step=3 * UNIT, frame=PRODUCE)
    assert second.lend(4 * UNIT, step=4 * UNIT, frame=PRODUCE)
    assert not first.lend(6 * UNIT, step=6 * UNIT, frame=PRODUCE)
    assert not second.lend(
        6 * UNIT, step=6 * UNIT, frame=PRODUCE
    )  # now both wait: the first of them goes on, beyond the bound
    assert node.granted == ["a"]
    assert node.stats.request_bytes == 10 * UNIT
    first.returned(0)
    assert node.granted == ["a", "b"]
    assert node.stats.request_bytes == 6 * UNIT


def test_those_who_hold_memory_of_the_other_pool_do_not_either() -> None:
    node = Node()
    first, second = map(node.share, "ab")
    assert first.lend(7 * UNIT, step=7 * UNIT, frame=PRODUCE)
    assert second.lend(UNIT, step=UNIT, frame=FETCH)
    assert not first.lend(8 * UNIT, step=8 * UNIT, frame=FETCH)
    assert second.lend(
        2 * UNIT, step=2 * UNIT, frame=PRODUCE
    )  # all who hold memory there wait, so it may exceed the bound
    assert first.bytes == 8 * UNIT, "what the second gave up in return was enough for the first"


def test_beyond_one_frame_too_much_the_greediest_is_sent_away() -> None:
    node = Node()
    first, second, third = map(node.share, "abc")
    assert first.lend(3 * UNIT, step=3 * UNIT, frame=PRODUCE)
    assert second.lend(4 * UNIT, step=4 * UNIT, frame=PRODUCE)
    assert not first.lend(9 * UNIT, step=9 * UNIT, frame=PRODUCE)
    assert not second.lend(5 * UNIT, step=5 * UNIT, frame=PRODUCE)
    assert node.granted == ["a"]
    first.returned(8 * UNIT)  # its peer fell silent with most of the request sent
    assert not third.lend(UNIT, step=UNIT, frame=PRODUCE)
    assert not first.lend(9 * UNIT, step=9 * UNIT, frame=PRODUCE)  # now all wait, and the pool is overdrawn already
    assert node.sent_away == ["a"]
    assert node.granted == ["a", "b", "c"]


def test_who_leaves_waits_no_more_and_holds_nothing() -> None:
    node = Node()
    first, second, third = map(node.share, "abc")
    assert first.lend(7 * UNIT, step=7 * UNIT, frame=PRODUCE)
    assert not second.lend(7 * UNIT, step=7 * UNIT, frame=PRODUCE)
    assert not third.lend(UNIT, step=UNIT, frame=PRODUCE)
    second.close()
    first.close()
    assert node.granted == ["c"]
    third.close()
    assert node.stats.request_bytes == 0


def test_the_window_is_a_fair_share_while_anybody_waits() -> None:
    node = Node(PARTS * 4 * UNIT)
    first, second = map(node.share, "ab")
    assert first.lend(28 * UNIT, step=28 * UNIT, frame=PRODUCE)
    assert node.memory.window_bytes == 1 << 24
    second.lend(UNIT, step=UNIT, frame=PRODUCE)
    assert node.memory.window_bytes == 14 * UNIT
    for number in range(100):
        node.share(str(number)).lend(UNIT, step=UNIT, frame=PRODUCE)
    assert node.memory.window_bytes == CONNECTION_WINDOW_BYTES_MIN


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_happens_the_bound_holds_and_all_finish(data: st.DataObject) -> None:
    """Connections ask for more, finish, shrink and leave in any order; then the active ones finish one by one."""
    node = Node()
    shares = [node.share(str(number)) for number in range(6)]
    pools = (node.memory.bulk, node.memory.reserve)
    frame_bytes_max = 9 * UNIT

    def check() -> None:
        for pool in pools:
            assert pool.used == sum(share.bytes for share in shares if share.pool is pool)
            assert pool.used <= pool.bytes_max + frame_bytes_max
            assert not pool.crowded or any(not share.waits for share in _holders(pool, shares))
        assert node.stats.request_bytes == sum(pool.used for pool in pools)

    for _ in range(data.draw(st.integers(0, 40))):
        slot = data.draw(st.integers(0, len(shares) - 1))
        share = shares[slot]
        step = data.draw(st.sampled_from(["lend", "finish", "shrink", "leave"]))
        if step == "leave":
            share.close()
            shares[slot] = node.share(str(slot))  # who has left does not come back; another one may
        elif share.waits:
            continue
        elif step == "lend":
            size = data.draw(st.integers(1, frame_bytes_max))
            share.stalled = data.draw(st.booleans())
            share.lend(size, step=data.draw(st.integers(1, size)), frame=data.draw(st.sampled_from([PRODUCE, FETCH])))
        elif step == "finish":
            share.returned(0)
        elif share.bytes:
            share.returned(data.draw(st.integers(0, share.bytes)))
        check()
    while any(share.waits for share in shares):
        active = [share for share in shares if share.bytes and not share.waits]
        assert active, "all wait for one another"
        active[0].returned(0)
        check()
    for share in shares:
        share.returned(0)
    assert node.stats.request_bytes == 0


def _holders(pool: MemoryPool, shares: list[ConnectionMemory]) -> list[ConnectionMemory]:
    return [share for share in shares if share.bytes and share.pool is pool]
