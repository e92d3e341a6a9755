"""One client's line: requests in, answers out in the same order.

Each turn takes what the socket has, does the ordered work of every whole frame in it, and sends all answers
that are ready with as few system calls as possible. Answers still to come keep their place in line. A peer that
sends faster than it reads, has used up its window of unanswered bytes, or needs memory that the node has not got, is
not read from until that has changed: TCP holds it.
"""

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from functools import partial

from riverlog.broker.limits import (
    ANSWER_BYTES_PER_CONNECTION_MAX,
    ANSWERS_IN_FLIGHT_PER_CONNECTION_MAX,
    CLOSING_SECONDS_MAX,
    HANDLING_SECONDS_PER_TURN_MAX,
    IDLE_SWEEP_SECONDS,
    REQUEST_BYTES_PER_SECOND_MIN,
    STALLED_FRAME_SECONDS,
)
from riverlog.broker.network.outbox import Outbox
from riverlog.broker.network.response_queue import ResponseQueue
from riverlog.broker.requests.context import Client, Hangup, memory_of
from riverlog.broker.requests.dispatch import Dispatcher, Promise, Unserved
from riverlog.broker.requests.memory import ConnectionMemory
from riverlog.model.limits import UNSENT_BYTES_PER_CONNECTION_MAX
from riverlog.model.ports import Clock, Socket
from riverlog.observe.stats import CloseReason
from riverlog.partitions.cold_reads import ColdReads
from riverlog.partitions.retry_later import RetryLater
from riverlog.partitions.turn import Turn
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.framing import FrameBuffer, FrameRefused


class _Phase(Enum):
    OPEN = auto()
    ENDING = auto()
    """Nothing more is read; the connection closes once all is answered."""
    CLOSED = auto()


_OPEN, _ENDING, _CLOSED = _Phase  # one look-up for all requests: in an enumeration it takes as long as a call


