"""Walking a segment file with every check there is: the batches that are whole, and the flaws between them.

A batch is whole if its checksum matches and it fits between its neighbours. The fields before the checksum are judged
by that: offsets and leader epochs only grow, so one of them that was changed contradicts the batch before or behind it.
Behind a flaw the walk goes on with the next whole batch, which is searched for if need be, because a wrong length hides
where it begins. So a flaw says exactly which offsets cannot be read.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

from riverlog.log.segments.scan import SCAN_CHUNK_BYTES, is_plausible, scan_batches, scan_headers
from riverlog.model.ids import NO_EPOCH, LeaderEpoch, Offset
from riverlog.model.ports import File
from riverlog.records.batch import HEADER_BYTES, MAGIC, MAGIC_POSITION, BatchHeader, checksum, read_header

SEARCH_EVERYTHING: Final = 1 << 62
"""For those who have the time to search a whole file for the next batch."""


class Flaw(NamedTuple):
    """Bytes that are not what was written, and the offsets that are lost with them."""

    position: int
    end: int
    """Behind its last byte; the same as `position` where a file or its end is missing."""
    first_offset: Offset
    next_offset: Offset
    reason: str

    def __str__(self) -> str:
        lost = f"offset {self.first_offset}"
        if self.next_offset - self.first_offset > 1:
            lost = f"offsets {self.first_offset} to {self.next_offset - 1}"
        return f"position {self.position}: {self.reason}; {lost} cannot be read"


class TailContent(Enum):
    """What may lie behind the offset up to which a file is examined."""

    NOTHING = auto()
    BATCHES = auto()
    """Batches that follow on those before."""
    GAPS = auto()
    """Batches, and compaction may have left a gap before them."""


def examine(
    file: File,
    position: int,
    end: int,
    *,
    after: Offset,
    limit: Offset,
    beyond: TailContent = TailContent.NOTHING,
    search_bytes_max: int,
) -> Iterator[tuple[int, BatchHeader] | Flaw]:
    """Walk from `position` on, where the next batch has offset `after` or a later one, until `limit` is reached.

    A flaw whose end is not found within so many bytes reaches to the end of the file.
    """
    epoch = NO_EPOCH
    held: tuple[int, BatchHeader] | None = None  # whole by itself; the next one decides whether it is in its place
    while position < end:
        reason = "no batch begins there"
        for at, header, batch in scan_batches(file, position, end):
            expected = held[1].next_offset if held else after
            if expected >= limit and (held is None or header.base_offset >= expected):
                break
            if checksum(batch) != header.crc:
                reason = "the checksum does not match"
                break
            if header.last_offset >= limit and _may_lie_beyond(header, beyond, expected):
                if held is not None:
                    yield held
                return
            reason = f"offset {header.base_offset} of epoch {header.leader_epoch} does not fit there"
            if held is None:
                if not _fits(header, after, epoch, limit):
                    break
            elif _fits(header, held[1].next_offset, held[1].leader_epoch, limit):
                yield held
                after, epoch = held[1].next_offset, held[1].leader_epoch
            else:
                following = next((each for _, each in scan_headers(file, at + header.size, end)), None)
                held_is_right, this_is_right = _judge(after, epoch, held[1], header, following)
                if not this_is_right or not _fits(header, after, epoch, limit):
                    if not held_is_right:
                        position, held = held[0], None
                    break
                reason = f"offset {held[1].base_offset} of epoch {held[1].leader_epoch} does not fit there"
                yield Flaw(held[0], at, after, header.base_offset, reason)
                after = header.base_offset
            held = at, header
            position = at + header.size
        if held is not None:
            yield held
            after, epoch, held = held[1].next_offset, held[1].leader_epoch, None
        if position >= end or after >= limit:
            return
        found = _find_whole(file, position, end, after, epoch, limit, search_bytes_max)
        flaw_end, next_offset = found or (end, limit)
        yield Flaw(position, flaw_end, after, next_offset, reason)
        position, after = flaw_end, next_offset


def _may_lie_beyond(header: BatchHeader, beyond: TailContent, expected: Offset) -> bool:
    return beyond is TailContent.GAPS or (beyond is TailContent.BATCHES and header.base_offset == expected)


def _fits(header: BatchHeader, after: Offset, epoch: LeaderEpoch, limit: Offset) -> bool:
    return header.base_offset >= after and header.leader_epoch >= epoch and header.last_offset < limit


def _judge(
    after: Offset, epoch: LeaderEpoch, first: BatchHeader, second: BatchHeader, third: BatchHeader | None
) -> tuple[bool, bool]:
    """Judge which of two whole batches that contradict each other is in its place; neither where that is unclear."""
    if first.base_offset == after and first.leader_epoch == epoch:
        return True, False
    if second.base_offset == after + first.last_offset_delta + 1 and second.leader_epoch == epoch:
        return False, True
    if third is None:
        return False, False
    if third.base_offset == second.next_offset and third.leader_epoch == second.leader_epoch:
        return False, True
    first_stays = third.base_offset >= first.next_offset + second.last_offset_delta + 1
    return first_stays and third.leader_epoch >= first.leader_epoch, False


def _find_whole(
    file: File, position: int, end: int, after: Offset, epoch: LeaderEpoch, limit: Offset, bytes_max: int
) -> tuple[int, Offset] | None:
    """Find the first whole batch behind `position` that fits: where it begins, and its offset."""
    for _, header, _ in scan_batches(file, position, end):
        # Most flaws leave the length as it was.
        if found := _whole_at(file, position + header.size, end, after, epoch, limit):
            return found
        break
    low, high = after.to_bytes(8), limit.to_bytes(8)
    prefix = low[: next((slot for slot in range(8) if low[slot] != high[slot]), 8)]
    pattern = re.compile(b"(?s)(?=" + re.escape(prefix) + b".{%d}\x02)" % (MAGIC_POSITION - len(prefix)))
    assert MAGIC == 2
    search_end = min(end, position + bytes_max)
    at = position + 1
    while at < search_end:
        chunk = file.read(at, min(SCAN_CHUNK_BYTES, search_end - at + MAGIC_POSITION))
        for match in pattern.finditer(chunk):
            if found := _whole_at(file, at + match.start(), end, after, epoch, limit):
                return found
        at += max(len(chunk) - MAGIC_POSITION, 1)
    return None


def _whole_at(
    file: File, position: int, end: int, after: Offset, epoch: LeaderEpoch, limit: Offset
) -> tuple[int, Offset] | None:
    if end - position < HEADER_BYTES:
        return None
    header = read_header(file.read(position, HEADER_BYTES))
    if not is_plausible(header) or header.size > end - position or header.leader_epoch < epoch:
        return None
    if not after < header.base_offset <= limit:  # the flaw itself had at least one offset
        return None
    if checksum(file.read(position, header.size)) != header.crc:
        return None
    return position, header.base_offset
