"""Bytes in, whole frames out.

A frame is an int32 length and that many bytes. `FrameBuffer` owns the memory a socket receives into and cuts
frames out of it in place: no copy on the way. The views it gives are valid until the next call to `room()`, unless
`leave()` gives the memory away with them.
The buffer starts small and grows with what has arrived, never with what a length field claims, and a length
outside the bound is refused before a byte behind it is kept. Who shares memory with others gives a `Lender`,
which may say no.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, Protocol

from riverlog.model.limits import RECEIVE_BUFFER_BYTES, RECEIVE_BUFFER_BYTES_MIN

LENGTH: Final = Struct(">i")
LENGTH_BYTES: Final = 4
(_HTTP,) = LENGTH.unpack(b"HTTP")  # how a web server begins an answer, read as a length of 1.2 GB


class FrameRefused(Exception):
    """The peer announced a frame that no honest peer sends; the connection cannot go on."""


class Lender(Protocol):
    """Whoever decides over memory beyond the smallest buffer."""

    def lend(self, size: int, *, step: int, frame: memoryview) -> bool:
        """Return whether the buffer may grow to `step` now and `size` in the end, for the frame that begins like this.

        A lender that doubts that the rest will come may think of the step alone, and is asked again for the next.
        """
        ...

    def lend_spare(self, size: int) -> bool:
        """The same, for convenience: where memory is short the buffer does without, and nobody need wait."""
        ...

    def returned(self, size: int) -> None:
        """Take note that the buffer has shrunk to `size`; the smallest size is no loan."""
        ...


class FrameBuffer:
    """Memory for one direction of one connection; without a lender it grows as its frames need."""

    __slots__ = ("_buffer", "_end", "_lender", "_start", "_view", "frame_bytes_max")

    def __init__(self, frame_bytes_max: int, lender: Lender | None = None) -> None:
        self.frame_bytes_max = frame_bytes_max
        self._lender = lender
        self._buffer = bytearray(RECEIVE_BUFFER_BYTES_MIN)
        self._view = memoryview(self._buffer)
        self._start = 0  # first byte not yet given out; _start <= _end <= len(_buffer)
        self._end = 0

    def room(self) -> memoryview:
        """Return free memory to receive into, none while no more is lent; all views returned so far end."""
        if self._start == self._end:
            self._start = self._end = 0
            return self._view
        if self._end == len(self._buffer) or self._start > len(self._buffer) // 2:
            self._make_room()
        return self._view[self._end :]

    def received(self, count: int) -> None:
        """Note that `count` bytes now stand at the front of the room last given."""
        self._end += count
        assert self._end <= len(self._buffer)

    def next_frame(self) -> memoryview | None:
        """Return the next frame if it is whole, without its length; raise FrameRefused at a length out of bounds."""
        begin = self._start + LENGTH_BYTES
        if self._end < begin:
            return None
        (length,) = LENGTH.unpack_from(self._buffer, self._start)
        if length == _HTTP:
            raise FrameRefused("it speaks HTTP")
        if not 0 < length <= self.frame_bytes_max:
            raise FrameRefused(
                f"a frame of {length} bytes was announced; the limit is {self.frame_bytes_max}, "
                f"set by socket.request.max.bytes"
            )
        stop = begin + length
        if self._end < stop:
            return None
        self._start = stop
        return self._view[begin:stop]

    def frames(self) -> Iterator[memoryview]:
        """Yield each whole frame that is there."""
        while (frame := self.next_frame()) is not None:
            yield frame

    def put_back(self, frame: memoryview) -> None:
        """Take the frame back that was given last: it will be given again."""
        self._start -= LENGTH_BYTES + len(frame)
        assert self._start >= 0

    def is_filled_by(self, count: int) -> bool:
        """Return whether so many bytes are most of this memory: worth more than a copy of them."""
        return 2 * count >= len(self._buffer)

    def leave(self) -> None:
        """Leave this memory to whoever holds views of it, and go on in other memory, as large."""
        self._replace(len(self._buffer))

    @property
    def missing(self) -> int:
        """Return how many bytes the unfinished frame still lacks, as far as its own length field tells."""
        return self._unfinished_frame_bytes() - self.waiting if self.waiting else 0

    @property
    def waiting(self) -> int:
        """Return how many bytes have arrived that belong to no whole frame yet given out."""
        return self._end - self._start

    @property
    def between_frames(self) -> bool:
        """Return whether a frame was given out since there was last room: what it needed is needed no more."""
        return self._start > 0 or self._end == 0

    def rest(self) -> None:
        """Release memory that no byte has arrived for: of a past large frame, or of one that does not come."""
        size = RECEIVE_BUFFER_BYTES_MIN
        if self.waiting > size // 2:
            size += self.waiting
        if size < len(self._buffer):
            self._replace(size)
        if self._lender is not None:
            self._lender.returned(len(self._buffer))

    def _make_room(self) -> None:
        """Bring the unfinished frame to the front; if the buffer was filled, into a larger one."""
        if self._end == len(self._buffer) and self._grow():
            return
        if self._start > 0:
            kept = self._end - self._start
            self._view[:kept] = bytes(self._view[self._start : self._end])
            self._start, self._end = 0, kept

    def _grow(self) -> bool:
        """Take a larger buffer where this one cannot hold the frame, or was too small for a busy peer.

        A large frame's buffer ends where the frame does: while memory is short, nothing is kept of the one behind it.
        """
        size = len(self._buffer)
        frame_bytes = self._unfinished_frame_bytes()
        assert self._end - self._start < frame_bytes, "whole frames wait to be taken"
        lender = self._lender
        if size < RECEIVE_BUFFER_BYTES >= frame_bytes and (lender is None or lender.lend_spare(RECEIVE_BUFFER_BYTES)):
            self._replace(RECEIVE_BUFFER_BYTES)
            return True
        if frame_bytes <= size or self._start > 0:
            return False  # moving what has arrived to the front makes room
        step = min(max(2 * size, RECEIVE_BUFFER_BYTES), frame_bytes)
        frame = self._view[LENGTH_BYTES : self._end]
        if lender is not None and not lender.lend(frame_bytes, step=step, frame=frame):
            return False
        self._replace(step)
        return True

    def _replace(self, size: int) -> None:
        kept = self._view[self._start : self._end]
        assert size > len(kept)
        fresh = bytearray(size)
        fresh[: len(kept)] = kept
        self._buffer = fresh
        self._view = memoryview(fresh)
        self._start, self._end = 0, len(kept)

    def _unfinished_frame_bytes(self) -> int:
        """Return how large the unfinished frame will be, as far as its own length field tells."""
        if self._end - self._start < LENGTH_BYTES:
            return LENGTH_BYTES
        (length,) = LENGTH.unpack_from(self._buffer, self._start)
        return int(length) + LENGTH_BYTES
