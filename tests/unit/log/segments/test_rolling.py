"""A segment is full by size, by time, or when an offset no longer fits; an empty one only by size."""

from dataclasses import replace

import pytest

from riverlog.log.segments.index import RELATIVE_OFFSET_MAX
from riverlog.log.segments.log_folder import LogFolder
from riverlog.log.segments.open_files import OpenFiles
from riverlog.log.segments.rolling import check_fits, is_full
from riverlog.log.segments.segment import Segment
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import Offset
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from tests.support.disk import MemoryDisk

CONFIG = replace(DEFAULT_TOPIC_CONFIG, segment_bytes=1_000, segment_ms=500, segment_jitter_ms=0)


def a_segment(size: int, first_timestamp: int = 100) -> Segment:
    disk = MemoryDisk()
    disk.make_folder("/data")
    segment = Segment.create(LogFolder(disk, OpenFiles(), "/data", 100), Offset(10), now_ms=100)
    segment.size, segment.first_timestamp = size, first_timestamp
    return segment


def test_by_size() -> None:
    assert not is_full(a_segment(900), CONFIG, 100, Offset(20), 100, 100)
    assert is_full(a_segment(900), CONFIG, 101, Offset(20), 100, 100)
    assert is_full(a_segment(0), CONFIG, 1_001, Offset(20), 100, 100)


@pytest.mark.parametrize("first_timestamp", [100, -1])
def test_by_the_time_since_its_first_record_or_its_creation(first_timestamp: int) -> None:
    assert not is_full(a_segment(1, first_timestamp), CONFIG, 1, Offset(20), 600, 600)
    assert is_full(a_segment(1, first_timestamp), CONFIG, 1, Offset(20), 601, 601)
    assert not is_full(a_segment(0, first_timestamp), CONFIG, 1, Offset(20), 601, 601)


def test_by_an_offset_that_an_index_cannot_name() -> None:
    assert not is_full(a_segment(1), CONFIG, 1, Offset(10 + RELATIVE_OFFSET_MAX), 100, 100)
    assert is_full(a_segment(1), CONFIG, 1, Offset(11 + RELATIVE_OFFSET_MAX), 100, 100)


def test_a_batch_larger_than_a_segment_is_refused() -> None:
    check_fits(CONFIG, 1_000)
    with pytest.raises(Refusal) as refused:
        check_fits(CONFIG, 1_001)
    assert refused.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
