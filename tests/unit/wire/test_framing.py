"""Frames come out whole, whatever way the bytes arrive, and a length field alone costs nothing."""

from struct import pack

import pytest

from riverlog.model.limits import RECEIVE_BUFFER_BYTES, RECEIVE_BUFFER_BYTES_MIN
from riverlog.wire.framing import FrameBuffer, FrameRefused

FRAME_BYTES_MAX = 1_000_000


def frame(content: bytes) -> bytes:
    return pack(">i", len(content)) + content


def feed(buffer: FrameBuffer, data: bytes) -> list[bytes]:
    """Receive as a socket would, as much at a time as there is room; take the frames after each time."""
    frames = []
    while data:
        room = buffer.room()
        assert len(room) > 0
        count = min(len(room), len(data))
        room[:count] = data[:count]
        buffer.received(count)
        data = data[count:]
        frames += [bytes(view) for view in buffer.frames()]
    return frames


def memory(buffer: FrameBuffer) -> int:
    return buffer.waiting + len(buffer.room())


def test_frames_that_arrive_together_come_out_one_by_one() -> None:
    buffer = FrameBuffer(FRAME_BYTES_MAX)
    assert feed(buffer, frame(b"one") + frame(b"two") + frame(b"three")) == [b"one", b"two", b"three"]
    assert buffer.waiting == 0


def test_a_frame_cut_at_every_place_comes_out_whole() -> None:
    stream = frame(b"first") + frame(b"second")
    for cut in range(len(stream) + 1):
        buffer = FrameBuffer(FRAME_BYTES_MAX)
        assert feed(buffer, stream[:cut]) + feed(buffer, stream[cut:]) == [b"first", b"second"]


def test_byte_by_byte() -> None:
    buffer = FrameBuffer(FRAME_BYTES_MAX)
    stream = frame(b"slow") + frame(b"x")
    assert [got for byte in stream for got in feed(buffer, bytes([byte]))] == [b"slow", b"x"]


def test_frames_are_views_of_one_memory_and_writable() -> None:
    buffer = FrameBuffer(FRAME_BYTES_MAX)
    room = buffer.room()
    room[:9] = frame(b"batch")
    buffer.received(9)
    (view,) = buffer.frames()
    view[0:1] = b"B"
    assert bytes(room[4:9]) == b"Batch"


@pytest.mark.parametrize("length", [FRAME_BYTES_MAX + 1, 2**31 - 1, 0, -1, -(2**31)])
def test_a_length_out_of_bounds_is_refused_before_a_byte_behind_it_is_kept(length: int) -> None:
    buffer = FrameBuffer(FRAME_BYTES_MAX)
    with pytest.raises(FrameRefused, match=f"a frame of {length} bytes"):
        feed(buffer, pack(">i", length))


