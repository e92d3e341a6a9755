"""What is whole is given, what is not is named exactly, and the walk goes on behind it."""

from collections.abc import Callable, Sequence

import pytest

from riverlog.log.segments.flaws import SEARCH_EVERYTHING, Flaw, TailContent, examine
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.records.batch import BatchHeader, assign
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk

PATH = "/segment"
BASE = 100
COUNT = 10


def segment(offsets: Sequence[int] = range(BASE, BASE + 2 * COUNT, 2), epochs: Sequence[int] = (7,) * COUNT) -> bytes:
    """Write batches of two records at these offsets."""
    content = bytearray()
    for offset, epoch in zip(offsets, epochs, strict=False):
        batch = batch_of([b"a", b"b"])
        assign(batch, Offset(offset), LeaderEpoch(epoch))
        content += batch
    return bytes(content)


SIZE = len(segment()) // COUNT


def examined(
    content: bytes,
    *,
    limit: int = BASE + 2 * COUNT,
    beyond: TailContent = TailContent.NOTHING,
    bytes_max: int = SEARCH_EVERYTHING,
) -> tuple[list[int], list[Flaw]]:
    """Return the offsets of the whole batches, and the flaws."""
    disk = MemoryDisk()
    file = disk.open(PATH, create=True)
    file.write(0, [content])
    found: list[tuple[int, BatchHeader] | Flaw] = list(
        examine(
            file,
            0,
            len(content),
            after=Offset(BASE),
            limit=Offset(limit),
            beyond=beyond,
            search_bytes_max=bytes_max,
        )
    )
    whole = [each[1].base_offset for each in found if not isinstance(each, Flaw)]
    return list(map(int, whole)), [each for each in found if isinstance(each, Flaw)]


def put(position: int, replacement: bytes) -> Callable[[bytes], bytes]:
    return lambda content: content[:position] + replacement + content[position + len(replacement) :]


def test_a_whole_segment_has_no_flaw() -> None:
    assert examined(segment()) == (list(range(BASE, BASE + 2 * COUNT, 2)), [])


@pytest.mark.parametrize("number", [0, 4, COUNT - 1])
@pytest.mark.parametrize(
    "spoil",
    [
        put(70, b"\xff"),  # a record
        put(18, b"\xff"),  # the checksum
        put(40, b"\xff"),  # a timestamp
        put(8, b"\x7f"),  # the length, far too long
        put(10, b"\x00\x50"),  # the length, a little too short
        put(11, b"\xff"),  # the length, into the next batch
        put(16, b"\x01"),  # the magic byte
        put(0, b"\x01"),  # the offset, far ahead
        put(7, b"\x00"),  # the offset, far behind
        put(0, bytes(SIZE)),  # a hole
    ],
)
def test_a_damaged_batch_is_named_and_only_that_one(number: int, spoil: Callable[[bytes], bytes]) -> None:
    content = segment()
    start = number * SIZE
    spoilt = content[:start] + spoil(content[start : start + SIZE]) + content[start + SIZE :]
    whole, (flaw,) = examined(spoilt)
    lost = BASE + 2 * number
    assert whole == [offset for offset in range(BASE, BASE + 2 * COUNT, 2) if offset != lost]
    assert flaw[:4] == (start, start + SIZE, lost, lost + 2)


@pytest.mark.parametrize(
    ("epochs", "wrong"),
    [
        ([7, 7, 7, 9, 7, 7, 7, 7, 7, 7], 3),
        ([7, 7, 7, 6, 7, 7, 7, 7, 7, 7], 3),
        ([9, 7, 7, 7, 7, 7, 7, 7, 7, 7], 0),
        ([3, 3, 3, 5, 4, 5, 5, 5, 5, 5], 4),
        ([3, 3, 3, 6, 5, 5, 5, 5, 5, 5], 3),
    ],
)
def test_an_epoch_that_contradicts_its_neighbours_is_found(epochs: list[int], wrong: int) -> None:
    whole, (flaw,) = examined(segment(epochs=epochs))
    assert flaw.first_offset == BASE + 2 * wrong
    assert flaw.next_offset == flaw.first_offset + 2
    assert len(whole) == COUNT - 1


@pytest.mark.parametrize("bit", range(1, 6))
@pytest.mark.parametrize("number", range(COUNT))
def test_an_offset_that_contradicts_its_neighbours_is_found(bit: int, number: int) -> None:
    offsets = list(range(BASE, BASE + 2 * COUNT, 2))
    offsets[number] ^= 1 << bit
    whole, (flaw,) = examined(segment(offsets))
    assert flaw.first_offset == BASE + 2 * number
    assert flaw.next_offset == flaw.first_offset + 2
    assert len(whole) == COUNT - 1


def test_gaps_that_compaction_left_are_no_flaw() -> None:
    offsets = [100, 104, 108, 120]
    assert examined(segment(offsets), limit=200) == (offsets, [])


def test_several_flaws_are_told_apart_and_neighbours_are_one() -> None:
    content = bytearray(segment())
    for number in (1, 4, 5, 6, 9):
        content[number * SIZE + 70] ^= 1
    whole, flaws = examined(bytes(content))
    assert whole == [100, 104, 106, 114, 116]
    assert [(flaw.first_offset, flaw.next_offset) for flaw in flaws] == [(102, 104), (108, 114), (118, 120)]


def test_a_cut_file_lacks_its_end() -> None:
    whole, (flaw,) = examined(segment()[: 5 * SIZE + 10])
    assert whole == [100, 102, 104, 106, 108]
    assert flaw[:4] == (5 * SIZE, 5 * SIZE + 10, 110, 120)


def test_the_search_for_the_next_batch_is_bounded() -> None:
    content = segment()
    spoilt = content[:SIZE] + bytes(3 * SIZE) + content[4 * SIZE :]
    assert examined(spoilt)[1][0][:4] == (SIZE, 4 * SIZE, 102, 108)
    assert examined(spoilt, bytes_max=SIZE)[1][0][:4] == (SIZE, len(content), 102, 120)


def test_the_walk_ends_where_it_should() -> None:
    content = segment()
    assert examined(content, limit=110, beyond=TailContent.BATCHES) == ([100, 102, 104, 106, 108], [])
    assert examined(content, limit=111, beyond=TailContent.BATCHES) == ([100, 102, 104, 106, 108], [])
    gap = segment([100, 102, 130, 132])
    assert examined(gap, limit=110, beyond=TailContent.GAPS) == ([100, 102], [])
    assert examined(gap, limit=110, beyond=TailContent.BATCHES)[1][0][2:4] == (104, 110)


def test_a_flaw_is_a_sentence() -> None:
    assert str(Flaw(5, 9, Offset(3), Offset(4), "why")) == "position 5: why; offset 3 cannot be read"
    assert str(Flaw(5, 9, Offset(3), Offset(7), "why")) == "position 5: why; offsets 3 to 6 cannot be read"