class Connection:
    """Reads, dispatches and answers for one socket until either side ends it."""

    __slots__ = (
        "__weakref__", "_closed", "_dispatch", "_dispatcher", "_due",
        "_failed", "_frames", "_heard_before", "_heard_bytes", "_heard_of_frame", "_held_back", "_loop", "_memory",
        "_now", "_outbox", "_phase", "_reading", "_responses", "_socket", "_stopped", "_suspected_grant", "_turn",
        "_turn_handled", "client", "last_heard",
    )  # fmt: skip

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
        closed: Callable[["Connection", CloseReason, str], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self.client = client
        self.last_heard = clock.monotonic()
        self._socket = socket
        self._dispatcher = dispatcher
        self._dispatch = dispatcher.dispatch
        self._now = clock.monotonic
        self._turn = turn
        self._closed = closed
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._memory = ConnectionMemory(
            client.memory,
            granted=self._watch_socket,
            give_back=self._give_back,
            give_up=self._give_up,
            look=self._look_at_frame,
        )
        self._frames = FrameBuffer(frame_bytes_max, self._memory)
        self._heard_bytes = 0
        self._heard_before = 0  # of these, at the last look for slow requests; then at the last look at a large frame
        self._heard_of_frame = 0
        self._suspected_grant = 0  # the loan of memory that was slowly used at that look
        self._turn_handled = -1  # the turn in which requests were last handled: their batches may not be written yet
        self._outbox = Outbox(socket, client.memory, cold_reads, self._unblocked)
        self._responses = ResponseQueue(client.memory.window_bytes_max, clock.monotonic)
        self._due = False  # answers are sent at the end of this turn
        self._stopped = (
            False  # an async handler is at work, or a request has to come again: nothing behind it may start
        )
        self._reading = False
        self._held_back = False  # the peer may not send: counted for those who watch the node
        self._phase: _Phase = _OPEN

    def start(self) -> None:
        """Begin to listen to the client."""
        self._watch_socket()

    @property
    def idle(self) -> bool:
        """Return whether nothing is under way, so that closing loses nothing."""
        return not self._responses.waiting and not self._outbox.parts

    def rest(self) -> None:
        """Release memory that only a busy connection needs."""
        if not self._memory.waits:
            self._frames.rest()

    def look_again(self) -> None:
        """Find out whether the peer is gone: a reset right behind some bytes is told only once, together with them."""
        if self._reading:
            self._receive()

    def keeps_others_waiting(self) -> bool:
        """Return whether others need the memory of a request that has hardly grown since this was last asked."""
        grown, self._heard_before = self._heard_bytes - self._heard_before, self._heard_bytes
        memory = self._memory
        slow = memory.in_demand and self._reading and grown < REQUEST_BYTES_PER_SECOND_MIN * IDLE_SWEEP_SECONDS
        suspected, self._suspected_grant = self._suspected_grant, memory.grants if slow else 0
        return slow and suspected == memory.grants

    def finish(self, reason: CloseReason) -> None:
        """Read no more, send the answers that are due soon, then close."""
        if self._phase is not _OPEN:
            return
        self._phase = _ENDING
        self._watch_socket()
        if self.idle:
            self.close(reason)
        else:
            self._loop.call_later(CLOSING_SECONDS_MAX, self.close, reason)

    def close(self, reason: CloseReason, detail: str = "") -> None:
        """Close at once; answers not yet sent are lost."""
        if self._phase is _CLOSED:
            return
        self._phase = _CLOSED
        self._socket.close()
        self._hold_back(False)
        self._memory.close()
        self._responses.abandon()
        self._outbox.clear()
        self._closed(self, reason, detail)

    # -- requests in

    def _receive(self) -> None:
        if self._turn_handled == self._turn.number:
            self._turn.end()  # what was received before must be written before it is overwritten
            if self._phase is _CLOSED:
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
            self.close(CloseReason.BROKEN, str(error))
            return
        if count == 0:
            self.finish(CloseReason.PEER)
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
            while self._phase is not _CLOSED:
                if goes_on:
                    all_done = self._answer_frames(now)
                if self._outbox.parts:
                    self._send()
                goes_on = not all_done and self._may_go_on()
                if not goes_on:
                    break
                now = self._now()
        except (FrameRefused, MalformedMessage, Unserved) as refused:
            self.close(CloseReason.MALFORMED, str(refused))
        except Hangup as wish:
            self.close(CloseReason.UNANSWERED, str(wish))
        except Exception as bug:
            self.fail(bug)
        else:
            if not all_done or not self._reading or self._memory.bytes:
                self._watch_socket()  # else all is as it was

    def _answer_frames(self, started: float) -> bool:
        """Answer whole frames in order; stop early, with False, when the line or the unsent bytes are full, or after a
        while."""
        received = self.last_heard
        latest = started + HANDLING_SECONDS_PER_TURN_MAX
        responses = self._responses
        self._turn_handled = self._turn.number
        while (frame := self._frames.next_frame()) is not None:
            try:
                stats, pending = self._dispatch(frame, self.client)
            except RetryLater as retry:
                self._frames.put_back(frame)
                self._stopped = True
                retry.until.add_done_callback(self._come_again)
                return False
            except (MalformedMessage, Unserved, Hangup):
                raise
            except Exception as bug:  # not ours to judge: the server decides what a bug means for the node
                self._failed(bug)
                try:
                    stats, pending = self._dispatcher.answer_bug(frame, self.client)
                except Hangup as unanswerable:
                    self.close(CloseReason.BROKEN, str(unanswerable))
                    return False
            handled = self._now()
            if pending is None:
                stats.answered(received, started, handled, handled, handled)
            else:
                pending.stats = stats
                pending.received = received
                pending.started = started
                pending.handled = handled
                responses.append(pending, len(frame))
                if pending.parts is not None:
                    responses.move_ready(self._outbox)
                    if responses.waiting:
                        responses.hold(pending, memory_of(pending.parts))
                else:
                    pending.owner = self
                    if pending.answer_bytes_max:
                        responses.hold(pending, pending.answer_bytes_max)
                    if isinstance(pending, Promise):
                        self._await(pending)
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
        if self._phase is not _CLOSED:
            self._stopped = False
            self._work(self._now())

    def _come_again(self, until: "asyncio.Future[None]") -> None:
        """Do the request that could not be done yet."""
        bug = None if until.cancelled() else until.exception()
        if self._phase is _CLOSED:
            return
        self._stopped = False
        if bug is None:
            self._work(self._now())
        else:
            self.fail(bug)

    def _may_go_on(self) -> bool:
        """Return whether the next request may start: everything that a client can pile up is bounded here."""
        responses = self._responses
        return (
            not self._stopped
            and self._phase is not _ENDING
            and len(responses.waiting) < ANSWERS_IN_FLIGHT_PER_CONNECTION_MAX
            and self._outbox.unsent_bytes <= UNSENT_BYTES_PER_CONNECTION_MAX
            and responses.held_bytes <= ANSWER_BYTES_PER_CONNECTION_MAX
            and responses.window > 0
        )

    # -- answers out

    def response_ready(self) -> None:
        """Send what is due at the end of the turn: one flush keeps many promises, and all go out at once."""
        if not self._due and self._phase is not _CLOSED:
            self._due = True
            self._turn.send(self._work_due)

    def _await(self, promise: Promise) -> None:
        self._stopped = promise.holds_line
        promise.awaited.add_done_callback(partial(self._take_promised, promise))

    def _take_promised(self, promise: Promise, _done: object) -> None:
        """Take the answer that was promised; it and those behind it may now be due."""
        if self._phase is _CLOSED:
            return
        try:
            promise.parts = promise.encode()
        except Hangup as wish:
            self.close(CloseReason.UNANSWERED, str(wish))
            return
        except (Exception, asyncio.CancelledError) as bug:
            self._failed(bug)
            try:
                promise.parts = promise.answer_bug()
            except Hangup as unanswerable:
                self.close(CloseReason.BROKEN, str(unanswerable))
                return
        if promise.holds_line:
            self._stopped = False
        self._responses.hold(promise, memory_of(promise.parts))
        self.response_ready()

    def fail(self, bug: BaseException) -> None:
        """Close, after a mistake of our own that leaves a request without an answer."""
        self.close(CloseReason.BROKEN, "internal error")
        self._failed(bug)

    def _work_due(self) -> None:
        self._due = False
        if self._phase is _CLOSED:
            return
        try:
            if not self._reading:
                self._responses.move_ready(self._outbox)
                self._work(self._now())
                return
            responses = self._responses
            if self._outbox.parts or not responses.waiting or not responses.send_small(self._socket):
                responses.move_ready(self._outbox)
                self._send()
            if self._outbox.parts or self._phase is _ENDING or self._memory.bytes:
                self._watch_socket()
        except Exception as bug:
            self.fail(bug)

    def _send(self) -> None:
        """Send what the socket takes; what all of it answers is answered then."""
        try:
            self._outbox.send()
        except OSError as error:
            self.close(CloseReason.BROKEN, str(error))
        if not self._outbox.parts:
            self._responses.taken()

    def _unblocked(self) -> None:
        self.last_heard = now = self._now()  # who takes its answers, however slowly, is not idle
        self._work(now)

    # -- the socket

    def _watch_socket(self) -> None:
        """Read on exactly while requests may start; close once a line that is ending is empty."""
        if self._phase is _CLOSED:
            return
        if self._phase is _ENDING and self.idle:
            self.close(CloseReason.PEER)
            return
        memory = self._memory
        if memory.bytes and memory.pool.short:
            self._give_back()
        reading = self._may_go_on() and not memory.waits
        if reading is not self._reading:
            self._reading = reading
            self._socket.on_readable(self._receive if reading else None)
            self._hold_back(not reading and self._phase is not _ENDING)

    def _give_back(self) -> None:
        """Release the memory of a request that is done; the next one queues for its own."""
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
        self.close(CloseReason.SLOW, "the memory of its unfinished request was the last that others could have")

    def _hold_back(self, held_back: bool) -> None:
        self.client.memory.stats.held_back += held_back - self._held_back
        self._held_back = held_back
