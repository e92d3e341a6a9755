"""A segment of batches of two records, for the tests of this room."""

from riverlog.log.segments.log_folder import LogFolder
from riverlog.log.segments.open_files import OpenFiles
from riverlog.log.segments.segment import Segment
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.records.batch import assign, read_header
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk

BASE = Offset(100)
COUNT = 40


def create(disk: MemoryDisk) -> Segment:
    return Segment.create(LogFolder(disk, OpenFiles(), "", 200), BASE, now_ms=5)


def load(disk: MemoryDisk, *, files: OpenFiles | None = None, upto: Offset | None = None) -> Segment:
    files = files or OpenFiles()
    return Segment.load(LogFolder(disk, files, "", 200), BASE, now_ms=5, upto=upto)


def fill(segment: Segment, count: int = COUNT) -> None:
    """Append batches of two records, each ten milliseconds later than the one before."""
    for number in range(count):
        batch = batch_of([b"a", b"b"], timestamp_ms=1_000 + 10 * number)
        header = read_header(batch)
        base_offset = segment.next_offset
        assign(batch, base_offset, LeaderEpoch(0))
        one = (batch, base_offset, Offset(base_offset + 1), header.first_timestamp, header.max_timestamp)
        segment.append([one])
