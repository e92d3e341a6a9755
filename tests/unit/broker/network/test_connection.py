"""A connection's promises: order, bounds, few calls, a clean end."""

import asyncio
import gc
import weakref
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from riverlog.broker.limits import (
    ANSWER_BYTES_PER_CONNECTION_MAX,
    ANSWERS_IN_FLIGHT_PER_CONNECTION_MAX,
    HANDLING_SECONDS_PER_TURN_MAX,
)
from riverlog.broker.network.connection import Connection
from riverlog.broker.requests.context import Client, Hangup, PendingResponse
from riverlog.broker.requests.dispatch import Promise
from riverlog.broker.requests.memory import RequestMemory
from riverlog.model.access import Principal
from riverlog.model.limits import SENDFILE_BYTES_MIN, UNSENT_BYTES_PER_CONNECTION_MAX
from riverlog.model.ports import FileRange
from riverlog.observe.stats import CloseReason, ConnectionStats, RequestStats
from riverlog.partitions.cold_reads import ColdReads
from riverlog.partitions.recovery import Recovering
from riverlog.partitions.turn import Turn
from tests.support.sockets import PuppetSocket
from tests.support.world import PatientWorkers

MEMORY = 1 << 24
WINDOW = 1 << 22


class StillClock:
    seconds = 1.0

    def monotonic(self) -> float:
        return self.seconds

    def wall_ms(self) -> int:
        return 1_000


class LaterEcho(Promise):
    """The promise of an answer that a test decides about."""

    def __init__(self, awaited: "asyncio.Future[Any]", holds_line: bool) -> None:
        self.parts = None
        self.awaited = awaited
        self.holds_line = holds_line
        self.answer_bytes_max = 0

    def encode(self) -> Any:
        return self.awaited.result()

    def answer_bug(self) -> Any:
        return [b"sorry"]


class Broker:
    """A dispatcher that obeys: `=x` answers x, `?` promises, `!` holds the line, and so on."""

    def __init__(self) -> None:
        self.stats = RequestStats("Test")
        self.promises: list[asyncio.Future[Any]] = []
        self.seen: list[bytes] = []
        self.big: Any = None
        self.answer_all = False
        self.recovered = False

    def dispatch(self, frame: memoryview, client: Client) -> tuple[Any, Any]:
        request = bytes(frame)
        self.seen.append(request)
        if self.answer_all:
            return self.stats, PendingResponse([b"."])
        match request[:1]:
            case b"=":
                return self.stats, PendingResponse([request[1:]])
            case b"?" | b"!":
                future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
                self.promises.append(future)
                return self.stats, LaterEcho(future, request[:1] == b"!")
            case b"0":
                return self.stats, None
            case b"B":
                return self.stats, PendingResponse([self.big])
            case b"R" if not self.recovered:
                self.promises.append(asyncio.get_running_loop().create_future())
                raise Recovering(self.promises[-1])
            case b"R":
                return self.stats, PendingResponse([request[1:]])
            case b"H":
                raise Hangup("not with acks=0")
            case _:
                raise ZeroDivisionError

    def answer_bug(self, frame: memoryview, client: Client) -> tuple[Any, Any]:
        if frame == b"bug":
            raise Hangup("no place for an error code")
        return self.stats, PendingResponse([b"sorry"])


class Line:
    """A connection between a puppet and an obedient broker."""

    def __init__(self, window: int = 1 << 30, memory: RequestMemory | None = None) -> None:
        self.socket = PuppetSocket(window)
        self.looks: list[Callable[[], None]] = []
        self.memory = memory or RequestMemory(
            MEMORY,
            window_bytes_max=WINDOW,
            stats=ConnectionStats(),
            later=lambda _seconds, look: self.looks.append(look),
        )
        self.broker = Broker()
        self.clock = StillClock()
        self.ended: list[CloseReason] = []
        self.bugs: list[BaseException] = []
        self.connection = Connection(
            self.socket,
            Client(Principal("x", "127.0.0.1"), "PLAINTEXT", self.memory),
            self.broker,  # type: ignore[arg-type]
            self.clock,
            Turn(),
            ColdReads(PatientWorkers(Random(0))),
            frame_bytes_max=1 << 24,
            closed=lambda _connection, reason, _detail: self.ended.append(reason),
            failed=self.bugs.append,
        )
        self.connection.start()

    def ask(self, *requests: bytes) -> None:
        self.socket.arrive(b"".join(len(request).to_bytes(4, "big") + request for request in requests))

    @property
    def sent(self) -> bytes:
        return bytes(self.socket.sent)


