"""Which part of a log is cleaned, when, and which records stay."""

from dataclasses import replace

from riverlog.log.compaction.policy import KEY_OVERHEAD_BYTES, DirtyRange, NewestOffsets, examine, grouped
from riverlog.log.retention import SegmentFacts
from riverlog.model.ids import Offset
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG, TopicConfig
from riverlog.records.batch import BatchHeader, read_header
from riverlog.records.record import BatchBuilder
from riverlog.records.walk import RecordSlice, unfold, walk

CONFIG = replace(DEFAULT_TOPIC_CONFIG, cleanup_compact=True, cleanup_delete=False)
NOW = 1_000_000


def a_segment(base: int, behind: int, size: int = 100, *, last: int = 900_000, first: int = 800_000) -> SegmentFacts:
    return SegmentFacts(Offset(base), Offset(behind), size, last, first)


FOUR = [a_segment(0, 10, 300), a_segment(10, 20), a_segment(20, 30), a_segment(30, 35)]


def judged(
    segments: list[SegmentFacts] = FOUR,
    config: TopicConfig = CONFIG,
    *,
    cleaned: int = 10,
    start: int = 0,
    upto: int = 35,
) -> DirtyRange:
    return examine(
        segments,
        config,
        cleaned_offset=Offset(cleaned),
        log_start_offset=Offset(start),
        upto=Offset(upto),
        now_ms=NOW,
    )


def test_the_active_segment_is_left_alone() -> None:
    assert judged() == DirtyRange(Offset(10), Offset(30), 200 / 500, False)
    assert judged([a_segment(0, 5)], cleaned=0) == DirtyRange(Offset(0), Offset(0), 0.0, False)


def test_nothing_that_is_not_committed_is_cleaned() -> None:
    assert judged(upto=25).end_offset == 20
    assert not judged(upto=5, cleaned=0).is_due(CONFIG)


def test_a_log_is_due_when_enough_of_it_is_new() -> None:
    assert not judged().is_due(CONFIG)
    assert judged().is_due(replace(CONFIG, min_cleanable_dirty_ratio=0.39))
    assert judged(cleaned=0).is_due(CONFIG)
    assert not judged(cleaned=30).is_due(replace(CONFIG, min_cleanable_dirty_ratio=0.0))


def test_new_records_are_left_for_readers_to_see() -> None:
    assert judged(config=replace(CONFIG, min_compaction_lag_ms=100_001)).end_offset == 10
    assert judged(config=replace(CONFIG, min_compaction_lag_ms=100_000)).end_offset == 30


def test_a_record_that_waited_for_too_long_makes_a_log_due() -> None:
    assert judged(config=replace(CONFIG, max_compaction_lag_ms=199_999)).is_due(CONFIG)
    assert not judged(config=replace(CONFIG, max_compaction_lag_ms=200_000)).is_due(CONFIG)


def test_a_note_about_a_longer_log_is_not_believed() -> None:
    assert judged(cleaned=36).first_dirty_offset == 0
    assert judged(cleaned=36, start=3).first_dirty_offset == 3
    assert judged(cleaned=5, start=12).first_dirty_offset == 12


def test_neighbours_are_put_together_while_they_fit() -> None:
    def bases(**limits: int) -> list[list[int]]:
        return [[each.base_offset for each in group] for group in grouped(FOUR, **limits)]

    assert bases(bytes_max=300, offsets_max=1 << 31) == [[0], [10, 20, 30]]
    assert bases(bytes_max=10, offsets_max=1 << 31) == [[0], [10], [20], [30]]
    assert bases(bytes_max=1_000, offsets_max=20) == [[0, 10], [20, 30]]


def a_batch(*entries: tuple[bytes | None, bytes | None], base: int = 0) -> tuple[BatchHeader, list[RecordSlice]]:
    builder = BatchBuilder()
    for key, value in entries:
        builder.append(key, value, timestamp_ms=1)
    batch = builder.build(Offset(base))
    header = read_header(batch)
    return header, list(walk(unfold(batch, header), header))


def test_the_newest_record_of_a_key_stays() -> None:
    newest = NewestOffsets(Offset(0), bytes_max=1_000)
    old, new = a_batch((b"a", b"1"), (b"b", b"1"), (None, b"1")), a_batch((b"a", b"2"), (b"a", b"3"), base=3)
    newest.note(*old)
    newest.note(*new)
    assert [newest.keeps(old[0], each, tombstones=True) for each in old[1]] == [False, True, False]
    assert [newest.keeps(new[0], each, tombstones=True) for each in new[1]] == [False, True]
    assert newest.end == 5


def test_tombstones_stay_until_their_time_is_over() -> None:
    newest = NewestOffsets(Offset(0), bytes_max=1_000)
    header, (tombstone,) = a_batch((b"a", None))
    newest.note(header, [tombstone])
    assert newest.keeps(header, tombstone, tombstones=True)
    assert not newest.keeps(header, tombstone, tombstones=False)


def test_what_is_passed_over_replaces_nothing() -> None:
    newest = NewestOffsets(Offset(0), bytes_max=1_000)
    header, (old,) = a_batch((b"a", b"1"))
    newest.note(header, [old])
    newest.pass_over(a_batch((b"a", b"2"), base=1)[0])
    assert newest.keeps(header, old, tombstones=False)
    assert newest.end == 2


def test_memory_is_bounded_by_what_keys_take() -> None:
    newest = NewestOffsets(Offset(0), bytes_max=2 * (KEY_OVERHEAD_BYTES + 1))
    newest.note(*a_batch((b"a", b"1"), (b"a", b"2")))
    assert not newest.is_full
    newest.note(*a_batch((b"b", b"1"), base=2))
    assert newest.is_full
