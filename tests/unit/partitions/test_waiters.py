"""Those who wait for what they appended are told once, in the order of offsets, and never left behind."""

import asyncio
from collections.abc import Callable

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset
from riverlog.partitions.waiters import AppendWaiters


class Told(dict[int, ErrorCode]):
    """What became of batches, by their last offsets."""

    def by(self, offset: int) -> Callable[[ErrorCode], None]:
        def done(code: ErrorCode) -> None:
            assert offset not in self
            self[offset] = code

        return done


def test_a_commit_is_told_up_to_the_high_watermark() -> None:
    waiters, told = AppendWaiters(), Told()
    for offset in range(4):
        waiters.add(Offset(offset), told.by(offset), None)
    waiters.committed(Offset(2))
    assert told == {0: ErrorCode.NONE, 1: ErrorCode.NONE}
    waiters.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert told[2] is told[3] is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_what_is_lost_is_told_and_what_was_written_before_still_waits_for_its_commit() -> None:
    waiters, told = AppendWaiters(), Told()
    waiters.for_write += [(Offset(0), 0.0, told.by(0)), (Offset(2), 0.0, told.by(2))]
    waiters.add(Offset(1), told.by(1), None)
    waiters.add(Offset(3), told.by(3), None)
    waiters.lost(Offset(2), ErrorCode.KAFKA_STORAGE_ERROR)
    assert told == {0: ErrorCode.NONE, 2: ErrorCode.KAFKA_STORAGE_ERROR, 3: ErrorCode.KAFKA_STORAGE_ERROR}
    waiters.committed(Offset(2))
    assert told[1] is ErrorCode.NONE


async def test_one_who_fails_keeps_nobody_behind_from_being_told() -> None:
    def fail(_code: ErrorCode) -> None:
        raise ValueError("a mistake")

    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context["message"]))
    waiters, told = AppendWaiters(), Told()
    waiters.add(Offset(0), fail, None)
    waiters.add(Offset(1), told.by(1), None)
    waiters.committed(Offset(2))
    assert told == {1: ErrorCode.NONE}
    assert reported == ["answer for a committed batch"]


async def test_time_is_up_for_each_when_it_said() -> None:
    waiters, told = AppendWaiters(), Told()
    for offset, seconds in enumerate((5.0, 1.0, None, 3.0)):
        waiters.add(Offset(offset), told.by(offset), seconds)
    for seconds, offsets in ((2, {1}), (2, {1, 3}), (2, {0, 1, 3}), (60, {0, 1, 3})):
        await asyncio.sleep(seconds)
        assert set(told) == offsets
        assert set(told.values()) == {ErrorCode.REQUEST_TIMED_OUT}
