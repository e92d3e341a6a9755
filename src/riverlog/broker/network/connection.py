"""One client's line: requests in, answers out in the same order.

Each turn takes what the socket has, does the ordered work of every whole frame in it, and sends all answers
that are ready with as few system calls as possible. Answers still to come keep their place in line. A peer that
sends faster than it reads, has used up its window of unanswered bytes, or needs memory that the node has not got, is
not read from until that has changed: TCP holds it.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from riverlog.broker.limits import (
    ANSWER_BYTES_PER_CONNECTION_MAX,
    ANSWERS_IN_FLIGHT_PER_CONNECTION_MAX,
    CLOSING_SECONDS_MAX,
    HANDLING_SECONDS_PER_TURN_MAX,
    IDLE_SWEEP_SECONDS,
    REQUEST_BYTES_PER_SECOND_MIN,
    SEND_BYTES_PER_TURN_MAX,
    STALLED_FRAME_SECONDS,
)
from riverlog.broker.requests.context import Client, Hangup, Parts, Place, memory_of
from riverlog.broker.requests.dispatch import Dispatcher, Promise, Unserved
from riverlog.broker.requests.memory import Share
from riverlog.model.limits import UNSENT_BYTES_PER_CONNECTION_MAX
from riverlog.model.ports import Buffer, Clock, FileRange, Socket
from riverlog.observe.stats import Closed
from riverlog.partitions.cold_reads import ColdReads
from riverlog.partitions.not_yet import NotYet
from riverlog.partitions.turn import Turn
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.framing import FrameBuffer, FrameRefused

_JOIN_BYTES_MAX: Final = 128 * 1024  # copying this much costs less than another system call
_SMALL_BYTES_MAX: Final = 1024  # of an answer: a whole line of such is less than a socket takes


class Connection:
    """Reads, dispatches and answers for one socket until either side ends it."""

    __slots__ = (
        "__weakref__", "_blocked", "_closed", "_cold_reads", "_counted_bytes", "_dispatch", "_dispatcher", "_due",
        "_ending", "_failed", "_frames", "_heard_before", "_heard_bytes", "_heard_of_frame", "_held", "_held_back",
        "_held_bytes", "_line", "_loop", "_memory", "_now", "_open", "_out", "_out_bytes", "_reading", "_sending",
        "_socket", "_stopped", "_suspected_grant", "_tail", "_turn", "_turn_handled", "_window", "client", "last_heard",
    )  # fmt: skip
    # more than 30 attributes in a dictionary are slow to find

    def __init__(
        self,
        socket: Socket,
        client: Client,
        dispatcher: Dispatcher,
        clock: Clock,
        turn: Turn,
        cold_reads: ColdReads,
        *,
        frame_bytes_max: int,
        closed: Callable[["Connection", Closed, str], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self.client = client
        self.last_heard = clock.monotonic()
        self._socket = socket
        self._dispatcher = dispatcher
        self._dispatch = dispatcher.dispatch
        self._now = clock.monotonic
        self._turn = turn
        self._cold_reads = cold_reads
        self._closed = closed
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._memory = Share(
            client.memory,
            granted=self._watch_socket,
            give_back=self._give_back,
            give_up=self._give_up,
            look=self._look_at_frame,
        )
        self._frames = FrameBuffer(frame_bytes_max, self._memory)
        self._window = client.memory.window_bytes_max  # bytes that may still arrive before others are answered
        self._heard_bytes = 0
        self._heard_before = 0  # of these, at the last look for slow requests; then at the last look at a large frame
        self._heard_of_frame = 0
        self._suspected_grant = 0  # the loan of memory that was slowly used at that look
        self._line: deque[Place] = deque()  # answers that wait for themselves or for one before them
        self._turn_handled = -1  # the turn in which requests were last handled: their batches may not be written yet
        self._out: deque[Buffer | FileRange] = deque()  # bytes in the order in which they are sent
        self._tail: bytearray | None = None  # the last of _out while small answers are still joined to it
        self._out_bytes = 0  # memory held by _out; ranges of files hold none
        self._held: dict[Place, int] = {}  # of answers in line that are here, or may be large: their bytes in memory
        self._held_bytes = 0
        self._counted_bytes = 0  # of answers, counted for the node
        self._sending: list[Place] = []  # whose bytes are in _out
        self._due = False  # answers are sent at the end of this turn
        self._stopped = (
            False  # an async handler is at work, or a request has to come again: nothing behind it may start
        )
        self._reading = False
        self._held_back = False  # the peer may not send: counted for those who watch the node
        self._blocked = False  # the socket takes no more bytes until it says so
        self._ending = False  # nothing more will be read; close once all is answered
        self._open = True

    def start(self) -> None:
        """Begin to listen to the client."""
        self._watch_socket()

    @property
    def idle(self) -> bool:
        """Tell whether nothing is under way, so that closing loses nothing."""
        return not self._line and not self._out

    def rest(self) -> None:
        """Give back memory that only a busy connection needs."""
        if not self._memory.waits:
            self._frames.rest()

    def look_again(self) -> None:
        """Find out whether the peer is gone: a reset right behind some bytes is told only once, together with them."""
        if self._reading:
            self._receive()

    def keeps_others_waiting(self) -> bool:
        """Tell whether others need the memory of a request that has hardly grown since this was last asked."""
        grown, self._heard_before = self._heard_bytes - self._heard_before, self._heard_bytes
        memory = self._memory
        slow = memory.in_demand and self._reading and grown < REQUEST_BYTES_PER_SECOND_MIN * IDLE_SWEEP_SECONDS
        suspected, self._suspected_grant = self._suspected_grant, memory.grants if slow else 0
        return slow and suspected == memory.grants

    def finish(self, reason: Closed) -> None:
        """Read no more, send the answers that are due soon, then close."""
        if self._ending or not self._open:
            return
        self._ending = True
        self._watch_socket()
        if self.idle:
            self.close(reason)
        else:
            self._loop.call_later(CLOSING_SECONDS_MAX, self.close, reason)

    def close(self, reason: Closed, detail: str = "") -> None:
        """Close at once; answers not yet sent are lost."""
        if not self._open:
            return
        self._open = False
        self._socket.close()
        self._hold_back(False)
        self._memory.close()
        self._count_answers(0)
        for place in self._line:
            place.leave()
        self._line.clear()
        self._held.clear()
        self._out.clear()
        self._tail = None
        self._sending.clear()
        self._closed(self, reason, detail)

    # -- requests in

    def _receive(self) -> None:
        if self._turn_handled == self._turn.number:
            self._turn.end()  # what was received before must be written before it is overwritten
            if not self._open:
                return
        room = self._frames.room()
        if not room:
            self._watch_socket()
            return
        try:
            count = self._socket.receive_into(room)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.close(Closed.BROKEN, str(error))
            return
        if count == 0:
            self.finish(Closed.PEER)
            return
        self._frames.received(count)
        self._heard_bytes += count
        self.last_heard = now = self._now()
        self._work(now)

    def _work(self, now: float) -> None:
        """Do the ordered work of the frames that are here and send what is ready, until one of them must wait."""
        all_done = False
        goes_on = self._reading or self._may_go_on()
        try:
            while self._open:
                if goes_on:
                    all_done = self._answer_frames(now)
                if self._out:
                    self._send()
                goes_on = not all_done and self._may_go_on()
                if not goes_on:
                    break
                now = self._now()
        except (FrameRefused, MalformedMessage, Unserved, Hangup) as refused:
            self.close(Closed.MALFORMED, str(refused))
        except Exception as bug:
            self.broken(bug)
        else:
            if not all_done or not self._reading or self._memory.bytes:
                self._watch_socket()  # else all is as it was

    def _answer_frames(self, started: float) -> bool:
        """Answer whole frames in order; stop early, with False, when the line or the unsent bytes are full, or after a
        while."""
        received = self.last_heard
        latest = started + HANDLING_SECONDS_PER_TURN_MAX
        self._turn_handled = self._turn.number
        while (frame := self._frames.next_frame()) is not None:
            try:
                stats, place = self._dispatch(frame, self.client)
            except NotYet as not_yet:
                self._frames.put_back(frame)
                self._stopped = True
                not_yet.until.add_done_callback(self._come_again)
                return False
            except (MalformedMessage, Unserved, Hangup):
                raise
            except Exception as bug:  # not ours to judge: the server decides what a bug means for the node
                self._failed(bug)
                try:
                    stats, place = self._dispatcher.answer_bug(frame, self.client)
                except Hangup as unanswerable:
                    self.close(Closed.BROKEN, str(unanswerable))
                    return False
            handled = self._now()
            if place is None:
                stats.answered(received, started, handled, handled, handled)
            else:
                place.stats = stats
                place.size = len(frame)
                place.received = received
                place.started = started
                place.handled = handled
                self._window -= place.size
                self._line.append(place)
                if place.parts is not None:
                    self._put_due()
                    if self._line:
                        self._hold(place, memory_of(place.parts))
                else:
                    place.line = self
                    if place.answer_bytes_max:
                        self._hold(place, place.answer_bytes_max)
                    if isinstance(place, Promise):
                        self._await(place)
            if not self._may_go_on():
                return False
            if handled > latest:
                self._rest_a_turn()
                return False
            started = handled
        return True

    def _rest_a_turn(self) -> None:
        """Start the next request only after the others had their turn."""
        self._stopped = True
        self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        if self._open:
            self._stopped = False
            self._work(self._now())

    def _come_again(self, until: "asyncio.Future[None]") -> None:
        """Do the request that could not be done yet."""
        bug = None if until.cancelled() else until.exception()
        if not self._open:
            return
        self._stopped = False
        if bug is None:
            self._work(self._now())
        else:
            self.broken(bug)

    def _may_go_on(self) -> bool:
        """Tell whether the next request may start: everything that a client can pile up is bounded here."""
        return (
            not self._stopped
            and not self._ending
            and len(self._line) < ANSWERS_IN_FLIGHT_PER_CONNECTION_MAX
            and self._out_bytes <= UNSENT_BYTES_PER_CONNECTION_MAX
            and self._held_bytes <= ANSWER_BYTES_PER_CONNECTION_MAX
            and self._window > 0
        )

    # -- answers out

    def kept(self) -> None:
        """Send what is due at the end of the turn: one flush keeps many promises, and all go out at once."""
        if not self._due and self._open:
            self._due = True
            self._turn.send(self._work_due)

    def _await(self, promise: Promise) -> None:
        self._stopped = promise.holds_line
        promise.awaited.add_done_callback(partial(self._take_promised, promise))

    def _take_promised(self, promise: Promise, _done: object) -> None:
        """Take the answer that was promised; it and those behind it may now be due."""
        if not self._open:
            return
        try:
            promise.parts = promise.encode()
        except Hangup as wish:
            self.close(Closed.MALFORMED, str(wish))
            return
        except (Exception, asyncio.CancelledError) as bug:
            self._failed(bug)
            try:
                promise.parts = promise.answer_bug()
            except Hangup as unanswerable:
                self.close(Closed.BROKEN, str(unanswerable))
                return
        if promise.holds_line:
            self._stopped = False
        self._hold(promise, memory_of(promise.parts))
        self.kept()

    def broken(self, bug: BaseException) -> None:
        """Close, after a mistake of our own that leaves a request without an answer."""
        self.close(Closed.BROKEN, "internal error")
        self._failed(bug)

    def _work_due(self) -> None:
        self._due = False
        if not self._open:
            return
        try:
            if not self._reading:
                self._put_due()
                self._work(self._now())
                return
            if self._out or not self._line or not self._send_small():
                self._put_due()
                self._send()
            if self._out or self._ending or self._memory.bytes:
                self._watch_socket()
        except Exception as bug:
            self.broken(bug)

    def _send_small(self) -> bool:
        """Send all answers in line at once: nearly always they are here and small. If not, all is still to do."""
        line = self._line
        answers: list[bytes] = []
        for place in line:
            parts = place.parts
            if not parts or type(answer := parts[0]) is not bytes or len(parts) > 1 or len(answer) > _SMALL_BYTES_MAX:
                return False
            answers.append(answer)
        joined = answers[0] if len(answers) == 1 else b"".join(answers)
        ready = self._now()
        try:
            sent = self._socket.send(joined)
        except OSError:
            return False  # it will be met again, and dealt with
        if sent != len(joined):
            for place in line:
                place.parts = []
            line[0].parts = [joined[sent:]]
            return False
        now = self._now()
        for place in line:
            self._window += place.size
            place.stats.answered(place.received, place.started, place.handled, ready, now)
        line.clear()
        if self._held:
            self._held.clear()
            self._held_bytes = 0
        return True

    def _put_due(self) -> None:
        """Queue the bytes of all answers that have no one missing before them."""
        line = self._line
        ready = self._now()
        while line and (parts := line[0].parts) is not None:
            place = line.popleft()
            place.ready = ready
            self._put(parts)
            if self._held:
                self._held_bytes -= self._held.pop(place, 0)
            self._sending.append(place)

    def _hold(self, place: Place, count: int) -> None:
        """Count the memory of an answer that stands in line."""
        self._held_bytes += count - self._held.get(place, 0)
        self._held[place] = count

    def _put(self, parts: Parts) -> None:
        """Queue an answer's bytes; small ones are joined: a copy is cheaper than another call to the system."""
        for part in parts:
            if isinstance(part, FileRange):
                self._out.append(part)
                self._tail = None
                continue
            if self._tail is not None and len(self._tail) + len(part) <= _JOIN_BYTES_MAX:
                self._tail += part
            else:
                self._tail = bytearray(part) if len(part) < _JOIN_BYTES_MAX else None
                self._out.append(part if self._tail is None else self._tail)
            self._out_bytes += len(part)

    def _send(self) -> None:
        """Send until all is sent, the socket is full, or others deserve a turn."""
        self._tail = None
        budget = SEND_BYTES_PER_TURN_MAX
        try:
            while self._out and not self._blocked:
                first = self._out[0]
                budget -= self._send_range(first) if isinstance(first, FileRange) else self._send_buffer(first)
                if budget <= 0 and self._out:
                    self._block()
        except (BlockingIOError, InterruptedError):
            self._block()
        except OSError as error:
            self.close(Closed.BROKEN, str(error))
        if not self._out and self._sending:
            now = self._now()
            for place in self._sending:
                self._window += place.size
                place.stats.answered(place.received, place.started, place.handled, place.ready, now)
            self._sending.clear()

    def _send_buffer(self, first: Buffer) -> int:
        sent = self._socket.send(first, more=len(self._out) > 1)
        self._out_bytes -= sent
        if sent == len(first):
            self._out.popleft()
        else:
            self._out[0] = memoryview(first)[sent:]
        return sent

    def _send_range(self, first: FileRange) -> int:
        file, position, size = first
        part = FileRange(file, position, min(size, SEND_BYTES_PER_TURN_MAX))
        if not file.is_cached(position, part.size) and (until := self._cold_reads.begin(part)) is not None:
            self._count_blocked()
            until.add_done_callback(self._unblock)
            return 0
        sent = self._socket.send_file(*part)
        if sent == 0:
            raise OSError(f"{file.path} ends before the range that was promised")
        if sent == size:
            self._out.popleft()
        else:
            self._out[0] = FileRange(file, position + sent, size - sent)
        return sent

    # -- the socket

    def _block(self) -> None:
        self._count_blocked()
        self._socket.on_writable(self._unblock)

    def _count_blocked(self) -> None:
        self._blocked = True
        self._count_answers(self._out_bytes)

    def _unblock(self, _read: object = None) -> None:
        if not self._open:
            return
        self._blocked = False
        self._count_answers(0)
        self._socket.on_writable(None)
        self.last_heard = now = self._now()  # who takes its answers, however slowly, is not idle
        self._work(now)

    def _count_answers(self, count: int) -> None:
        """Count, for the node, the bytes of answers that the peer has not taken."""
        self.client.memory.answer_bytes += count - self._counted_bytes
        self._counted_bytes = count

    def _watch_socket(self) -> None:
        """Read on exactly while requests may start; close once a line that is ending is empty."""
        if not self._open:
            return
        if self._ending and self.idle:
            self.close(Closed.PEER)
            return
        memory = self._memory
        if memory.bytes and memory.pool.short:
            self._give_back()
        reading = self._may_go_on() and not memory.waits
        if reading is not self._reading:
            self._reading = reading
            self._socket.on_readable(self._receive if reading else None)
            self._hold_back(not reading and not self._ending)

    def _give_back(self) -> None:
        """Let others have the memory of a request that is done; the next one waits its turn."""
        if self._frames.between_frames:
            self.rest()

    def _look_at_frame(self) -> None:
        """Take back the memory of a frame that does not come as fast as it must while others wait."""
        grown, self._heard_of_frame = self._heard_bytes - self._heard_of_frame, self._heard_bytes
        if grown < REQUEST_BYTES_PER_SECOND_MIN * STALLED_FRAME_SECONDS:
            self._memory.stalled = True
            self._frames.rest()

    def _give_up(self) -> None:
        """Sacrifice this connection for the others."""
        self.close(Closed.SLOW, "the memory of its unfinished request was the last that others could have")

    def _hold_back(self, held_back: bool) -> None:
        self.client.memory.stats.held_back += held_back - self._held_back
        self._held_back = held_back
