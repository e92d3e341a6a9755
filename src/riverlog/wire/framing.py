"""Bytes in, whole frames out.

A frame is an int32 length and that many bytes. `FrameBuffer` owns the memory a socket receives into and cuts
frames out of it in place: no copy on the way. The views it gives are valid until the next call to `room()`.
The buffer grows with what has arrived, never with what a length field claims, and a length outside the
bound is refused before a byte behind it is kept.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from riverlog.model.limits import RECEIVE_BUFFER_BYTES

LENGTH: Final = Struct(">i")
LENGTH_BYTES: Final = 4


class FrameRefused(Exception):
    """The peer announced a frame that no honest peer sends; the connection cannot go on."""


class FrameBuffer:
    """Memory for one direction of one connection."""

    __slots__ = ("_buffer", "_end", "_start", "_view", "frame_bytes_max")

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self._buffer = bytearray(RECEIVE_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._start = 0  # first byte not yet given out; _start <= _end <= len(_buffer)
        self._end = 0

    def room(self) -> memoryview:
        """Give free memory to receive into; ends the life of all views given so far."""
        if self._start == self._end:
            self._start = self._end = 0
        elif self._end == len(self._buffer) or self._start > len(self._buffer) // 2:
            self._make_room()
        return self._view[self._end :]

    def received(self, count: int) -> None:
        """Note that `count` bytes now stand at the front of the room last given."""
        self._end += count
        assert self._end <= len(self._buffer)

    def frames(self) -> Iterator[memoryview]:
        """Give each whole frame, without its length; raise FrameRefused at a length out of bounds."""
        while self._end - self._start >= LENGTH_BYTES:
            (length,) = LENGTH.unpack_from(self._buffer, self._start)
            if not 0 < length <= self.frame_bytes_max:
                raise FrameRefused(
                    f"a frame of {length} bytes was announced; the limit is {self.frame_bytes_max}, "
                    f"set by socket.request.max.bytes"
                )
            begin = self._start + LENGTH_BYTES
            if self._end - begin < length:
                return
            self._start = begin + length
            yield self._view[begin : begin + length]

    @property
    def waiting(self) -> int:
        """Tell how many bytes have arrived that belong to no whole frame yet given out."""
        return self._end - self._start

    def rest(self) -> None:
        """Give back memory that a past large frame needed; for connections that have gone quiet."""
        if len(self._buffer) > RECEIVE_BUFFER_BYTES and self.waiting < RECEIVE_BUFFER_BYTES // 2:
            self._replace(RECEIVE_BUFFER_BYTES)

    def _make_room(self) -> None:
        """Bring the unfinished frame to the front; only if it has filled this buffer, into a larger one."""
        wanted = self._unfinished_frame_bytes()
        if self._end == len(self._buffer) and wanted > len(self._buffer):
            self._replace(min(2 * len(self._buffer), wanted + RECEIVE_BUFFER_BYTES))
            return
        assert self._start > 0, "whole frames wait to be taken"
        kept = self._end - self._start
        self._view[:kept] = bytes(self._view[self._start : self._end])
        self._start, self._end = 0, kept

    def _replace(self, size: int) -> None:
        kept = self._view[self._start : self._end]
        assert size > len(kept)
        fresh = bytearray(size)
        fresh[: len(kept)] = kept
        self._buffer = fresh
        self._view = memoryview(fresh)
        self._start, self._end = 0, len(kept)

    def _unfinished_frame_bytes(self) -> int:
        """Say how large the unfinished frame will be, as far as its own length field tells."""
        if self._end - self._start < LENGTH_BYTES:
            return LENGTH_BYTES
        (length,) = LENGTH.unpack_from(self._buffer, self._start)
        return int(length) + LENGTH_BYTES