def on_loop(test: Callable[[Line], Any]) -> Callable[[], None]:
    """Run a test that needs a loop for its futures."""

    def run() -> None:
        async def body() -> None:
            await test(Line())

        asyncio.run(body())

    run.__name__ = test.__name__
    return run


class SlowBroker(Broker):
    """Takes its time for each request."""

    def __init__(self, clock: StillClock) -> None:
        super().__init__()
        self._clock = clock

    def dispatch(self, frame: memoryview, client: Client) -> tuple[Any, Any]:
        self._clock.seconds += HANDLING_SECONDS_PER_TURN_MAX / 4
        return super().dispatch(frame, client)


async def turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@on_loop
async def test_all_frames_of_a_turn_are_answered_with_one_send(line: Line) -> None:
    line.ask(b"=a", b"=b", b"=c")
    assert line.sent == b"abc"
    assert line.socket.sends == 1
    assert line.broker.stats.count == 3


@on_loop
async def test_a_request_for_a_partition_under_recovery_holds_the_line_until_it_can_be_done(line: Line) -> None:
    line.ask(b"=a", b"Rb", b"=c")
    assert line.sent == b"a"
    assert line.broker.seen == [b"=a", b"Rb"]
    line.broker.promises.pop().set_result(None)
    await turn()
    assert line.broker.seen == [b"=a", b"Rb", b"Rb"], "it was too early"
    line.broker.recovered = True
    line.broker.promises.pop().set_result(None)
    await turn()
    assert line.sent == b"abc"


@on_loop
async def test_a_line_that_ended_does_not_ask_again(line: Line) -> None:
    line.ask(b"Ra")
    line.connection.close(CloseReason.PEER)
    line.broker.promises.pop().set_result(None)
    await turn()
    assert line.broker.seen == [b"Ra"]


@on_loop
async def test_a_bug_while_a_request_waits_ends_the_line(line: Line) -> None:
    line.ask(b"Ra")
    line.broker.promises.pop().set_exception(ZeroDivisionError())
    await turn()
    assert line.broker.seen == [b"Ra"]
    assert [type(bug) for bug in line.bugs] == [ZeroDivisionError]
    assert line.ended == [CloseReason.BROKEN]


@on_loop
async def test_answers_keep_the_order_of_requests(line: Line) -> None:
    line.ask(b"?", b"=b", b"?", b"=d")
    assert line.sent == b""
    assert line.broker.seen == [b"?", b"=b", b"?", b"=d"]
    line.broker.promises[1].set_result([b"c"])
    await turn()
    assert line.sent == b""
    line.broker.promises[0].set_result([b"a"])
    await turn()
    assert line.sent == b"abcd"


@on_loop
async def test_an_async_handler_holds_the_line(line: Line) -> None:
    line.ask(b"!", b"=b")
    assert line.broker.seen == [b"!"]
    assert line.socket.readable is None
    line.broker.promises[0].set_result([b"a"])
    await turn()
    assert line.sent == b"ab"
    assert line.socket.readable is not None


@on_loop
async def test_no_answer_takes_no_place(line: Line) -> None:
    line.ask(b"0", b"=a")
    assert line.sent == b"a"
    assert line.broker.stats.count == 2


@on_loop
async def test_too_many_unanswered_requests_stop_the_reading(line: Line) -> None:
    line.ask(*[b"?"] * (ANSWERS_IN_FLIGHT_PER_CONNECTION_MAX + 5))
    assert len(line.broker.seen) == ANSWERS_IN_FLIGHT_PER_CONNECTION_MAX
    assert line.socket.readable is None
    line.broker.promises[0].set_result([b"a"])
    await turn()
    assert len(line.broker.seen) == ANSWERS_IN_FLIGHT_PER_CONNECTION_MAX + 1


