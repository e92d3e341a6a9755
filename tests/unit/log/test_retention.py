"""Which segments may go."""

from dataclasses import replace

from riverlog.log.retention import DeletionReason, SegmentFacts, expired
from riverlog.model.ids import Offset
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG, TopicConfig

SEGMENTS = [
    SegmentFacts(Offset(0), Offset(10), 100, 1_000),
    SegmentFacts(Offset(10), Offset(20), 100, 3_000),
    SegmentFacts(Offset(20), Offset(30), 100, 2_000),
    SegmentFacts(Offset(30), Offset(35), 50, 9_000),
]
KEEP_ALL = replace(DEFAULT_TOPIC_CONFIG, retention_ms=-1, retention_bytes=-1)


def reasons(
    config: TopicConfig, *, now_ms: int = 10_000, log_start_offset: int = 0, upto: int = 35
) -> list[DeletionReason]:
    return expired(
        SEGMENTS, config, total_bytes=350, now_ms=now_ms, log_start_offset=Offset(log_start_offset), upto=Offset(upto)
    )


def test_without_limits_everything_stays() -> None:
    assert reasons(KEEP_ALL) == []


def test_age_takes_the_oldest_until_one_is_young_enough() -> None:
    by_age = replace(KEEP_ALL, retention_ms=1_000)
    assert reasons(by_age, now_ms=2_000) == []
    assert reasons(by_age, now_ms=2_001) == [DeletionReason.AGE]
    assert reasons(by_age, now_ms=3_500) == [DeletionReason.AGE]
    assert reasons(by_age, now_ms=4_001) == [DeletionReason.AGE] * 3
    assert reasons(by_age, now_ms=99_999) == [DeletionReason.AGE] * 4


def test_size_takes_the_oldest_until_the_rest_is_no_larger_than_allowed() -> None:
    assert reasons(replace(KEEP_ALL, retention_bytes=251)) == []
    assert reasons(replace(KEEP_ALL, retention_bytes=250)) == [DeletionReason.SIZE]
    assert reasons(replace(KEEP_ALL, retention_bytes=0)) == [DeletionReason.SIZE] * 4


def test_what_lies_below_the_start_goes_whatever_the_policy() -> None:
    compacted = replace(KEEP_ALL, cleanup_delete=False, cleanup_compact=True, retention_ms=0, retention_bytes=0)
    assert reasons(compacted) == []
    assert reasons(compacted, log_start_offset=19) == [DeletionReason.START]
    assert reasons(compacted, log_start_offset=20) == [DeletionReason.START] * 2


def test_nothing_goes_that_readers_have_not_seen() -> None:
    assert reasons(replace(KEEP_ALL, retention_ms=0), upto=29) == [DeletionReason.AGE] * 2


def test_an_empty_segment_stays() -> None:
    empty = [SegmentFacts(Offset(5), Offset(5), 0, 0)]
    config = replace(KEEP_ALL, retention_ms=0, retention_bytes=0)
    assert expired(empty, config, total_bytes=0, now_ms=99, log_start_offset=Offset(5), upto=Offset(5)) == []


def test_an_empty_closed_segment_holds_up_nobody() -> None:
    closed = SEGMENTS[0]._replace(size=0)
    active = SEGMENTS[3]._replace(size=0)
    by_age = replace(KEEP_ALL, retention_ms=1_000)
    given = [closed, SEGMENTS[1], active]
    found = expired(given, by_age, total_bytes=100, now_ms=99_999, log_start_offset=Offset(0), upto=Offset(35))
    assert found == [DeletionReason.AGE, DeletionReason.AGE], "and an empty active one stays"
