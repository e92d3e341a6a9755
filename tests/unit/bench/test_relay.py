"""A link with delay: everything arrives, in order, and not before its time."""

import asyncio

from bench.relay import HELD_BYTES_MAX, HeldBack


class End(asyncio.Transport):
    """One end's transport, which notes what is written to it and when."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[float, bytes]] = []
        self.closed_at: float | None = None
        self.reading = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append((round(asyncio.get_running_loop().time(), 3), bytes(data)))

    def close(self) -> None:
        self.closed_at = round(asyncio.get_running_loop().time(), 3)

    def is_closing(self) -> bool:
        return self.closed_at is not None

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


def connected() -> tuple[HeldBack, End, End]:
    near, far = HeldBack(0.05), HeldBack(0.05)
    near_end, far_end = End(), End()
    near.connection_made(near_end)
    far.connection_made(far_end)
    near.join(far)
    return near, near_end, far_end


async def test_pieces_are_held_for_the_delay_and_keep_their_order() -> None:
    near, _, far_end = connected()
    began = asyncio.get_running_loop().time()
    near.data_received(b"a")
    near.data_received(b"b")
    await asyncio.sleep(0.02)
    near.data_received(b"c")
    await asyncio.sleep(0.04)
    near.connection_lost(None)
    await asyncio.sleep(1)
    assert [piece for _, piece in far_end.written] == [b"a", b"b", b"c"]
    assert [round(at - began, 3) for at, _ in far_end.written] == [0.05, 0.05, 0.07]
    assert far_end.closed_at is not None
    assert round(far_end.closed_at - began, 3) == 0.11


async def test_no_more_is_held_than_the_bound() -> None:
    near, near_end, _ = connected()
    near.data_received(bytes(HELD_BYTES_MAX))
    assert near_end.reading
    near.data_received(b"x")
    paused = not near_end.reading
    await asyncio.sleep(1)
    assert (paused, near_end.reading) == (True, True)
