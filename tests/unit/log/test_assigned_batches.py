"""Batches as a follower gets them."""

import pytest

from riverlog.log.assigned_batches import check_assigned
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from riverlog.records.batch import assign
from riverlog.records.control import Marker, build_marker
from riverlog.records.record import BatchBuilder
from tests.support.batches import batch_of


def assigned(*batches: memoryview, base_offset: int = 5) -> bytearray:
    joined = bytearray()
    for number, batch in enumerate(batches):
        assign(batch, Offset(base_offset + number), LeaderEpoch(0))
        joined += batch
    return joined


def marker_of(committed: bool) -> memoryview:
    return memoryview(build_marker(Marker(committed, 3), ProducerId(7), ProducerEpoch(0), timestamp_ms=0))


def test_batches_come_with_their_places_and_markers() -> None:
    joined = assigned(batch_of(), marker_of(True), marker_of(False))
    found = check_assigned(memoryview(joined + joined[:30]), Offset(5))
    assert [(header.base_offset, marker) for _, header, marker in found] == [
        (5, None),
        (6, Marker(True, 3)),
        (7, Marker(False, 3)),
    ]
    assert [position for position, _, _ in found] == [0, found[0][1].size, found[0][1].size + found[1][1].size]


def test_what_does_not_follow_is_refused() -> None:
    with pytest.raises(Refusal, match="begins at offset 5, but 6 is next"):
        check_assigned(memoryview(assigned(batch_of())), Offset(6))


def test_what_is_damaged_is_refused() -> None:
    joined = assigned(batch_of())
    joined[-1] ^= 1
    with pytest.raises(Refusal) as refused:
        check_assigned(memoryview(joined), Offset(5))
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    nameless = BatchBuilder(producer_id=ProducerId(7), transactional=True, control=True)
    nameless.append(b"\0\0\0\1", b"", timestamp_ms=0)
    with pytest.raises(Refusal, match="does not name its coordinator") as refused:
        check_assigned(memoryview(assigned(memoryview(nameless.build()))), Offset(5))
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