@on_loop
async def test_a_peer_that_does_not_read_is_not_read_from(line: Line) -> None:
    line.socket.window = 0
    large = b"=" + b"x" * (UNSENT_BYTES_PER_CONNECTION_MAX // 2)
    line.ask(large, large, large, large, large)
    assert len(line.broker.seen) == 3
    assert line.socket.readable is None
    line.socket.take(1 << 30)
    assert len(line.broker.seen) == 5
    assert len(line.sent) == 5 * (len(large) - 1)
    assert line.socket.readable is not None


@on_loop
async def test_partial_sends_lose_and_repeat_nothing(line: Line) -> None:
    line.socket.window = 0
    line.ask(*[b"=%d," % number for number in range(200)])
    for _ in range(1_000):
        line.socket.take(1)
    assert line.sent == b"".join(b"%d," % number for number in range(200))


@pytest.mark.parametrize("answers", [[b"answer"], [b"an", b"swe", b"r"]])
@pytest.mark.parametrize("taken_at_once", range(len(b"answer") + 1))
def test_promised_answers_are_sent_whole_however_little_the_peer_takes(
    taken_at_once: int, answers: list[bytes]
) -> None:
    async def body() -> None:
        line = Line(window=taken_at_once)
        line.ask(*[b"?"] * len(answers))
        for promise, answer in zip(line.broker.promises, answers, strict=True):
            promise.set_result([answer])
        await turn()
        assert line.sent == b"answer"[:taken_at_once]
        assert line.broker.stats.count == (len(answers) if taken_at_once == len(b"answer") else 0)
        line.socket.take(100)
        assert line.sent == b"answer"
        assert line.broker.stats.count == len(answers)
        assert line.connection.idle

    asyncio.run(body())


@on_loop
async def test_promised_answers_of_a_turn_are_sent_at_once(line: Line) -> None:
    line.ask(b"?", b"?", b"?")
    for promise in line.broker.promises:
        promise.set_result([b"a"])
    await turn()
    assert (line.sent, line.socket.sends) == (b"aaa", 1)


@on_loop
async def test_an_empty_answer_between_others_is_an_answer(line: Line) -> None:
    line.ask(b"?", b"?", b"?")
    for promise, parts in zip(line.broker.promises, ([b"a"], [], [b"b"]), strict=True):
        promise.set_result(parts)
    await turn()
    assert (line.sent, line.broker.stats.count) == (b"ab", 3)


@on_loop
async def test_an_answer_that_cannot_be_sent_ends_the_connection(line: Line) -> None:
    def broken(_buffer: object, *, more: bool = False) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    line.ask(b"?")
    line.socket.send = broken  # type: ignore[method-assign]  # the one word that a puppet does not know
    line.broker.promises[0].set_result([b"answer"])
    await turn()
    assert line.ended == [CloseReason.BROKEN]
    assert line.broker.stats.count == 0


@pytest.mark.parametrize("size", [10, SENDFILE_BYTES_MIN - 1, SENDFILE_BYTES_MIN, SENDFILE_BYTES_MIN * 3])
def test_ranges_of_files_are_sent_whole_and_in_place(size: int) -> None:
    class Content:
        path = "x.log"
        data = bytes(number % 251 for number in range(size + 7))

        def read(self, position: int, count: int) -> bytes:
            return self.data[position : position + count]

        def is_cached(self, _position: int, _count: int) -> bool:
            return True

    async def body() -> None:
        line = Line(window=0)
        line.broker.big = FileRange(Content(), 7, size)  # type: ignore[arg-type]
        line.ask(b"=before", b"B", b"=after")
        while len(line.sent) < size + 11:
            line.socket.take(50_000)
        assert line.sent == b"before" + Content.data[7:] + b"after"

    asyncio.run(body())


@on_loop
async def test_after_the_peers_end_due_answers_are_still_sent(line: Line) -> None:
    line.ask(b"?")
    line.socket.end()
    assert not line.socket.closed
    line.broker.promises[0].set_result([b"a"])
    await turn()
    assert line.sent == b"a"
    assert line.ended == [CloseReason.PEER]


@on_loop
async def test_an_idle_connection_closes_with_its_peer(line: Line) -> None:
    line.socket.end()
    assert line.ended == [CloseReason.PEER]
    assert line.socket.closed


@on_loop
async def test_a_quiet_connection_finds_out_that_its_peer_is_gone(line: Line) -> None:
    line.socket.arrive(b"\x00\x00")
    line.connection.look_again()
    assert line.ended == []
    readable, line.socket.readable = line.socket.readable, None
    line.socket.end()  # and nobody is told
    line.socket.readable = readable
    line.connection.look_again()
    assert line.ended == [CloseReason.PEER]


@on_loop
async def test_a_lying_length_closes_the_connection(line: Line) -> None:
    line.socket.arrive(b"\x7f\xff\xff\xff")
    assert line.ended == [CloseReason.MALFORMED]


@on_loop
async def test_a_handler_may_hang_up(line: Line) -> None:
    line.ask(b"H")
    assert line.ended == [CloseReason.UNANSWERED]
    assert not line.bugs


@on_loop
async def test_a_bug_is_reported_and_answered(line: Line) -> None:
    line.ask(b"bug with an error code", b"=next")
    assert line.sent == b"sorrynext"
    assert not line.ended
    assert [type(bug) for bug in line.bugs] == [ZeroDivisionError]


@on_loop
async def test_a_bug_that_cannot_be_answered_ends_the_connection(line: Line) -> None:
    line.ask(b"=first", b"bug")
    assert line.ended == [CloseReason.BROKEN]
    assert [type(bug) for bug in line.bugs] == [ZeroDivisionError]


@on_loop
async def test_a_bug_in_a_promise_is_reported_and_answered(line: Line) -> None:
    line.ask(b"!", b"=next")
    line.broker.promises[0].set_exception(ZeroDivisionError())
    await turn()
    assert line.sent == b"sorrynext"
    assert [type(bug) for bug in line.bugs] == [ZeroDivisionError]


@on_loop
async def test_a_promise_that_is_given_up_by_mistake_is_answered(line: Line) -> None:
    line.ask(b"?", b"=next")
    line.broker.promises[0].cancel()
    await turn()
    assert line.sent == b"sorrynext"
    assert [type(bug) for bug in line.bugs] == [asyncio.CancelledError]


@on_loop
async def test_closing_cancels_what_nobody_waits_for(line: Line) -> None:
    line.ask(b"?")
    line.connection.close(CloseReason.IDLE)
    await turn()
    assert line.broker.promises[0].cancelled()
    assert line.sent == b""


@on_loop
async def test_unanswered_bytes_beyond_the_window_stop_the_reading(line: Line) -> None:
    half = b"?" + bytes(WINDOW // 2)
    line.ask(half, half, half)
    assert len(line.broker.seen) == 2
    assert line.socket.readable is None
    assert line.memory.stats.held_back == 1
    line.broker.promises[1].set_result([b"second"])
    await turn()
    assert len(line.broker.seen) == 2, "an answer that is not yet written gives nothing back"
    line.broker.promises[0].set_result([b"first"])
    await turn()
    line.ask()
    assert len(line.broker.seen) == 3
    assert line.socket.readable is not None
    assert line.memory.stats.held_back == 0


@on_loop
async def test_one_request_may_overdraw_an_idle_window(line: Line) -> None:
    line.ask(b"?" + bytes(WINDOW + 1_000), b"=next")
    assert len(line.broker.seen) == 1
    line.broker.promises[0].set_result([b"a"])
    await turn()
    line.ask()
    assert line.sent == b"anext"


@on_loop
async def test_the_window_is_whole_again_whatever_kind_of_answer_was_given(line: Line) -> None:
    for _ in range(5):
        line.ask(b"=" + bytes(WINDOW // 2), b"0" + bytes(WINDOW // 2), b"?" + bytes(WINDOW // 2))
        line.broker.promises[-1].set_result([b"a"])
        await turn()
    assert len(line.broker.seen) == 15
    assert line.socket.readable is not None


@on_loop
async def test_bytes_that_the_peer_does_not_take_keep_the_window_closed(line: Line) -> None:
    line.socket.window = 0
    line.broker.answer_all = True
    line.ask(bytes(WINDOW // 2), bytes(WINDOW // 2), b"=x")
    assert len(line.broker.seen) == 2
    line.socket.take(1 << 30)
    assert len(line.broker.seen) == 3


@on_loop
async def test_a_large_request_waits_for_memory_and_then_goes_on(line: Line) -> None:
    other = Line(memory=line.memory)
    large = b"\0\0" + bytes(7 * MEMORY // 8 - 10)
    line.broker.answer_all = other.broker.answer_all = True
    line.socket.arrive(len(large).to_bytes(4, "big") + large[:-1])
    other.socket.arrive(len(large).to_bytes(4, "big") + large[:-1])
    assert other.socket.readable is None
    assert other.memory.stats.held_back == 1
    line.socket.arrive(large[-1:])
    assert line.broker.seen == [large]
    assert other.socket.readable is not None, "what the first no longer needs is the second's"
    other.socket.arrive(large[-1:])
    assert other.broker.seen == [large]
    for ended in (line, other):
        ended.connection.close(CloseReason.IDLE)
    assert line.memory.stats.request_bytes == 0
    assert line.memory.stats.held_back == 0


@on_loop
async def test_an_idle_connection_holds_no_request_memory(line: Line) -> None:
    line.ask(b"=" + bytes(200_000))
    assert line.memory.stats.request_bytes > 200_000
    line.connection.rest()
    assert line.memory.stats.request_bytes == 0


@on_loop
async def test_only_a_slow_request_that_others_wait_for_is_a_nuisance(line: Line) -> None:
    large = b"\0\0" + bytes(7 * MEMORY // 8 - 10)
    frame = len(large).to_bytes(4, "big") + large
    line.socket.arrive(frame[:100_000])
    assert [line.connection.keeps_others_waiting() for _ in range(3)] == [False] * 3
    other = Line(memory=line.memory)
    other.socket.arrive(frame)
    assert not line.connection.keeps_others_waiting(), "it may just have begun"
    assert not other.connection.keeps_others_waiting()
    line.socket.arrive(frame[100_000:500_000])
    assert not line.connection.keeps_others_waiting(), "it is fast enough"
    line.socket.arrive(frame[500_000:500_001])
    assert not line.connection.keeps_others_waiting()
    line.socket.arrive(frame[500_001:500_002])
    assert line.connection.keeps_others_waiting()


@on_loop
async def test_what_a_closed_connection_held_is_free_at_once(line: Line) -> None:
    line.socket.arrive(WINDOW.to_bytes(4, "big") + bytes(WINDOW // 2))
    connection = weakref.ref(line.connection)
    line.connection.close(CloseReason.IDLE)
    gc.disable()
    try:
        del line.connection
        assert connection() is None
    finally:
        gc.enable()


@on_loop
async def test_answers_that_wait_behind_another_are_bounded(line: Line) -> None:
    line.broker.big = bytes(100_000)
    line.ask(b"?")
    line.ask(*[b"B"] * 200)
    taken = len(line.broker.seen) - 1
    assert ANSWER_BYTES_PER_CONNECTION_MAX < taken * 100_000 <= ANSWER_BYTES_PER_CONNECTION_MAX + 100_000
    assert line.socket.readable is None
    line.broker.promises[0].set_result([b"first"])
    await turn()
    assert line.sent == b"first" + bytes(200 * 100_000)
    assert line.connection._responses.held_bytes == 0
    assert line.connection.idle


@on_loop
async def test_answers_that_come_later_count_as_well(line: Line) -> None:
    line.ask(*[b"?"] * 100)
    for promise in line.broker.promises[1:]:
        promise.set_result([bytes(100_000)])
    await turn()
    line.ask(b"=one more", b"=and another")
    assert len(line.broker.seen) == 100 + 1
    line.broker.promises[0].set_result([b"first"])
    await turn()
    for _ in range(5):
        line.socket.take(1)
    assert line.sent.endswith(b"one moreand another")


@on_loop
async def test_whoever_takes_little_by_little_does_not_pile_up_more(line: Line) -> None:
    line.broker.big = bytes(UNSENT_BYTES_PER_CONNECTION_MAX + 1_000_000)
    line.socket.window = 0
    line.ask(*[b"B"] * 100)
    assert len(line.broker.seen) == 1
    for _ in range(100):
        line.socket.take(1_000)
    assert len(line.broker.seen) == 1
    assert line.memory.answer_bytes == len(line.broker.big) - 100_000
    line.connection.close(CloseReason.IDLE)
    assert line.memory.answer_bytes == 0


@on_loop
async def test_whoever_takes_answers_is_not_idle(line: Line) -> None:
    line.socket.window = 0
    line.ask(b"=answer")
    line.connection.last_heard = 0.0
    line.socket.take(1)
    assert line.connection.last_heard == StillClock().monotonic()


@on_loop
async def test_many_requests_that_take_long_leave_the_others_their_turn(line: Line) -> None:
    broker = SlowBroker(line.clock)
    line.connection._dispatch = broker.dispatch  # type: ignore[assignment]
    requests = [b"=%02d" % number for number in range(50)]
    line.ask(*requests)
    turns = 0
    while len(broker.seen) < len(requests):
        before = len(broker.seen)
        await asyncio.sleep(0)
        assert 0 < len(broker.seen) - before <= 5
        turns += 1
    await turn()
    assert turns >= 9
    assert line.sent == b"".join(request[1:] for request in requests)
    line.ask(b"=last")
    await turn()
    assert line.sent.endswith(b"last")


@on_loop
async def test_a_connection_that_ends_while_others_have_their_turn_is_left_alone(line: Line) -> None:
    broker = SlowBroker(line.clock)
    line.connection._dispatch = broker.dispatch  # type: ignore[assignment]
    line.ask(*[b"=a"] * 50)
    seen = len(broker.seen)
    line.connection.close(CloseReason.IDLE)
    await turn()
    assert len(broker.seen) == seen < 50
    assert not line.bugs