def test_the_largest_frame_is_taken() -> None:
    buffer = FrameBuffer(FRAME_BYTES_MAX)
    content = bytes(range(256)) * (FRAME_BYTES_MAX // 256)
    assert feed(buffer, frame(content) + frame(b"next")) == [content, b"next"]


def test_memory_grows_with_what_arrived_not_with_what_was_claimed() -> None:
    buffer = FrameBuffer(FRAME_BYTES_MAX)
    feed(buffer, pack(">i", FRAME_BYTES_MAX))
    assert memory(buffer) == RECEIVE_BUFFER_BYTES_MIN
    arrived = 4
    while arrived < FRAME_BYTES_MAX:
        feed(buffer, bytes(10_000))
        arrived += 10_000
        assert memory(buffer) <= max(RECEIVE_BUFFER_BYTES, 2 * arrived)


def test_a_claim_behind_taken_frames_does_not_grow_the_buffer() -> None:
    buffer = FrameBuffer(FRAME_BYTES_MAX)
    feed(buffer, frame(bytes(RECEIVE_BUFFER_BYTES // 2)) + pack(">i", FRAME_BYTES_MAX))
    assert memory(buffer) == RECEIVE_BUFFER_BYTES


def test_many_frames_through_a_small_buffer() -> None:
    buffer = FrameBuffer(FRAME_BYTES_MAX)
    contents = [bytes([number % 256]) * (1 + number * 37 % 20_000) for number in range(200)]
    assert feed(buffer, b"".join(frame(content) for content in contents)) == contents
    assert memory(buffer) == RECEIVE_BUFFER_BYTES


def test_frames_left_for_later_are_still_there() -> None:
    buffer = FrameBuffer(FRAME_BYTES_MAX)
    room = buffer.room()
    stream = frame(b"now") + frame(b"later")
    room[: len(stream)] = stream
    buffer.received(len(stream))
    assert bytes(next(buffer.frames())) == b"now"
    assert buffer.waiting == len(frame(b"later"))
    assert [bytes(view) for view in buffer.frames()] == [b"later"]


def test_rest_gives_back_what_a_large_frame_needed_and_keeps_what_waits() -> None:
    buffer = FrameBuffer(FRAME_BYTES_MAX)
    feed(buffer, frame(bytes(500_000)) + frame(b"half a frame")[:7])
    assert memory(buffer) > 500_000
    buffer.rest()
    assert memory(buffer) == RECEIVE_BUFFER_BYTES_MIN
    assert feed(buffer, frame(b"half a frame")[7:]) == [b"half a frame"]


def test_rest_leaves_a_large_unfinished_frame_alone() -> None:
    buffer = FrameBuffer(FRAME_BYTES_MAX)
    content = bytes(400_000)
    feed(buffer, frame(content)[:300_000])
    buffer.rest()
    assert feed(buffer, frame(content)[300_000:]) == [content]


class Bank:
    """A lender that lends as much as it was told."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.lent = 0
        self.frames: list[bytes] = []

    def lend(self, size: int, *, step: int, frame: memoryview) -> bool:
        self.frames.append(bytes(frame[:2]))
        return self.lend_spare(size)

    def lend_spare(self, size: int) -> bool:
        if size > self.bytes_max:
            return False
        self.lent = size
        return True

    def returned(self, size: int) -> None:
        self.lent = size


def test_a_frame_that_no_memory_is_lent_for_waits_until_there_is_some() -> None:
    bank = Bank(0)
    buffer = FrameBuffer(FRAME_BYTES_MAX, bank)
    content = bytes(range(250)) * 1_000
    arrived = frame(content)
    first = len(buffer.room())
    buffer.room()[:] = arrived[:first]
    buffer.received(first)
    assert list(buffer.frames()) == []
    assert len(buffer.room()) == 0
    assert len(buffer.room()) == 0
    assert bank.frames == [content[:2]] * 2
    bank.bytes_max = len(arrived)
    assert feed(buffer, arrived[first:]) == [content]
    assert bank.lent == len(arrived)


def test_a_large_frames_memory_takes_nothing_of_the_next_one() -> None:
    buffer = FrameBuffer(FRAME_BYTES_MAX, Bank(FRAME_BYTES_MAX))
    content = bytes(300_000)
    arrived = frame(content) + frame(b"next")
    taken = 0
    while taken < len(arrived) and not (frames := [bytes(view) for view in buffer.frames()]):
        room = buffer.room()
        count = min(len(room), len(arrived) - taken)
        room[:count] = arrived[taken : taken + count]
        buffer.received(count)
        taken += count
    assert frames == [content]
    assert buffer.waiting == 0
    assert buffer.between_frames


def test_a_busy_peer_gets_a_larger_buffer_only_where_memory_is_to_spare() -> None:
    many = frame(bytes(1_000)) * 100
    for bytes_max, size in ((0, RECEIVE_BUFFER_BYTES_MIN), (FRAME_BYTES_MAX, RECEIVE_BUFFER_BYTES)):
        buffer = FrameBuffer(FRAME_BYTES_MAX, Bank(bytes_max))
        assert feed(buffer, many) == [bytes(1_000)] * 100
        assert memory(buffer) == size


def test_rest_returns_what_was_lent() -> None:
    bank = Bank(FRAME_BYTES_MAX)
    buffer = FrameBuffer(FRAME_BYTES_MAX, bank)
    feed(buffer, frame(bytes(500_000))[:100_000])
    assert bank.lent == 500_004
    buffer.rest()
    assert bank.lent == 100_000 + RECEIVE_BUFFER_BYTES_MIN
    assert feed(buffer, frame(bytes(500_000))[100_000:]) == [bytes(500_000)]
    buffer.rest()
    assert bank.lent == RECEIVE_BUFFER_BYTES_MIN


def test_a_frame_that_was_put_back_comes_again_with_those_behind_it() -> None:
    buffer = FrameBuffer(FRAME_BYTES_MAX)
    data = frame(b"one") + frame(b"two") + frame(b"three")
    buffer.room()[: len(data)] = data
    buffer.received(len(data))
    frames = buffer.frames()
    assert bytes(next(frames)) == b"one"
    two = next(frames)
    buffer.put_back(two)
    assert [bytes(view) for view in buffer.frames()] == [b"two", b"three"]


def test_memory_that_was_left_to_its_views_is_not_written_again() -> None:
    buffer = FrameBuffer(FRAME_BYTES_MAX)
    feed(buffer, frame(bytes(100_000)))
    kept, behind = frame(b"x" * 90_000), frame(b"behind")
    data = kept + behind[:7]
    buffer.room()[: len(data)] = data
    buffer.received(len(data))
    (view,) = buffer.frames()
    assert buffer.is_filled_by(len(view))
    assert not buffer.is_filled_by(len(view) // 2)
    buffer.leave()
    assert feed(buffer, behind[7:] + frame(b"y" * 90_000)) == [b"behind", b"y" * 90_000]
    assert view == b"x" * 90_000


def test_what_a_frame_lacks_is_told() -> None:
    buffer = FrameBuffer(FRAME_BYTES_MAX)
    assert buffer.missing == 0
    feed(buffer, frame(bytes(500_000))[:3])
    assert buffer.missing == 1
    feed(buffer, frame(bytes(500_000))[3:100_000])
    assert buffer.missing == 400_004
    feed(buffer, bytes(400_004))
    assert buffer.missing == 0


def test_a_web_server_is_told_apart() -> None:
    with pytest.raises(FrameRefused, match="it speaks HTTP"):
        feed(FrameBuffer(FRAME_BYTES_MAX), b"HTTP/1.1 400 Bad Request")
